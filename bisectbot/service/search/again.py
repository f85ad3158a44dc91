"""A bisection that is over goes on with what it has measured; where its budget is spent, with more runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from bisectbot.bisect import State
from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.service.context import Context
from bisectbot.service.search.searches import Settings, load
from bisectbot.service.search.verdicts import verdict_of
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Experiment,
    ExperimentState,
    Finding,
    Request,
    RequestState,
    Step,
    StepState,
)

OVER = frozenset({BisectionState.DONE, BisectionState.CANCELLED})


@dataclass(frozen=True)
class More:
    """More runs for the commits that a bisection left undecided.

    ``host_s``: what they take of hosts at most (farm seconds), each in a boot of its own; ``budget_s``: what the
    search may have spent when they are made.
    """

    bisection: int
    runs: int
    undecided: int
    group: str
    host_s: float
    budget_s: float


def offer(context: Context, session: Session, row: Bisection, runs: int) -> More:
    """What ``runs`` more would take. Raises UserError where nothing is undecided, or the bisection cannot go on."""
    _may_go_on(session, row)
    if not row.history:
        raise UserError(f"B{row.id} has measured nothing yet: {row.reason or 'it was stopped'}; say `retry B{row.id}`")
    search = load(context, session, row).search
    verdict = search.verdict()
    if verdict.state not in {State.RUNNING, State.GAVE_UP}:
        raise UserError(
            f"B{row.id} has no undecided commit: {verdict.state.value.replace('_', ' ')} with "
            f"{verdict.probability:.1%}; to measure all of it anew, ask for a new bisection"
        )
    settings = wire.from_plain(Settings, row.settings)
    host_s = runs * (settings.costs.boot_s + settings.costs.run_s)
    return More(
        bisection=row.id,
        runs=runs,
        undecided=_undecided([p for _, p in search.posterior()], settings.confidence),
        group=row.job.group.name,
        host_s=host_s,
        budget_s=search.spent_s() + host_s,
    )


def _undecided(probability: list[float], confidence: float) -> int:
    """How few commits together are as likely as a verdict must be."""
    goal, seen = confidence * sum(probability), 0.0
    for count, one in enumerate(sorted(probability, reverse=True), 1):
        seen += one
        if seen >= goal:
            return count
    return len(probability)


def resume(session: Session, row: Bisection, more: More | None = None) -> None:
    """Let it wait for its turn again. Raises UserError where it cannot go on, or only with more runs."""
    _may_go_on(session, row)
    verdict = verdict_of(row)
    settings = wire.from_plain(Settings, row.settings)
    if more is not None:
        settings = replace(settings, budget_s=more.budget_s)
    elif verdict is not None and row.state is BisectionState.DONE:
        ended = f"B{row.id} ended as {verdict.state.value.replace('_', ' ')}"
        if verdict.state is State.GAVE_UP:
            raise UserError(f"{ended}: {row.reason}; say how many runs it may have, as in `retry B{row.id} runs=20`")
        raise UserError(f"{ended}: {row.reason}; to measure it anew, ask for a new bisection")
    newest = select(func.max(Experiment.number)).where(Experiment.bisection_id == row.id)
    last = session.execute(newest).scalar_one_or_none()
    row.settings = wire.to_plain(replace(settings, since=0 if last is None else last + 1))
    row.state, row.verdict, row.finished, row.reason = BisectionState.WAITING, None, None, ""
    row.stage, row.verification, row.reported = "", None, False
    mine = Experiment.bisection_id == row.id, Experiment.state == ExperimentState.PENDING
    session.execute(
        update(Experiment).where(*mine).values(state=ExperimentState.LOST, reason="the bisection was stopped")
    )
    waits = Step.bisection_id == row.id, Step.state == StepState.CLOSED
    session.execute(update(Step).where(*waits).values(state=StepState.BISECTING))
    if row.request_id is not None:
        session.get_one(Request, row.request_id).state = RequestState.RUNNING


def _may_go_on(session: Session, row: Bisection) -> None:
    if row.state not in OVER:
        raise UserError(f"B{row.id} is {row.state.value}; only one that is over is retried")
    if session.execute(select(Finding.id).filter_by(bisection_id=row.id).limit(1)).first() is not None:
        raise UserError(f"B{row.id} has been reported; what was published stays. Ask for a new bisection")
