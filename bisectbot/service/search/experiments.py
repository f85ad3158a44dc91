"""An experiment as rows: its build, its runs, what was known when it was planned."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.bisect import Experiment as Planned
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service.plan import Why, want_build, want_runs
from bisectbot.service.search.searches import Epochs
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    Commit,
    Experiment,
    ExperimentState,
    Host,
    HostState,
    Job,
    Purpose,
    Run,
    RunState,
)

log = structlog.get_logger()

WORKING = (HostState.GOOD, HostState.UNKNOWN)


@dataclass(frozen=True)
class Wanted:
    """What is measured: a commit built in one way, under a job; ``check`` as in the table."""

    commit: Commit
    recipe: BuildRecipe
    job: Job
    check: str = ""


def record(session: Session, row: Bisection, planned: Planned, wanted: Wanted | str, told: dict[str, object]) -> None:
    """Add an experiment of a bisection; ``wanted`` is a text where there is nothing to measure: it is skipped."""
    newest = select(func.max(Experiment.number)).where(Experiment.bisection_id == row.id)
    last = session.execute(newest).scalar_one_or_none()
    experiment = Experiment(
        bisection_id=row.id,
        number=0 if last is None else last + 1,
        nodes=[planned.commit] if isinstance(planned.commit, int) else list(planned.commit),
        sha="" if isinstance(wanted, str) else wanted.commit.sha,
        runs=planned.runs,
        fresh_boot=planned.fresh_boot,
        check="" if isinstance(wanted, str) else wanted.check,
        told=told,
        created=now(session),
    )
    session.add(experiment)
    if isinstance(wanted, str):
        experiment.state, experiment.reason = ExperimentState.SKIPPED, wanted
        return
    session.flush()
    build = want_build(session, wanted.commit.id, wanted.recipe, Purpose.BISECTION)
    experiment.build_id = build.id
    purpose = Purpose.BISECTION if row.request_id is None else Purpose.REQUEST
    why = Why(purpose, branch_id=row.branch_id, experiment_id=experiment.id)
    runs = want_runs(session, build, wanted.job, planned.runs, why, fresh_boot=planned.fresh_boot)
    if planned.host is not None and runs:
        host = session.execute(select(Host.id).where(Host.name == Epochs.host(planned.host))).scalar_one_or_none()
        for run in runs:
            run.wanted_host_id = host
    log.info(
        "experiment", bisection=row.id, number=experiment.number, commit=wanted.commit.sha[:12], runs=planned.runs,
        check=wanted.check,
    )  # fmt: skip


def idle_hosts(session: Session, group: int) -> int:
    """Working hosts of a group that have nothing to do, none if runs wait for them."""
    hosts = session.execute(select(func.count()).where(Host.group_id == group, Host.state.in_(WORKING))).scalar_one()
    busy = select(func.count()).where(Run.group_id == group, Run.state.in_([s for s in RunState if s.open]))
    return max(0, int(hosts) - int(session.execute(busy).scalar_one()))
