"""Running bisections take their next step: results go in, experiments come out, until there is a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from bisectbot.bisect import Experiment as Planned
from bisectbot.bisect import State, Verdict
from bisectbot.errors import Untestable, UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.plan import Why, want_build, want_runs
from bisectbot.service.searches import ENGINE, Known, Loaded, close, load, save_history
from bisectbot.source.history import Change, CommitInfo, changes, commits, facts
from bisectbot.source.merged import merged
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    BuildState,
    Experiment,
    ExperimentState,
    Host,
    HostState,
    Purpose,
    Request,
    RequestState,
    Run,
    RunState,
    Step,
    StepState,
)

log = structlog.get_logger()

LOST_IN_A_ROW = 10
"""So many experiments without any result end a bisection: the machinery, not the search, needs help."""


@dataclass(frozen=True)
class _Situation:
    """What the engine is told before it plans."""

    idle: int
    booted: dict[str, int | tuple[int, ...]]
    built: tuple[int, ...]
    pending: tuple[Planned, ...]


@dataclass(frozen=True)
class _Prepared:
    """An experiment with the commit that it builds, or why there is none: several commits do not merge."""

    planned: Planned
    commit: tuple[CommitInfo, Change] | str


def advance(context: Context) -> int:
    """Take every running bisection as far as it goes now; returns how many experiments were planned."""
    with context.database.read() as session:
        running = select(Bisection.id).where(Bisection.state == BisectionState.RUNNING).order_by(Bisection.id)
        bisections = list(session.execute(running).scalars())
    return sum(_advance(context, bisection) for bisection in bisections)


def _advance(context: Context, bisection: int) -> int:
    if not _laid_out(context, bisection):
        return 0
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        loaded = load(context, session, row)
        close(loaded)
        verdict = loaded.search.verdict()
        if loaded.lost >= LOST_IN_A_ROW:
            finish(session, row, None, f"{loaded.lost} experiments in a row gave no result; look at the hosts")
            return 0
        if verdict.state is not State.RUNNING:
            finish(session, row, verdict, verdict.reason)
            return 0
        situation = _situation(session, row, loaded)
        if situation.idle < 1:
            return 0
    planned = loaded.search.plan(
        situation.idle, booted=situation.booted, built=situation.built, pending=situation.pending
    )
    prepared = [_prepare(context, loaded, experiment) for experiment in planned]
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        if row.state is not BisectionState.RUNNING:
            return 0
        told = {"idle": situation.idle, "booted": situation.booted, "built": situation.built}
        told["pending"] = [wire.to_plain(experiment) for experiment in situation.pending]
        for number, experiment in enumerate(prepared, len(loaded.experiments)):
            _record(session, row, number, experiment, told)
    return len(planned)


def _laid_out(context: Context, bisection: int) -> bool:
    """List the candidates, once; they stay the same whatever becomes of the branch."""
    with context.database.read() as session:
        row = session.get_one(Bisection, bisection)
        if row.history:
            return True
        good, bad, tree = row.good, row.bad, row.tree
    try:
        history = commits(context.mirror.git, good, bad)
    except UserError as error:
        with context.database.write() as session:
            finish(session, session.get_one(Bisection, bisection), None, str(error))
        return False
    context.mirror.keep(tree, f"bisection/B{bisection}/good", 0, good)
    context.mirror.keep(tree, f"bisection/B{bisection}/bad", 0, bad)
    artifact = save_history(context.artifacts, history)
    with context.database.write() as session:
        session.get_one(Bisection, bisection).history = artifact
    return True


def _situation(session: Session, row: Bisection, loaded: Loaded) -> _Situation:
    working = (HostState.GOOD, HostState.UNKNOWN)
    hosts = session.execute(select(Host).where(Host.group_id == row.job.group_id, Host.state.in_(working))).scalars()
    built = {signature: item.node for item in loaded.experiments if (signature := _signature(item))}
    names = {host.name: host.booted for host in hosts}
    booted = {name: built[signature] for name, signature in names.items() if signature in built}
    nodes = {item.node for item in loaded.experiments if _signature(item)}
    singles = tuple(sorted(node for node in nodes if isinstance(node, int)))
    pending = tuple(item.planned for item in loaded.pending)
    return _Situation(max(0, len(names) - len(pending)), booted, singles, pending)


def _signature(item: Known) -> str:
    """What an experiment's build made, "" while it is not ready."""
    build = item.experiment.build
    return build.signature if build is not None and build.state is BuildState.READY else ""


def _prepare(context: Context, loaded: Loaded, planned: Planned) -> _Prepared:
    """Find the commit to build: a candidate, or a merge of several that is made here."""
    git = context.mirror.git
    good, bad = loaded.history.shas[loaded.history.good], loaded.history.shas[loaded.history.bad]
    shas = loaded.history.shas
    if isinstance(planned.commit, int):
        sha = shas[planned.commit]
    else:
        try:
            sha = merged(git, [shas[node] for node in planned.commit], history=(bad, good))
        except Untestable as conflict:
            return _Prepared(planned, str(conflict))
    infos = facts(git, [sha])
    [identity] = changes(git, infos)
    return _Prepared(planned, (infos[0], identity))


def _record(session: Session, row: Bisection, number: int, prepared: _Prepared, told: dict[str, object]) -> None:
    planned = prepared.planned
    experiment = Experiment(
        bisection_id=row.id,
        number=number,
        nodes=[planned.commit] if isinstance(planned.commit, int) else list(planned.commit),
        sha="" if isinstance(prepared.commit, str) else prepared.commit[0].sha,
        runs=planned.runs,
        fresh_boot=planned.fresh_boot,
        told=told,
        created=now(session),
    )
    session.add(experiment)
    if isinstance(prepared.commit, str):
        experiment.state, experiment.reason = ExperimentState.SKIPPED, prepared.commit
        return
    session.flush()
    commit = catalog.commit_row(session, *prepared.commit)
    build = want_build(session, commit.id, wire.from_plain(BuildRecipe, row.recipe), Purpose.BISECTION)
    experiment.build_id = build.id
    purpose = Purpose.BISECTION if row.request_id is None else Purpose.REQUEST
    why = Why(purpose, branch_id=row.branch_id, experiment_id=experiment.id)
    runs = want_runs(session, build, row.job, planned.runs, why, fresh_boot=planned.fresh_boot)
    if planned.host is not None and runs:
        host = session.execute(select(Host.id).where(Host.name == planned.host)).scalar_one_or_none()
        for run in runs:
            run.wanted_host_id = host
    log.info("experiment", bisection=row.id, number=number, commit=commit.sha[:12], runs=planned.runs)


def finish(session: Session, row: Bisection, verdict: Verdict | None, reason: str) -> None:
    """Store the verdict (None: there is none, ``reason`` says why) and close what waited for it."""
    row.state, row.finished, row.reason = BisectionState.DONE, now(session), reason
    row.verdict = wire.to_plain(verdict) if verdict is not None else None
    row.engine = ENGINE
    session.execute(update(Step).where(Step.bisection_id == row.id).values(state=StepState.CLOSED))
    cancel_runs(session, row, "the bisection is over")
    if row.request_id is not None:
        request = session.get_one(Request, row.request_id)
        request.state, request.answer = RequestState.DONE, reason
    log.info("bisection over", bisection=row.id, state=verdict.state.value if verdict else "none", reason=reason)


def cancel_runs(session: Session, row: Bisection, why: str) -> int:
    """Cancel the bisection's runs that are still to come; returns how many."""
    mine = select(Experiment.id).where(Experiment.bisection_id == row.id)
    states = [state for state in RunState if state.open]
    open_runs = (Run.experiment_id.in_(mine), Run.state.in_(states))
    count = session.execute(select(func.count()).where(*open_runs)).scalar_one()
    session.execute(update(Run).where(*open_runs).values(state=RunState.CANCELLED, message=why))
    return int(count)
