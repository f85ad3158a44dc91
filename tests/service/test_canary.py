"""Hosts watched by what they measure: the canary's alarm, the way back, and the commit against itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from bisectbot.bisect import State
from bisectbot.config import CanarySpec
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import Outcome, RunDelivery
from bisectbot.service.care import doubts
from bisectbot.service.care.canary import canary, record
from bisectbot.service.commands import Asker, set_host, submit_bisection
from bisectbot.service.dispatch import dispatch
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.report import report
from bisectbot.service.search.verdicts import verdict_of
from bisectbot.store.tables import (
    Bisection,
    Finding,
    Host,
    HostState,
    Outbox,
    OutboxState,
    Purpose,
    Report,
    ReportState,
    Run,
)
from tests.support import lab as support
from tests.support.lab import BRANCH, HOST, TREE, Lab

LEVEL = 100.0


def watched(lab: Lab, **changes: object) -> Lab:
    """The lab with a canary that is always due; nothing else is left to do on it."""
    sha = lab.upstream.line([LEVEL])[-1]
    lab.upstream.push(sha)
    lab.work()
    spec = CanarySpec(commit=sha, build="b", job="bench", interval=0.001, runs=2, **changes)
    lab.context = replace(lab.context, config=lab.config.model_copy(update={"canary": spec}))
    return lab


def days(lab: Lab, count: int) -> None:
    """So many sittings of the canary, each measured as it was asked for."""
    for _ in range(count):
        canary(lab.context)
        dispatch(lab.context)
        while lab.run() is not None:
            pass
    canary(lab.context)


def host(lab: Lab) -> tuple[HostState, str]:
    with lab.context.database.read() as session:
        row = session.execute(select(Host).where(Host.name == HOST)).scalar_one()
        return row.state, row.reason


def runs(lab: Lab, purpose: Purpose) -> list[Run]:
    with lab.context.database.read() as session:
        return list(session.execute(select(Run).where(Run.purpose == int(purpose)).order_by(Run.id)).scalars())


def test_without_a_commit_there_is_no_canary(lab: Lab):
    assert canary(lab.context) == 0
    assert runs(lab, Purpose.CANARY) == []


def test_a_sitting_is_one_boot_of_this_host_and_the_next_waits(lab: Lab):
    watched(lab)
    canary(lab.context)
    canary(lab.context)
    planned = runs(lab, Purpose.CANARY)
    assert [run.fresh_boot for run in planned] == [True, False]
    assert len({run.wanted_host_id for run in planned}) == 1
    days(lab, 3)
    assert len(runs(lab, Purpose.CANARY)) >= 6
    assert host(lab)[0] is HostState.GOOD


def test_a_host_that_moves_is_suspect_and_gets_canaries_alone(lab: Lab):
    watched(lab)
    days(lab, 12)
    assert host(lab)[0] is HostState.GOOD
    lab.sigma = 0.1
    _moved(lab, 12.0)
    days(lab, 6)
    state, reason = host(lab)
    assert state in {HostState.SUSPECT, HostState.BAD}
    assert "the canary moved by +" in reason
    lab.upstream.push(lab.upstream.line([LEVEL, LEVEL])[-1])
    lab.tick()
    lab.build()
    claimed = lab.claim()
    assert claimed is None or claimed.run in {run.id for run in runs(lab, Purpose.CANARY)}


def test_three_canaries_as_before_clear_a_host_and_three_others_condemn_it(lab: Lab):
    watched(lab)
    days(lab, 6)
    set_host(lab.context, Asker("ada"), HOST, HostState.SUSPECT, "a look")
    with lab.context.database.read() as session:  # a person's word casts no doubt on what was measured before
        assert not doubts.moved(session.execute(select(Host).where(Host.name == HOST)).scalar_one())
    days(lab, 4)
    assert host(lab) == (HostState.GOOD, "3 canaries in a row passed (canary)")
    set_host(lab.context, Asker("ada"), HOST, HostState.SUSPECT, "another look")
    _moved(lab, 30.0)
    days(lab, 4)
    assert host(lab)[0] is HostState.BAD
    _moved(lab, 0.0)
    days(lab, 4)
    assert host(lab)[0] is HostState.UNKNOWN


@pytest.mark.parametrize("mailed", [True, False], ids=["letter written before", "letter written after"])
def test_verdicts_since_the_last_good_canary_are_in_doubt(lab: Lab, monkeypatch: pytest.MonkeyPatch, *, mailed: bool):
    watched(lab)
    days(lab, 5)
    expected: dict[int, tuple[ReportState, bool]] = {}
    if mailed:
        expected[_searched(lab, start=10)] = (ReportState.RELEASED, False)
        days(lab, 1)  # a good canary: what was before it is in no doubt
    else:
        monkeypatch.setattr(support, "STEPS", tuple(step for step in support.STEPS if step is not report))
    second = _searched(lab, start=20)
    lab.sigma = 0.1
    _moved(lab, 12.0)
    days(lab, 6)
    reason = host(lab)[1]
    assert f"1 verdict since its last good one is in doubt: B{second}" in reason
    report(lab.context)
    assert _letters(lab) == {**expected, second: (ReportState.HELD, True)}


def test_failing_canaries_are_no_passes(lab: Lab):
    watched(lab)
    days(lab, 4)
    set_host(lab.context, Asker("ada"), HOST, HostState.SUSPECT, "a look")
    lab.faults = lambda given: (Outcome.FAILED, "no number") if hasattr(given, "run") else None
    days(lab, 5)
    assert host(lab)[0] is HostState.BAD


def test_a_host_in_maintenance_is_left_alone(lab: Lab):
    watched(lab)
    set_host(lab.context, Asker("ada"), HOST, HostState.MAINTENANCE, "new fans")
    before = len(runs(lab, Purpose.CANARY))
    days(lab, 2)
    assert len(runs(lab, Purpose.CANARY)) == before


def test_a_host_that_tells_nights_apart_has_its_false_alarms_counted(lab: Lab):
    watched(lab, aa_boots=4, aa_interval=0.001)
    days(lab, 4)
    with lab.context.database.write() as session:
        quiet = record(session, session.execute(select(Host).where(Host.name == HOST)).scalar_one())
        assert (quiet.alarms, quiet.nights >= 3) == (0, True)
    lab.sigma = 0.1
    _moved(lab, 40.0, only=Purpose.AA)  # the same commit, another number: whatever is found now is false
    days(lab, 3)
    with lab.context.database.write() as session:
        loud = record(session, session.execute(select(Host).where(Host.name == HOST)).scalar_one())
        assert loud.alarms >= 1


def _moved(lab: Lab, by: float, only: Purpose | None = None) -> None:
    """From now on the machine measures other numbers of the same program."""
    real = type(lab).measured

    def measured(given: RunAssignment) -> RunDelivery:
        delivery = real(lab, given)
        if only is not None and given.run not in {run.id for run in runs(lab, only)}:
            return delivery
        samples = tuple((name, value + by) for name, value in delivery.samples)
        return replace(delivery, samples=samples)

    lab.measured = measured  # type: ignore[method-assign]


def _searched(lab: Lab, start: int) -> int:
    """A line of commits with a step, and a bisection of it that is over: its number."""
    shas = lab.upstream.line([LEVEL] * 4 + [LEVEL - 20.0] * 3, start=start)
    lab.upstream.push(shas[-1])
    lab.work()
    submit_bisection(lab.context, Asker("ada"), BisectArguments(TREE, BRANCH, shas[0], shas[-1]))
    lab.work()
    with lab.context.database.read() as session:
        row = session.execute(select(Bisection).order_by(Bisection.id.desc()).limit(1)).scalar_one()
        verdict = verdict_of(row)
        assert verdict is not None
        assert verdict.state is State.CULPRIT
        return row.id


def _letters(lab: Lab) -> dict[int, tuple[ReportState, bool]]:
    """Of each reported bisection, how its report stands and whether its letter waits for a person."""
    with lab.context.database.read() as session:
        query = (
            select(Finding.bisection_id, Report.state, Outbox.state)
            .join(Report, Finding.report_id == Report.id)
            .join(Outbox, Outbox.report_id == Report.id)
        )
        rows = session.execute(query).all()
        return {bisection: (state, letter is OutboxState.AWAITING_APPROVAL) for bisection, state, letter in rows}
