"""Running bisections take their next step: results go in, experiments come out, until there is a verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from bisectbot.service.search.candidates import lay_out, save
from bisectbot.service.search.experiments import WORKING, Wanted, record
from bisectbot.service.search.required import required, unsteady
from bisectbot.service.search.searches import ENGINE, Loaded, close, load
from bisectbot.service.search.verdicts import verdict_of
from bisectbot.service.search.verify import STAGE, advance_proofs, begin
from bisectbot.source.content import contents
from bisectbot.source.history import Change, CommitInfo, changes, facts
from bisectbot.source.merged import merged
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Experiment,
    Host,
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
        close(loaded.experiments)
        checking = row.stage == STAGE
        wrong = unsteady(loaded)
        if loaded.lost >= LOST_IN_A_ROW:
            wrong = f"{loaded.lost} experiments in a row gave no result; look at the hosts"
        if wrong and not checking:
            finish(session, row, wrong)
            return 0
        situation = _situation(session, row, loaded)
    verdict = loaded.search.verdict()
    if checking or verdict.state is not State.RUNNING:
        return _after(context, bisection, loaded, verdict, checking=checking)
    if situation.idle < 1:
        return 0
    first = required(loaded)
    planned = first[: situation.idle] or loaded.search.plan(
        situation.idle, booted=situation.booted, built=situation.built, pending=situation.pending
    )
    if not planned and not situation.pending:
        return _stuck(context, bisection, verdict)
    prepared = [_prepare(context, loaded, experiment) for experiment in planned]
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        if row.state is not BisectionState.RUNNING:
            return 0
        recipe = wire.from_plain(BuildRecipe, row.recipe)
        told: dict[str, object] = {"idle": situation.idle, "booted": situation.booted, "built": situation.built}
        told["pending"] = [wire.to_plain(experiment) for experiment in situation.pending]
        for experiment, commit in zip(planned, prepared, strict=True):
            wanted = (
                commit if isinstance(commit, str) else Wanted(catalog.commit_row(session, *commit), recipe, row.job)
            )
            record(session, row, experiment, wanted, {**told, "host": experiment.host, "required": bool(first)})
    return len(planned)


def _stuck(context: Context, bisection: int, verdict: Verdict) -> int:
    """Hosts are idle, nothing is on its way, and the search asks for nothing: it goes no further."""
    reason = "the search knows no experiment that would tell more, and is not certain"
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        row.verdict = wire.to_plain(replace(verdict, state=State.GAVE_UP, culprit=None, reason=reason))
        finish(session, row, reason)
    log.warning("bisection is stuck", bisection=bisection, suspects=verdict.suspects, probability=verdict.probability)
    return 0


def _after(context: Context, bisection: int, loaded: Loaded, verdict: Verdict, *, checking: bool) -> int:
    """The search is over: what it named is checked, and once that is over, too, the bisection is."""
    told = advance_proofs(context, bisection) if checking else begin(context, bisection, loaded, verdict)
    if told.over:
        with context.database.write() as session:
            row = session.get_one(Bisection, bisection)
            if row.state is BisectionState.RUNNING:
                finish(session, row, told.reason)
    return 0


def _laid_out(context: Context, bisection: int) -> bool:
    """List the candidates, once; they stay the same whatever becomes of the branch."""
    with context.database.read() as session:
        row = session.get_one(Bisection, bisection)
        if row.history:
            return True
        _ = row.branch  # read while the session is open
    try:
        layout = lay_out(context, row)
    except UserError as error:
        with context.database.write() as session:
            finish(session, session.get_one(Bisection, bisection), str(error))
        return False
    context.mirror.keep(row.tree, f"bisection/B{bisection}/good", 0, row.good)
    context.mirror.keep(row.tree, f"bisection/B{bisection}/bad", 0, row.bad)
    artifact = save(context.artifacts, layout)
    with context.database.write() as session:
        session.get_one(Bisection, bisection).history = artifact
    return True


def _situation(session: Session, row: Bisection, loaded: Loaded) -> _Situation:
    hosts = session.execute(select(Host).where(Host.group_id == row.job.group_id, Host.state.in_(WORKING))).scalars()
    built = {item.signature: item.node for item in loaded.experiments if item.signature}
    names = {host.name: host.booted for host in hosts}
    booted = {
        loaded.keys.now.get(name, name): built[signature] for name, signature in names.items() if signature in built
    }
    nodes = {item.node for item in loaded.experiments if item.signature} | {node for node, _ in loaded.layout.images}
    singles = tuple(sorted(node for node in nodes if isinstance(node, int)))
    pending = tuple(item.planned for item in loaded.pending)
    return _Situation(max(0, len(names) - len(pending)), booted, singles, pending)


def _prepare(context: Context, loaded: Loaded, planned: Planned) -> tuple[CommitInfo, Change, str] | str:
    """Find the commit to build: a candidate, or a merge of several that is made here; or why there is none."""
    git = context.mirror.git
    good, bad = loaded.history.shas[loaded.history.good], loaded.history.shas[loaded.history.bad]
    shas = loaded.history.shas
    if isinstance(planned.commit, int):
        sha = shas[planned.commit]
    else:
        try:
            sha = merged(git, [shas[node] for node in planned.commit], history=(bad, good))
        except Untestable as conflict:
            return str(conflict)
    infos = facts(git, [sha])
    [identity] = changes(git, infos)
    return infos[0], identity, contents(git, infos)[sha]


def finish(session: Session, row: Bisection, reason: str) -> None:
    """End a bisection, with the verdict that is stored or with none, and close what waited for it."""
    row.state, row.finished, row.reason, row.engine = BisectionState.DONE, now(session), reason, ENGINE
    session.execute(update(Step).where(Step.bisection_id == row.id).values(state=StepState.CLOSED))
    cancel_runs(session, row, "the bisection is over")
    if row.request_id is not None:
        request = session.get_one(Request, row.request_id)
        request.state, request.answer = RequestState.DONE, reason
    verdict = verdict_of(row)
    log.info("bisection over", bisection=row.id, state=verdict.state.value if verdict else "none", reason=reason)


def cancel_runs(session: Session, row: Bisection, why: str) -> int:
    """Cancel the bisection's runs that are still to come; returns how many."""
    mine = select(Experiment.id).where(Experiment.bisection_id == row.id)
    states = [state for state in RunState if state.open]
    open_runs = (Run.experiment_id.in_(mine), Run.state.in_(states))
    count = session.execute(select(func.count()).where(*open_runs)).scalar_one()
    session.execute(update(Run).where(*open_runs).values(state=RunState.CANCELLED, message=why))
    return int(count)
