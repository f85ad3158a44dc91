"""Bisections are opened: for steps that are real, and for people who asked.

One bisection per interval of a branch, whatever the number of KPIs, jobs and hosts that moved there: the clearest of
them leads the search, the others join it and are told in the same report.
"""

from __future__ import annotations

from typing import Any

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.bisect import Costs
from bisectbot.config import CostsSpec
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.jobs.kpi import Better
from bisectbot.service.context import Context
from bisectbot.service.search.searches import Settings
from bisectbot.service.series import Measured, measured
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Boot,
    Branch,
    Build,
    BuildState,
    Experiment,
    Head,
    Host,
    HostState,
    Job,
    Kpi,
    Run,
    RunState,
    Series,
    Step,
    StepState,
    Tree,
)

log = structlog.get_logger()

LEARN_FROM = 20
"""So many of the newest builds, boots and runs tell what the next will cost."""


def open_bisections(context: Context) -> int:
    """Open, or join, a bisection for every step that is real; start those that wait, also those that people asked for.

    Returns how many were opened.
    """
    with context.database.write() as session:
        opened = _for_steps(context, session) if context.config.bisection.automatic else 0
        _start_waiting(context, session)
    return opened


def _for_steps(context: Context, session: Session) -> int:
    opened = 0
    steps = session.execute(select(Step).where(Step.state == StepState.REAL).order_by(Step.id)).scalars().all()
    steps = [step for step in steps if step.series.kpi.better != Better.NONE.value]
    for step in sorted(steps, key=_clearness, reverse=True):
        known = _of_interval(session, step)
        if known is None:
            known = _open(context, session, step)
            opened += known is not None
        if known is not None:
            step.state, step.bisection_id = StepState.BISECTING, known.id
            if known.state in {BisectionState.DONE, BisectionState.CANCELLED}:
                step.state = StepState.CLOSED
    return opened


def _clearness(step: Step) -> float:
    """Effect over noise: how few runs a search for it needs."""
    return abs(step.new_level - step.old_level) / max(step.noise, 1e-12)


def _of_interval(session: Session, step: Step) -> Bisection | None:
    """The bisection that already searches, or has searched, these heads of the branch."""
    others = (
        select(Step)
        .join(Series, Step.series_id == Series.id)
        .where(
            Series.branch_id == step.series.branch_id,
            Step.bisection_id.is_not(None),
            Step.first <= step.last,
            Step.last >= step.first,
        )
        .order_by(Step.bisection_id.desc())
    )
    other = session.execute(others.limit(1)).scalars().first()
    return session.get(Bisection, other.bisection_id) if other is not None else None


def _open(context: Context, session: Session, step: Step) -> Bisection | None:
    series = session.get_one(Series, step.series_id)
    branch = session.get_one(Branch, series.branch_id)
    tree = session.get_one(Tree, branch.tree_id)
    spec = context.config.trees.get(tree.name)
    branch_spec = spec.branches.get(branch.name) if spec else None
    if branch_spec is None:
        return None
    recipe = context.config.builds[branch_spec.build].recipe(branch_spec.build)
    heads = measured(session, series)
    good = [head for head in heads if head.number < step.first]
    bad = [head for head in heads if head.number >= step.last]
    if not good or not bad:
        return None
    return create(
        context,
        session,
        tree=tree.name,
        branch_id=branch.id,
        ends=(_sha(session, good[-1]), _sha(session, bad[0])),
        kpi=series.kpi,
        recipe=recipe,
        effect=step.new_level - step.old_level,
        history=good[:-1],
        automatic=True,
    )


def _sha(session: Session, head: Measured) -> str:
    return session.get_one(Head, head.head).commit.sha


def create(
    context: Context,
    session: Session,
    *,
    tree: str,
    branch_id: int | None,
    ends: tuple[str, str],
    kpi: Kpi,
    recipe: BuildRecipe,
    effect: float | None,
    history: list[Measured],
    automatic: bool,
    request_id: int | None = None,
) -> Bisection:
    """A bisection between the commits ``ends`` (good, bad), waiting to be started."""
    policy = context.config.bisection
    group = kpi.job.group_id
    row = Bisection(
        branch_id=branch_id,
        tree=tree,
        job_id=kpi.job_id,
        kpi_id=kpi.id,
        good=ends[0],
        bad=ends[1],
        recipe=wire.to_plain(recipe),
        settings={},
        automatic=automatic,
        request_id=request_id,
        state=BisectionState.WAITING,
        created=now(session),
    )
    session.add(row)
    session.flush()
    settings = Settings(
        effect=effect,
        history=tuple(
            (point.host, point.boot, (point.value,), point.at) for head in history[-10:] for point in head.points
        ),
        confidence=policy.confidence,
        costs=costs(context, session, kpi.job, recipe),
        hosts=max(1, _working_hosts(session, group)),
        budget_s=policy.budget,
        seed=row.id,
    )
    row.settings = wire.to_plain(settings)
    log.info("bisection opened", bisection=row.id, good=ends[0][:12], bad=ends[1][:12], kpi=kpi.name, effect=effect)
    return row


def _working_hosts(session: Session, group: int) -> int:
    states = [HostState.GOOD, HostState.UNKNOWN]
    query = select(func.count()).where(Host.group_id == group, Host.state.in_(states))
    return int(session.execute(query).scalar_one())


def costs(context: Context, session: Session, job: Job, recipe: BuildRecipe) -> Costs:
    """What builds, boots and runs of this kind took lately; what the configuration says where there were none."""
    spec: CostsSpec = context.config.costs
    built = select(Build.seconds).where(
        Build.recipe_digest == recipe.digest(), Build.state == BuildState.READY
    ).order_by(Build.id.desc())  # fmt: skip
    ran = select(Run.seconds).where(Run.job_id == job.id, Run.state == RunState.DONE).order_by(Run.id.desc())
    booted = select(Boot.seconds).join(Host, Boot.host_id == Host.id).where(
        Host.group_id == job.group_id, Boot.failure == ""
    ).order_by(Boot.id.desc())  # fmt: skip

    def lately(query: Any) -> float | None:
        values = [float(v) for v in session.execute(query.limit(LEARN_FROM)).scalars()]
        return sum(values) / len(values) if values else None

    run_s, boot_s = lately(ran), lately(booted)
    if boot_s is None and run_s is not None:
        boot_s = 0.0  # runs were made and nothing was ever booted for them
    build_s = lately(built)
    return Costs(
        build_s=spec.build if build_s is None else build_s,
        builders=spec.builders,
        boot_s=spec.boot if boot_s is None else boot_s,
        run_s=spec.run if run_s is None else run_s,
        boot_failure_s=spec.boot_failure,
    )


def _start_waiting(context: Context, session: Session) -> None:
    """Start what waits: what a person asked for at once, automatic ones within the daily cap of host hours."""
    day_ago = now(session) - context.clock.real(24 * 3600.0)
    used = (
        select(func.sum(Run.host_s))
        .join(Experiment, Run.experiment_id == Experiment.id)
        .join(Bisection, Experiment.bisection_id == Bisection.id)
        .where(Bisection.automatic, Run.finished > day_ago)
    )
    left = context.config.bisection.daily_budget - float(session.execute(used).scalar_one() or 0.0)
    waiting = select(Bisection).where(Bisection.state == BisectionState.WAITING).order_by(Bisection.id)
    for bisection in session.execute(waiting).scalars():
        if bisection.request_id is not None or left > 0:
            bisection.state, bisection.reason = BisectionState.RUNNING, ""
        else:
            bisection.reason = "today's host hours for automatic bisections are used up"
