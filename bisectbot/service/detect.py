"""Series that have new samples are looked at; what the detector sees becomes steps.

A step keeps its id while its index moves within its interval. One that the detector no longer sees is withdrawn, as
long as nothing was built upon it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from bisectbot.detect import Step as Found
from bisectbot.detect import find_steps
from bisectbot.service.context import Context
from bisectbot.service.series import Measured, breaks, kpi_spec, measured
from bisectbot.store.database import now
from bisectbot.store.tables import Run, RunState, Series, Step, StepState

log = structlog.get_logger()

ENGINE = "detect/1"
MISSED = 0.05
"""How often a re-test does not see a step that is there."""
_MOVABLE = {StepState.SUSPECTED}


def detect(context: Context) -> int:
    """Look at every series with new samples; returns how many steps are new."""
    with context.database.write() as session:
        stale = list(session.execute(select(Series.id).where(Series.stale)).scalars())
        session.execute(update(Series).where(Series.id.in_(stale)).values(stale=False))
    new = 0
    for series in stale:
        with context.database.read() as session:
            row = session.get_one(Series, series)
            heads = measured(session, row)
            accepted = _accepted(session, series, heads)
            kpi = kpi_spec(row.kpi)
        steps = find_steps(
            [head.values for head in heads],
            sessions=[head.sessions for head in heads],
            breaks=breaks(heads),
            anchors=accepted,
            kpi=kpi,
            least_probability=context.config.bisection.least_probability,
        )
        with context.database.write() as session:
            new += _record(session, series, heads, steps, context.config.bisection.least_probability)
    return new


def _accepted(session: Session, series: int, heads: list[Measured]) -> list[int]:
    """Indexes of the heads whose step somebody accepted."""
    query = select(Step.head_id).where(Step.series_id == series, Step.state == StepState.ACCEPTED)
    accepted = set(session.execute(query).scalars())
    return [i for i, head in enumerate(heads) if i > 0 and head.head in accepted]


def _record(session: Session, series: int, heads: list[Measured], found: list[Found], least: float) -> int:
    known = session.execute(select(Step).where(Step.series_id == series)).scalars().all()
    tested = set(session.execute(select(Run.step_id).where(Run.step_id.in_([old.id for old in known]))).scalars())
    seen: set[int] = set()
    new = 0
    for step in found:
        if _refuted(known, tested, heads, step, least):
            continue
        same = next((old for old in known if old.id not in seen and _same(old, heads, step)), None)
        if same is None:
            same = _add(session, series, heads, step)
            new += 1
        elif same.state in _MOVABLE and same.id not in tested:
            _update(same, heads, step)
        seen.add(same.id)
    for old in known:
        if old.id not in seen and old.state is StepState.SUSPECTED and old.id not in tested:
            withdraw(session, old, "the detector no longer sees it")
    return new


def _same(old: Step, heads: list[Measured], step: Found) -> bool:
    """Overlapping intervals and the same sign: the same step."""
    if old.state in {StepState.WITHDRAWN, StepState.REFUTED}:
        return False
    first, last = heads[step.interval[0]].number, heads[step.interval[1]].number
    return old.first <= last and first <= old.last and _same_sign(old, step)


def _same_sign(old: Step, step: Found) -> bool:
    return (old.new_level - old.old_level > 0) == (step.effect > 0)


def _refuted(
    known: Sequence[Step], tested: Collection[int | None], heads: list[Measured], step: Found, least: float
) -> bool:
    """Whether earlier re-tests leave so little of a suspicion that it is not worth another.

    A re-test misses a step with probability MISSED: that much remains of the odds. So one that was missed comes back
    when later heads make it plain, and one that is none does not come back for ever.
    """
    first, last = heads[step.interval[0]].number, heads[step.interval[1]].number
    tests = 0
    for old in known:
        if old.state is not StepState.REFUTED or not _same_sign(old, step):
            continue
        if old.id not in tested:  # nothing that is built changes there
            if old.first <= first and last <= old.last:
                return True
        elif first <= old.head.number <= last:
            tests += 1
    return tests > 0 and _odds(step.probability) * MISSED**tests < _odds(least)


def _odds(probability: float) -> float:
    return probability / (1 - probability)


def _add(session: Session, series: int, heads: list[Measured], step: Found) -> Step:
    row = Step(series_id=series, engine=ENGINE, found=now(session), state=StepState.SUSPECTED)
    _update(row, heads, step)
    session.add(row)
    session.flush()
    log.info("step", step=row.id, series=series, head=row.last, percent=row.percent, probability=row.probability)
    return row


def _update(row: Step, heads: list[Measured], step: Found) -> None:
    row.head_id = heads[step.index].head
    row.parent_head_id = heads[step.index - 1].head
    row.first, row.last = heads[step.interval[0]].number, heads[step.interval[1]].number
    row.old_level, row.new_level = step.before, step.after
    row.noise = max(step.noise_before, step.noise_after)
    row.percent = step.percent
    row.probability = step.probability
    row.direction = step.direction.value


def withdraw(session: Session, step: Step, why: str, state: StepState = StepState.WITHDRAWN) -> None:
    """End a suspicion; its runs that have not begun are cancelled."""
    step.state, step.reason = state, why
    session.execute(
        update(Run)
        .where(Run.step_id == step.id, Run.state.in_([RunState.PLANNED, RunState.QUEUED]))
        .values(state=RunState.CANCELLED, message=f"step S{step.id} is {state.value}: {why}")
    )
    log.info("step ended", step=step.id, state=state.value, why=why)
