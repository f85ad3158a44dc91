"""What people may ask, and the one line that they get when it cannot be."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.service import commands
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments, requests
from bisectbot.service.search.replay import replay
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    CommandLog,
    HostState,
    Request,
    RequestState,
    Run,
    RunState,
)
from tests.support.lab import BRANCH, HOST, KPI, TREE, Lab


def ask(lab: Lab, good: str, bad: str, tree: str = TREE, branch: str = BRANCH, kpi: str = "") -> str:
    return commands.submit_bisection(lab.context, "tester", BisectArguments(tree, branch, good, bad, "", kpi))


def answer(lab: Lab, request: str) -> str:
    return commands.request_answer(lab.context, request)[1]


def line(lab: Lab, levels: list[float]) -> list[str]:
    shas = lab.upstream.line(list(levels))
    lab.upstream.push(shas[-1])
    lab.tick()
    return shas


def test_a_person_s_bisection_finds_the_commit_and_its_request_says_so(lab: Lab) -> None:
    shas = line(lab, [100.0] * 11 + [90.0] * 9)
    request = ask(lab, shas[0][:12], BRANCH_REF)
    lab.work()
    bisection, told = commands.request_answer(lab.context, request)
    assert bisection == "B1"
    assert told.startswith(f"{request} is done")
    seen = status.bisection_status(lab.context, bisection)
    assert seen.line.culprit == shas[11]
    assert seen.host_s > 0
    assert sum(len(row.values) for row in seen.experiments) == len(replay(lab.context, bisection).frames)


BRANCH_REF = f"refs/remotes/{TREE}/{BRANCH}"


def test_ends_that_do_not_differ_are_not_reproduced(lab: Lab) -> None:
    shas = line(lab, [100.0] * 12)
    ask(lab, shas[0], shas[-1])
    lab.work()
    assert status.bisection_status(lab.context, "B1").line.verdict == "not_reproduced"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"good": "nothing-like-it"}, "names no commit"),
        ({"tree": "elsewhere"}, "tree 'elsewhere' is not watched; there are: demo"),
        ({"branch": "next"}, "branch 'next' of demo is not watched; there are: main"),
        ({"kpi": "demo.latency"}, f"no such job and KPI\\? there are: bench on lkp-icl-2sp2: {KPI}"),
    ],
)
def test_what_cannot_work_is_answered_in_one_line(lab: Lab, change: dict[str, str], said: str) -> None:
    shas = line(lab, [100.0] * 3)
    request = ask(lab, **{"good": shas[0], "bad": shas[-1], **change})
    requests(lab.context)
    with lab.context.database.read() as session:
        row = session.execute(select(Request)).scalar_one()
        assert row.state is RequestState.FAILED
    assert re.search(said, answer(lab, request))
    assert "\n" not in row.answer


def test_a_revision_that_looks_like_an_option_never_reaches_git(lab: Lab) -> None:
    with pytest.raises(UserError, match="is no revision"):
        ask(lab, "--upload-pack=touch /tmp/x", "main")


def test_ends_the_wrong_way_round_end_the_bisection_with_the_reason(lab: Lab) -> None:
    shas = line(lab, [100.0] * 4)
    ask(lab, shas[-1], shas[0])
    lab.work()
    with lab.context.database.read() as session:
        bisection = session.execute(select(Bisection)).scalar_one()
    assert bisection.state is BisectionState.DONE
    assert "give the older commit first" in bisection.reason


def test_a_bisection_is_cancelled_with_its_runs_and_goes_on_where_it_was(lab: Lab) -> None:
    shas = line(lab, [100.0] * 11 + [90.0] * 9)
    ask(lab, shas[0], shas[-1])
    for _ in range(3):
        lab.tick()
        lab.build()
        lab.run()
    lab.tick()
    before = lab.runs_made
    assert "is cancelled" in commands.cancel(lab.context, "ops", "B1", "box needed")
    lab.work()
    with lab.context.database.read() as session:
        open_runs = [run for run in session.execute(select(Run)).scalars() if run.state.open]
        assert open_runs == []
    with pytest.raises(UserError, match="B1 is cancelled already"):
        commands.cancel(lab.context, "ops", "B1", "again")
    assert commands.retry(lab.context, "ops", "B1") == "B1 goes on with what it has measured"
    lab.work()
    seen = status.bisection_status(lab.context, "B1")
    assert seen.line.culprit == shas[11]
    assert lab.runs_made > before


def test_a_run_is_cancelled_and_retried(lab: Lab) -> None:
    line(lab, [100.0])
    commands.cancel(lab.context, "ops", "N1", "not now")
    lab.work()
    with lab.context.database.read() as session:
        assert session.get_one(Run, 1).state is RunState.CANCELLED
    commands.retry(lab.context, "ops", "n1")
    lab.work()
    with lab.context.database.read() as session:
        assert session.get_one(Run, 1).state is RunState.DONE


def test_a_host_is_taken_out_and_put_back(lab: Lab) -> None:
    line(lab, [100.0])
    commands.set_host(lab.context, "ops", HOST, HostState.MAINTENANCE, "new DIMM")
    lab.work()
    assert lab.runs_made == 0
    assert status.hosts(lab.context)[0].reason == "new DIMM (ops)"
    commands.set_host(lab.context, "ops", HOST, HostState.GOOD, "done")
    lab.work()
    assert lab.runs_made == 3
    with pytest.raises(UserError, match="there is no host 'x'; there are: lkp-icl-2sp2-1"):
        commands.set_host(lab.context, "ops", "x", HostState.GOOD, "")


@pytest.mark.parametrize("word", ["B9", "B", "", "B-1", "Q7", "B1; drop table run", "R٣"])
def test_an_id_that_is_none_gets_one_line(lab: Lab, word: str) -> None:
    with pytest.raises(UserError) as caught:
        commands.cancel(lab.context, "ops", word, "")
    assert "\n" not in str(caught.value)


def test_every_command_is_logged(lab: Lab) -> None:
    line(lab, [100.0])
    commands.cancel(lab.context, "ops", "N1", "why not")
    with lab.context.database.read() as session:
        logged = session.execute(select(CommandLog)).scalar_one()
    assert (logged.who, logged.raw, logged.outcome) == ("ops", "cancel N1 why not", "N1 is cancelled")
