"""Comparisons and tests that people ask for: a few commits, measured in turns by one job, and what came out.

Every commit is booted as often as the others, in turns, so that what drifts on the host drifts for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, selectinload

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.results.trial import Column, Judgement, Outcome, compared, patch_judged
from bisectbot.service import catalog
from bisectbot.service.bisections import costs
from bisectbot.service.commands import Asker, log, number
from bisectbot.service.context import Context
from bisectbot.service.people.asks import Limits, Target, admit
from bisectbot.service.plan import Why, want_build, want_runs
from bisectbot.source.history import changes, facts
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Build,
    Kpi,
    Purpose,
    Request,
    RequestState,
    Run,
    RunState,
)

logger = structlog.get_logger()

COMPARE, TEST = "compare", "test"
RUNS, MOST_RUNS, BOOTS = 9, 60, 3


@dataclass(frozen=True)
class Trial:
    """What is measured: columns of (title, 40 hex digits), the base first, each ``runs`` times."""

    columns: tuple[tuple[str, str], ...]
    kpi: int
    recipe: BuildRecipe
    runs: int
    report: str = ""
    """The report whose culprit a patch is tested on, ``R12``."""


@dataclass(frozen=True)
class TrialStatus:
    """How a trial stands; ``judgement`` when it is over and gave numbers, ``failure`` when it gave none."""

    id: str
    kind: str
    asker: str
    state: str
    kpi: str
    unit: str
    group: str
    columns: tuple[Column, ...]
    done: int
    planned: int
    over: bool
    report: str
    judgement: Judgement | None = None
    failure: str = ""


def recipe_of(context: Context, target: Target) -> BuildRecipe:
    """How commits of the target's branch are built."""
    build = context.config.trees[target.tree].branches[target.branch].build
    return context.config.builds[build].recipe(build)


def trial_cost(context: Context, trial: Trial) -> float:
    """Farm seconds of a host that a trial takes."""
    with context.database.read() as session:
        kpi = session.get_one(Kpi, trial.kpi)
        spent = costs(context, session, kpi.job, trial.recipe)
    return len(trial.columns) * (trial.runs * spent.run_s + min(BOOTS, trial.runs) * spent.boot_s)


def order_trial(context: Context, asker: Asker, kind: str, trial: Trial, limits: Limits | None) -> tuple[str, bool]:
    """Order a comparison or test; returns the request (``Q9``) and whether it is new. Raises UserError as `admit`."""
    if len({sha for _, sha in trial.columns}) < len(trial.columns):
        raise UserError("these are the same commit; there is nothing to compare")
    arguments = {**wire.to_plain(trial), "host_s": trial_cost(context, trial)}
    with context.database.write() as session:
        known = admit(context, session, asker, kind, arguments, limits)
        if known is not None:
            return f"Q{known.id}", False
        request = Request(kind=kind, asker=asker.name, arguments=arguments, created=now(session))
        session.add(request)
        session.flush()
        shas = " ".join(sha[:12] for _, sha in trial.columns)
        log(session, asker, f"{kind} {shas}", f"Q{request.id}")
        return f"Q{request.id}", True


def trials(context: Context) -> int:
    """Plan what was ordered, conclude what was measured; returns how many requests moved."""
    states = [RequestState.OPEN, RequestState.RUNNING]
    with context.database.read() as session:
        query = select(Request).where(Request.kind.in_([COMPARE, TEST]), Request.state.in_(states))
        rows = session.execute(query.order_by(Request.id)).scalars().all()
    for row in rows:
        if row.state is RequestState.OPEN:
            _plan(context, row.id, _trial(row))
        else:
            _conclude(context, row.id)
    return len(rows)


def _trial(row: Request) -> Trial:
    return wire.from_plain(Trial, {key: value for key, value in row.arguments.items() if key != "host_s"})


def _plan(context: Context, request: int, trial: Trial) -> None:
    git = context.mirror.git
    infos = facts(git, [sha for _, sha in trial.columns])
    identities = changes(git, infos)
    with context.database.write() as session:
        row = session.get_one(Request, request, with_for_update=True)
        if row.state is not RequestState.OPEN:
            return
        job = session.get_one(Kpi, trial.kpi).job
        commits = [catalog.commit_row(session, *pair) for pair in zip(infos, identities, strict=True)]
        builds = [want_build(session, commit.id, trial.recipe, Purpose.REQUEST) for commit in commits]
        why = Why(Purpose.REQUEST, request_id=request)
        boots = min(BOOTS, trial.runs)
        for turn in range(boots):
            count = trial.runs // boots + (turn < trial.runs % boots)
            for build in builds:
                want_runs(session, build, job, count, why, fresh_boot=True)
        row.state = RequestState.RUNNING
    logger.info("trial planned", request=request, columns=len(trial.columns), runs=trial.runs)


def _conclude(context: Context, request: int) -> None:
    with context.database.write() as session:
        row = session.get_one(Request, request, with_for_update=True)
        seen = _status(session, row)
        if row.state is not RequestState.RUNNING or not seen.over:
            return
        row.state = RequestState.FAILED if seen.failure else RequestState.DONE
        row.answer = seen.failure or (seen.judgement.sentence if seen.judgement else "")
    logger.info("trial over", request=request, answer=row.answer)


def trial_status(context: Context, word: str) -> TrialStatus | None:
    """How a comparison or test stands; None for a request of another kind. Raises UserError if there is none."""
    with context.database.read() as session:
        row = session.get(Request, number(word, "Q"))
        if row is None:
            raise UserError(f"there is no request {word.upper()}")
        return _status(session, row) if row.kind in {COMPARE, TEST} else None


def _status(session: Session, row: Request) -> TrialStatus:
    trial = _trial(row)
    kpi = session.get_one(Kpi, trial.kpi)
    runs = session.execute(
        select(Run).where(Run.request_id == row.id).order_by(Run.id)
        .options(selectinload(Run.samples), joinedload(Run.build).joinedload(Build.commit))
    ).scalars().all()  # fmt: skip
    of_commit: dict[str, list[Run]] = {sha: [] for _, sha in trial.columns}
    for run in runs:
        of_commit[run.build.commit.sha].append(run)
    columns = tuple(Column(title, sha, tuple(_values(of_commit[sha], trial.kpi))) for title, sha in trial.columns)
    closed = sum(not run.state.open for run in runs)
    over = row.state is not RequestState.OPEN and closed == len(runs)
    empty = next((column for column in columns if not column.runs), None)
    judgement, failure = None, ""
    if over and empty is not None:
        failure = f"{empty.title} ({empty.sha[:12]}) gave no result: {_reason(of_commit[empty.sha])}"
    elif over:
        judgement = patch_judged(columns) if row.kind == TEST else compared(columns[0], columns[1], kpi.least_effect)
    return TrialStatus(
        id=f"Q{row.id}",
        kind=row.kind,
        asker=row.asker,
        state=row.state.value,
        kpi=kpi.name,
        unit=kpi.unit,
        group=kpi.job.group.name,
        columns=columns,
        done=closed,
        planned=len(runs) if over else max(len(runs), trial.runs * len(trial.columns)),
        over=over,
        report=trial.report,
        judgement=judgement,
        failure=failure,
    )


def _values(runs: Sequence[Run], kpi: int) -> Iterator[tuple[str, float]]:
    for run in runs:
        value = next((sample.value for sample in run.samples if sample.kpi_id == kpi), None)
        if run.state is RunState.DONE and value is not None:
            yield (f"boot {run.boot_id}" if run.boot_id else f"run {run.id}"), value


def _reason(runs: Sequence[Run]) -> str:
    return next((run.message for run in runs if run.message), "it does not build")


def tested_by(context: Context, status: TrialStatus) -> str:
    """The line to copy into a commit message, "" unless the patch brought the level back."""
    if status.judgement is None or status.kind != TEST or status.judgement.outcome is not Outcome.FIXED:
        return ""
    return f"Tested-by: {context.config.mail.sender}"
