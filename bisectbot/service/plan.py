"""New heads become builds and runs. What it costs does not depend on how much was measured before."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.pace import begin_now, policy_of, spec_of
from bisectbot.source.watch import Every
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Artifact,
    Branch,
    Build,
    BuildState,
    Commit,
    Head,
    HeadState,
    Job,
    Purpose,
    Run,
    RunState,
)

log = structlog.get_logger()


@dataclass(frozen=True)
class Why:
    """What a run is for: the row that it belongs to, if any, decides who reads its result."""

    purpose: Purpose
    branch_id: int | None = None
    experiment_id: int | None = None
    step_id: int | None = None
    request_id: int | None = None


def plan(context: Context) -> int:
    """Plan every new head of every configured branch; returns how many."""
    with context.database.write() as session:
        new = session.execute(
            select(Head).join(Branch).where(Head.state == HeadState.NEW).order_by(Head.branch_id, Head.number.desc())
        ).scalars()
        heads = begin_now(context, session, new.all())
        for head in heads:
            _plan_head(context, session, head)
        return len(heads)


def _plan_head(context: Context, session: Session, head: Head) -> None:
    branch = spec_of(context, head)
    assert branch is not None, "heads of other branches are not begun"
    newest = _newest(session, head)
    if newest and policy_of(branch).every is Every.HEAD:
        _coalesce_older(session, head)
    recipe = context.config.builds[branch.build].recipe(branch.build)
    purpose = Purpose.NEWEST if newest else Purpose.BACKFILL
    build = want_build(session, head.commit_id, recipe, purpose)
    for name in branch.jobs:
        for job in context.config.units(name):
            row = catalog.job_row(session, job)
            for kpi in row.kpis:
                catalog.series_row(session, head.branch_id, kpi.id)
            missing = context.config.jobs[name].runs - _already(session, build, row)
            want_runs(session, build, row, max(0, missing), Why(purpose, branch_id=head.branch_id))
    head.state, head.begun = HeadState.PLANNED, now(session)
    name = f"{head.branch.tree.name}:{head.branch.name}"
    log.info("head planned", branch=name, head=head.number, commit=head.commit.sha[:12])


def _newest(session: Session, head: Head) -> bool:
    later = select(Head.id).where(Head.branch_id == head.branch_id, Head.number > head.number, ~Head.backfill)
    return not head.backfill and session.execute(later.limit(1)).first() is None


def _coalesce_older(session: Session, newest: Head) -> None:
    """Heads that nobody has begun to build are superseded; their commits stay candidates of a bisection."""
    older = session.execute(
        select(Head, Build)
        .join(Build, Build.commit_id == Head.commit_id)
        .where(
            Head.branch_id == newest.branch_id,
            Head.state == HeadState.PLANNED,
            ~Head.backfill,
            Head.number < newest.number,
            Build.state.in_([BuildState.PLANNED, BuildState.QUEUED]),
        )
    )
    for head, build in older.all():
        session.execute(
            update(Run)
            .where(
                Run.build_id == build.id,
                Run.state == RunState.PLANNED,
                Run.branch_id == newest.branch_id,
                Run.experiment_id.is_(None),
                Run.step_id.is_(None),
            )
            .values(state=RunState.CANCELLED, message=f"head {head.number} was superseded before its build began")
        )
        head.state = HeadState.COALESCED
        build.state = BuildState.PLANNED  # queued again if somebody else waits for it


def want_build(session: Session, commit_id: int, recipe: BuildRecipe, purpose: Purpose) -> Build:
    """The build of a commit, planned if it is not there; at least as urgent as ``purpose``.

    A build that the machinery gave up is tried again when it is wanted again.
    """
    identity = {"commit_id": commit_id, "recipe_digest": recipe.digest()}
    build = catalog.find_or_add(session, Build, identity, recipe=wire.to_plain(recipe), created=now(session))
    build.rank = min(build.rank, int(purpose))
    if build.state is BuildState.PLANNED:
        _adopt(session, build)
    if build.state is BuildState.FAILED:
        build.state, build.attempts, build.not_before = BuildState.PLANNED, 0, 0.0
    return build


def _adopt(session: Session, build: Build) -> None:
    """Take over what was built from the same content under another commit id: the branch was rebuilt since."""
    content = session.get_one(Commit, build.commit_id).content
    if not content:
        return
    same = (
        select(Build)
        .join(Commit, Build.commit_id == Commit.id)
        .where(
            Commit.content == content,
            Build.recipe_digest == build.recipe_digest,
            Build.state == BuildState.READY,
            Build.id != build.id,
        )
        .order_by(Build.id.desc())
        .limit(1)
    )
    known = session.execute(same).scalar_one_or_none()
    if known is not None:
        build.state, build.finished = BuildState.READY, now(session)
        build.artifact, build.signature = known.artifact, known.signature
        build.message = f"the same as build U{known.id}: equal content"
        for artifact in session.execute(select(Artifact).where(Artifact.build_id == known.id)).scalars().all():
            session.add(Artifact(build_id=build.id, name=artifact.name, sha256=artifact.sha256, size=artifact.size))


def want_runs(session: Session, build: Build, job: Job, count: int, why: Why, *, fresh_boot: bool = False) -> list[Run]:
    """Plan ``count`` runs; queued at once if the build is ready, refused (none) if it is untestable.

    With ``fresh_boot`` the first of them boots anew and the others stay on that boot.
    """
    if build.state is BuildState.UNTESTABLE:
        return []
    state = RunState.QUEUED if build.state is BuildState.READY else RunState.PLANNED
    time = now(session)
    runs = [
        Run(
            build_id=build.id,
            job_id=job.id,
            group_id=job.group_id,
            branch_id=why.branch_id,
            experiment_id=why.experiment_id,
            step_id=why.step_id,
            request_id=why.request_id,
            purpose=int(why.purpose),
            state=state,
            fresh_boot=fresh_boot and number == 0,
            created=time,
        )
        for number in range(count)
    ]
    session.add_all(runs)
    session.flush()
    return runs


def _already(session: Session, build: Build, job: Job) -> int:
    """Runs of the same build and job that count for a head's series: done, or still to come."""
    states = [RunState.DONE, *(state for state in RunState if state.open)]
    query = select(func.count()).where(
        Run.build_id == build.id,
        Run.job_id == job.id,
        Run.state.in_(states),
        Run.experiment_id.is_(None),
        Run.request_id.is_(None),
    )
    return int(session.execute(query).scalar_one())
