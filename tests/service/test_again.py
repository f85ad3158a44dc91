"""A bisection that is over is taken up again: what it measured stays, what it may spend is asked for."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.service import commands
from bisectbot.service.advance import LOST_IN_A_ROW
from bisectbot.service.commands import Asker
from bisectbot.service.people import asks, status
from bisectbot.service.people.asks import Limits
from bisectbot.service.people.requests import BisectArguments
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    CommandLog,
    Report,
    Request,
    RequestState,
    Run,
    RunState,
    Step,
    StepState,
)
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, TREE, Lab

LEVELS = [100.0] * 11 + [90.0] * 9
ADA = Asker("ada", "irc")


def poor(make: MakeLab) -> tuple[Lab, list[str]]:
    """A bisection, B1 of request Q1, that has given up: its budget is forty minutes of hosts."""
    lab = make({"bisection": {"budget": "40m", "automatic": False}})
    shas = ask(lab)
    lab.work()
    assert status.bisection_status(lab.context, "B1").line.verdict == "gave_up"
    return lab, shas


def ask(lab: Lab) -> list[str]:
    shas = lab.upstream.line(LEVELS)
    lab.upstream.push(shas[-1])
    lab.tick()
    commands.submit_bisection(lab.context, "tester", BisectArguments(TREE, BRANCH, shas[0], shas[-1]))
    return shas


def test_one_that_gave_up_goes_on_with_more_runs_where_it_was(make: MakeLab) -> None:
    lab, shas = poor(make)
    before = status.bisection_status(lab.context, "B1")
    with pytest.raises(UserError, match=r"B1 ended as gave up: .*; say how many runs .* `retry B1 runs=20`"):
        commands.retry(lab.context, "ops", "B1")
    more = asks.quote_more(lab.context, "B1", 40)
    assert 2 <= more.undecided < len(shas)
    assert asks.order_more(lab.context, ADA, more, None) == ("Q2", True)
    lab.work()
    after = status.bisection_status(lab.context, "B1")
    assert after.line.culprit == shas[11]
    measured = [row.values for row in before.experiments]
    assert [row.values for row in after.experiments][: len(measured)] == measured
    assert after.host_s > before.host_s
    assert commands.request_answer(lab.context, "Q2")[0] == "B1"
    assert "it goes on as Q2" in commands.request_answer(lab.context, "Q1")[1]
    with lab.context.database.read() as session:
        assert {row.state for row in session.execute(select(Request)).scalars()} == {RequestState.DONE}
        assert session.execute(select(Report.sha)).scalars().all() == [shas[11]]
        logged = session.execute(select(CommandLog.raw).order_by(CommandLog.id.desc()).limit(1)).scalar_one()
    assert logged == "retry B1 runs=40"


def test_more_runs_are_no_more_than_were_asked_for(make: MakeLab) -> None:
    lab, _ = poor(make)
    before = lab.runs_made
    asks.order_more(lab.context, ADA, asks.quote_more(lab.context, "B1", 3), None)
    lab.work()
    assert status.bisection_status(lab.context, "B1").line.verdict == "gave_up"
    assert 1 <= lab.runs_made - before <= 5  # a boot of three runs may be the last


def test_nothing_undecided_nothing_more(lab: Lab) -> None:
    ask(lab)
    with pytest.raises(UserError, match="there is no bisection B1"):
        asks.quote_more(lab.context, "B1", 20)
    lab.tick()
    with pytest.raises(UserError, match="B1 is running; only one that is over is retried"):
        asks.quote_more(lab.context, "B1", 20)
    lab.work()
    for refused in (lambda: asks.quote_more(lab.context, "B1", 20), lambda: commands.retry(lab.context, "ops", "B1")):
        with pytest.raises(UserError, match="B1 has been reported; what was published stays"):
            refused()


def test_ends_that_are_alike_have_no_undecided_commit(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 8)
    lab.upstream.push(shas[-1])
    lab.tick()
    commands.submit_bisection(lab.context, "tester", BisectArguments(TREE, BRANCH, shas[0], shas[-1]))
    lab.work()
    with pytest.raises(UserError, match=r"B1 has no undecided commit: not reproduced with \d+\.\d%"):
        asks.quote_more(lab.context, "B1", 20)
    with pytest.raises(UserError, match=r"B1 ended as not reproduced: .*; to measure it anew"):
        commands.retry(lab.context, "ops", "B1")


def test_what_the_machinery_lost_before_a_retry_is_forgiven(make: MakeLab) -> None:
    lab = make({"bisection": {"automatic": False}})
    shas = ask(lab)
    for _ in range(100):
        lab.tick()
        lab.build()
        with lab.context.database.read() as session:
            row = session.execute(select(Bisection)).scalar_one_or_none()
            runs = select(Run.id).where(
                Run.experiment_id.is_not(None), Run.state.in_([RunState.PLANNED, RunState.QUEUED])
            )
            waiting = session.execute(runs).scalars().all()
        if row is not None and row.finished:
            break
        for run in waiting:
            commands.cancel(lab.context, "ops", f"N{run}", "box burns")
    assert row is not None
    assert re.match(rf"{LOST_IN_A_ROW} experiments in a row gave no result", row.reason)
    assert commands.retry(lab.context, "ops", "b1") == "B1 goes on with what it has measured"
    lab.work()
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[11]


def test_more_runs_count_as_host_hours_of_whoever_asks(make: MakeLab) -> None:
    lab, _ = poor(make)
    more = asks.quote_more(lab.context, "B1", 60)
    with pytest.raises(UserError, match="beyond your 2 a day"):
        asks.order_more(lab.context, ADA, more, Limits(running=3, daily_host_h=2.0))
    assert status.bisection_status(lab.context, "B1").line.verdict == "gave_up"


def test_an_automatic_one_goes_on_beyond_the_daily_cap_and_its_step_with_it(make: MakeLab) -> None:
    lab = make({"bisection": {"budget": "12m", "daily_budget": "12m"}})
    shas = lab.upstream.line([100.0] * 24 + [90.0] * 18)
    for sha in shas[::3]:
        lab.upstream.push(sha)
        lab.work()
    assert status.bisection_status(lab.context, "B1").line.verdict == "gave_up"
    asks.order_more(lab.context, ADA, asks.quote_more(lab.context, "B1", 40), None)
    lab.tick()
    with lab.context.database.read() as session:
        assert session.execute(select(Bisection.state)).scalar_one() is BisectionState.RUNNING
        assert StepState.BISECTING in session.execute(select(Step.state)).scalars().all()
    lab.work()
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[24]
