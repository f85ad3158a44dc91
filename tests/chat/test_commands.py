"""What people ask, and what they get: the desk over a real laboratory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import select

from bisectbot.chat import telling
from bisectbot.chat.answer import Answer, plain
from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import SLASH, VERBS, Role
from bisectbot.chat.people import Identity
from bisectbot.chat.said import Said
from bisectbot.chat.transport import tell
from bisectbot.service import commands
from bisectbot.service.people import judgements
from bisectbot.service.people.requests import BisectArguments
from bisectbot.store.tables import Bisection, CommandLog, Conversation, OptOut, Report, Request, Step, Subscription
from tests.support.chat import said
from tests.support.lab import BRANCH, GROUP, HOST, KPI, TREE, Lab

MakeDesk = Callable[..., tuple[Lab, Desk]]

PATCH = b"diff --git a/level b/level\n--- a/level\n+++ b/level\n@@ -1 +1 @@\n-90.0\n+100.0\n"


def ask(desk: Desk, who: str, text: str, transport: str = "slack", **more: Any) -> Answer:
    [answer] = desk.hear(text, SLASH, said(who, transport, **more))
    return answer


def pushed(lab: Lab, levels: Sequence[float | None]) -> list[str]:
    shas = lab.upstream.line(levels)
    lab.upstream.push(shas[-1])
    lab.tick()
    return shas


def reported(lab: Lab) -> list[str]:
    """A branch whose twelfth commit made a step, reported as R1 from B1, the bisection of request Q1."""
    shas = pushed(lab, [100.0] * 11 + [90.0] * 5)
    commands.submit_bisection(lab.context, "tester", BisectArguments(TREE, BRANCH, shas[0], shas[-1]))
    lab.work()
    return shas


def test_a_bisection_is_quoted_ordered_and_told_to_the_end(lab: Lab, desk: Desk) -> None:
    shas = pushed(lab, [100.0] * 8 + [90.0] * 8)
    answer = ask(desk, "ada", f"bisect {KPI} good={shas[0][:12]} bad={BRANCH} host=icl", room={"channel": "C1"})
    assert re.fullmatch(rf"B1: \d+ steps, about \d+\.\d host hours of {GROUP}", answer.head)
    assert f"15 commits, {shas[0][:12]} to {shas[-1][:12]}; 0 already measured" in answer.lines[0]
    assert re.fullmatch(r"0 requests ahead, start ~\w+ \d+ \d\d:\d\d, end ~\w+ \d+ \d\d:\d\d UTC", answer.lines[1])
    assert answer.follow == "Q1"
    again = ask(desk, "ada", f"bisect {KPI} good={shas[0]} bad={shas[-1]} host=icl", room={"channel": "C1"})
    assert again.head.startswith("B1 is what you asked for a moment ago")
    spoken: list[tuple[str, str]] = []

    class Speaker:
        edits = True

        def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
            assert room == {"channel": "C1"}
            spoken.append((message, answer.head))
            return "message 1"

    for _ in range(4):
        lab.tick()
        lab.build()
        lab.run()
        tell(lab.context, {"slack": Speaker()})
    lab.work()
    tell(lab.context, {"slack": Speaker()})
    assert tell(lab.context, {"slack": Speaker()}) == 0
    assert [message for message, _ in spoken] == ["", *["message 1"] * (len(spoken) - 1)]
    assert "B1 running" in spoken[0][1]
    done = spoken[-1][1]
    found = rf'B1 done: {shas[8][:10]} \("change 8"\) -[\d.]+ % ±[\d.]+, probability (0\.99|1\.00)'
    assert re.fullmatch(found, done), done
    assert ask(desk, "nobody", "status B1").head == done
    with lab.context.database.read() as session:
        assert not session.execute(select(Conversation)).scalar_one().open


def test_what_is_expensive_is_confirmed_first(make: MakeDesk) -> None:
    lab, desk = make({"confirm_host_hours": 0.5})
    shas = pushed(lab, [100.0] * 8 + [90.0] * 8)
    text = f"bisect {shas[0]}..{shas[-1]}"
    answer = ask(desk, "ada", text, "mail")
    assert "say it again with `confirm`" in answer.head
    assert answer.private
    with lab.context.database.read() as session:
        assert session.execute(select(Request)).first() is None
    assert ask(desk, "ada", f"{text} confirm", "mail").head.startswith("B1: ")


def test_quotas_hold_for_people_and_not_for_operators(make: MakeDesk) -> None:
    lab, desk = make({"running": 1, "daily_host_hours": 100})
    shas = pushed(lab, [100.0] * 8)
    for text in (f"compare {shas[0]} {shas[1]}", f"compare {shas[1]} {shas[2]}"):
        answer = ask(desk, "ada", text, "mail")
    assert answer.head == "you have 1 requests running, and 1 is the limit; cancel one, or wait"
    for number in range(3):
        assert ask(desk, "ops", f"compare {shas[number]} {shas[number + 3]}", "irc").follow


def test_undecided_commits_get_more_runs_for_the_asking(make: MakeDesk) -> None:
    lab, desk = make({"confirm_host_hours": 1.0})
    shas = pushed(lab, [100.0] * 11 + [90.0] * 9)
    lab.sigma = 5.0
    ask(desk, "ada", f"bisect {shas[0]}..{shas[-1]} confirm")
    with lab.context.database.write() as session:
        row = session.get_one(Bisection, 1)
        row.settings = {**row.settings, "budget_s": 3600.0}
    lab.work()
    assert "B1 gave up" in ask(desk, "nobody", "status B1").head
    assert "say how many runs it may have, as in `retry B1 runs=20`" in ask(desk, "ada", "retry B1").head
    assert ask(desk, "ada", "retry B1 runs=1e3").head == "runs=1e3: a number from 1 to 500"
    assert "retry is for developers" in ask(desk, "nobody", "retry B1 runs=20").head
    asked = ask(desk, "ada", "retry b1 runs=200")
    cost = f"take up to 26.7 host hours of {GROUP}, more than 1: say it again with `confirm`"
    assert re.fullmatch(rf"B1: 200 runs more for \d+ undecided commits {re.escape(cost)}", asked.head), asked.head
    given = ask(desk, "ops", "retry B1 runs=200 confirm", "irc")
    assert given.follow == "Q2"
    assert "B1 is waiting; only one that is over" in ask(desk, "ada", "retry B1 runs=200 confirm").head
    lab.work()
    assert f"B1 done: {shas[11][:10]}" in telling.request(lab.context, "Q2").head


def test_two_commits_are_compared(lab: Lab, desk: Desk) -> None:
    shas = pushed(lab, [100.0, 90.0])
    answer = ask(desk, "ada", f"compare {BRANCH}~1 {BRANCH} runs=6")
    assert answer.head.startswith("Q1: 6 runs each on lkp-icl-2sp2")
    lab.work()
    done = ask(desk, "ada", "status Q1")
    assert re.match(r"Q1 done: main is different: -1[\d.]+ %|Q1 done: main is different: -9", done.head), done.head
    assert [cell.strip() for cell in done.table[1]] == ["commit", shas[0][:12], shas[1][:12]]


def test_a_patch_is_tested_on_a_reports_culprit(lab: Lab, desk: Desk) -> None:
    shas = reported(lab)
    answer = ask(desk, "ada", "test", "mail", report="R1", patch=PATCH)
    assert answer.lines[0].startswith(f"parent {shas[10][:12]}, culprit {shas[11][:12]}, culprit + patch ")
    mended = answer.lines[0].rpartition(" ")[2]
    lab.upstream.git.run("fetch", "-q", str(lab.context.mirror.path), "refs/bisectbot/patch/*:refs/patch/*")
    lab.work()
    done = ask(desk, "ada", "status Q2")
    assert done.head.startswith("Q2 done: the patch brings the parent's level back (")
    assert done.lines == ("    Tested-by: bisectbot <bot@example.org>",)
    text = plain(done)
    assert "parent" in text
    assert "culprit + patch" in text
    assert mended in text


@pytest.mark.parametrize(
    ("text", "patch", "said_"),
    [
        ("test", b"", "no patch found in your message"),
        ("test", PATCH.replace(b"-90", b"-17"), "error: |patch failed: level:1"),
        ("test base=nowhere", PATCH, "names no commit that I know"),
        ("test R7", PATCH, "on top of what"),
        ("test no-mail@nowhere", b"", "no archive|not found"),
        ("test R1 runs=1000", PATCH, "a number from 2 to 60"),
    ],
)
def test_what_cannot_be_tested_is_told_in_one_line(lab: Lab, desk: Desk, text: str, patch: bytes, said_: str) -> None:
    pushed(lab, [100.0, 90.0])
    where = " base=main" if text in {"test", "test no-mail@nowhere"} else ""
    if "runs" in text:
        text, where = "test runs=1000", " base=main"
    fetch_fails = text.startswith("test no-mail")
    answer = ask(desk, "ada", text + where, "mail", patch=patch)
    assert answer.private
    assert "\n" not in answer.head
    assert re.search("no patch found" if fetch_fails else said_, answer.head), answer.head


def test_a_patch_is_fetched_by_its_message_id(make: MakeDesk) -> None:
    fetched: list[str] = []

    def fetch(message_id: str) -> bytes:
        fetched.append(message_id)
        return PATCH

    lab, desk = make(fetch=fetch)
    pushed(lab, [100.0, 90.0])
    for word in ("https://lore.kernel.org/r/20260101.1-ada@example.org", "<20260101.1-ada@example.org>"):
        assert ask(desk, "ada", f"test {word} base=main").follow == "Q1"
    assert fetched == ["20260101.1-ada@example.org"] * 2
    assert "names no mail" in ask(desk, "ada", "test https://evil/@@@ base=main").head


def test_opinions_feed_the_record_and_name_what_to_test(lab: Lab, desk: Desk) -> None:
    shas = reported(lab)
    assert ask(desk, "ada", "status R1").head.startswith("R1 is ")
    answer = ask(desk, "ada", f"wrong R1 effect is in {shas[5][:12]}")
    assert answer.head.startswith("R1 is recorded as wrong")
    assert answer.follow == "Q2"
    with lab.context.database.read() as session:
        [sample] = judgements.samples(session)
        assert (sample.report, sample.right) == ("R1", False)
        assert sample.probability > 0.9
    assert ask(desk, "ada", f"fix R1 {shas[15][:12]}").head == f"R1 is recorded as fixed by {shas[15]}"
    assert "no duplicate of itself" in ask(desk, "grace", "dup R1 R1").head
    assert "there is no report R9" in ask(desk, "grace", "dup R1 R9").head
    assert ask(desk, "grace", "accept R1 expected").head == "R1 is accepted: no more mail for this step"
    with lab.context.database.read() as session:
        assert judgements.right(session) == [True]


@pytest.mark.real
def test_an_accepted_step_is_the_usual_level_from_then_on(lab: Lab, desk: Desk) -> None:
    tip = None
    for number in range(22):
        [tip] = lab.upstream.line([100.0 if number < 11 else 90.0], first=tip, start=number)
        lab.upstream.push(tip)
        lab.work()
    assert ask(desk, "grace", "accept R1 expected").lines == ("1 steps take their new level as the usual one",)
    with lab.context.database.read() as session:
        assert session.execute(select(Step.state)).scalars().first() == "accepted"


def test_bisect_in_a_reports_thread_takes_its_arguments(lab: Lab, desk: Desk) -> None:
    reported(lab)
    assert ask(desk, "ada", "bisect", report="R1").head.startswith("B2: ")


def test_hosts_are_paused_and_resumed_by_operators(lab: Lab, desk: Desk) -> None:
    pushed(lab, [100.0])
    assert "pause is for operators" in ask(desk, "ada", "pause host=icl thermal").head
    assert ask(desk, "ops", "pause host=icl thermal").head == f"{HOST} takes nothing new"
    lab.work()
    assert lab.runs_made == 0
    assert "thermal (ops)" in plain(ask(desk, "nobody", "hosts icl"))
    assert ask(desk, "ops", "drain for the move").head == f"{HOST} takes nothing new"
    assert ask(desk, "ops", f"resume host={HOST}").head == f"{HOST} works again"
    lab.work()
    assert lab.runs_made == 3
    assert "which host?" in ask(desk, "ops", "pause").head


def test_wishes(lab: Lab, desk: Desk) -> None:
    told = ask(desk, "ada", "subscribe path=mm/ host=icl min=5% kinds=regression digest=weekly")
    assert told.head == "W1: you are told of digest=weekly, host=icl, kinds=regression, min=5%, path=mm/"
    assert "cannot be" in ask(desk, "ada", "subscribe min=lots").head
    assert "you have no subscription W1" in ask(desk, "grace", "unsubscribe W1").head
    assert ask(desk, "ada", "unsubscribe W1").head == "W1 is ended"
    assert ask(desk, "ada", "mute").head == "no mail to you until you say unmute"
    assert re.search(r"no mail of stress-ng to you until \d{4}-", ask(desk, "ada", "mute suite=stress-ng 30d").head)
    with lab.context.database.read() as session:
        assert session.execute(select(OptOut.address)).scalars().all() == ["ada@example.org"]
        assert len(session.execute(select(Subscription)).scalars().all()) == 1
    assert "expected a duration" in ask(desk, "ada", "mute for ever").head
    ask(desk, "ada", "unmute")
    with lab.context.database.read() as session:
        assert session.execute(select(OptOut.address)).first() is None
        assert session.execute(select(Subscription)).first() is None


def test_people_are_known_by_id_and_authors_speak_for_their_commits(lab: Lab, desk: Desk) -> None:
    shas = reported(lab)
    author = Said(Identity("mail", "ADA@example.org"))
    stranger = Said(Identity("mail", "mallory@example.org"))
    unvouched = Said(Identity("mail", ""))
    people = desk.people
    people.known.pop(("mail", "ada@example.org"))  # the author, listed nowhere
    for who, may in [(author, True), (stranger, False), (unvouched, False)]:
        [answer] = desk.hear("wrong R1 no", SLASH, who)
        assert ("recorded as wrong" in answer.head) is may, answer.head
        [answer] = desk.hear(f"compare {shas[0]} {shas[1]}", SLASH, who)
        assert bool(answer.follow) is may, answer.head
        [answer] = desk.hear("approve R1", SLASH, who)
        assert "approve is for sheriffs" in answer.head
    assert "ada, developer; I know you as slack:T1/UADA" in ask(desk, "ada", "whoami").head
    assert "nobody listed" in ask(desk, "ADA", "whoami").head


def test_maintainers_of_what_a_commit_touches_speak_for_it(lab: Lab, desk: Desk) -> None:
    text = "THE LEVEL\nM:\tMae <mae@example.org>\nS:\tMaintained\nF:\tlevel\n"
    first = lab.upstream.commit({"level": "100\n", "number": "0\n", "MAINTAINERS": text})
    second = lab.upstream.commit({"level": "90\n", "number": "0\n", "MAINTAINERS": text}, first)
    lab.upstream.push(second)
    lab.tick()
    [answer] = desk.hear(f"compare {first} {second}", SLASH, Said(Identity("mail", "mae@example.org")))
    assert answer.follow
    [answer] = desk.hear(f"compare {first} {second}", SLASH, Said(Identity("mail", "eve@example.org")))
    assert "compare is for developers" in answer.head


def test_developers_cancel_their_own_and_sheriffs_any(lab: Lab, desk: Desk) -> None:
    shas = pushed(lab, [100.0] * 8)
    desk.people.known[("slack", "T1/UBOB")] = type(desk.people.of(Identity("slack", "T1/UADA")))("bob", Role.DEVELOPER)
    ask(desk, "ada", f"compare {shas[0]} {shas[1]}")
    lab.tick()
    assert "neither yours" in ask(desk, "UBOB", "cancel Q1").head
    assert ask(desk, "ada", "cancel Q1 box needed").head == "Q1 is cancelled"
    assert ask(desk, "ada", "status Q1").head == "Q1 is cancelled"
    ask(desk, "ada", f"compare {shas[0]} {shas[2]}")
    assert ask(desk, "grace", "cancel Q2").head == "Q2 is cancelled"


def test_every_command_is_logged_with_who_where_what_and_outcome(lab: Lab, desk: Desk) -> None:
    shas = pushed(lab, [100.0, 90.0])
    asked = ["help", f"compare {shas[0][:10]} {BRANCH}", "approve R1", "frobnicate", "status B99", "cancel Q1 no need"]
    for text in asked:
        ask(desk, "ada", text)
    with lab.context.database.read() as session:
        rows = session.execute(select(CommandLog).order_by(CommandLog.id)).scalars().all()
    assert [row.raw for row in rows] == asked
    assert {row.who for row in rows} == {"ada"}
    assert {row.origin for row in rows} == {"slack:T1/UADA here"}
    assert rows[1].arguments["columns"] == [[shas[0][:10], shas[0]], [BRANCH, shas[1]]]
    assert "approve is for sheriffs" in rows[2].outcome
    assert rows[4].outcome == "there is no bisection B99; see `bisectbot status`"


def test_help_is_complete(desk: Desk) -> None:
    text = plain(ask(desk, "nobody", "help"))
    for verb in VERBS:
        assert verb in text
        told = ask(desk, "nobody", f"help {verb}")
        assert told.head.startswith(f"usage: {verb}")


def test_the_end_of_a_request_that_found_nothing_is_told(lab: Lab, desk: Desk) -> None:
    shas = pushed(lab, [100.0] * 12)
    ask(desk, "ada", f"bisect {shas[0]}..{shas[-1]}")
    lab.work()
    assert telling.over(lab.context, "Q1")
    assert "B1 not reproduced: " in telling.request(lab.context, "Q1").head


def test_a_report_is_approved_by_a_sheriff(lab: Lab, desk: Desk) -> None:
    reported(lab)
    with lab.context.database.write() as session:
        session.get_one(Report, 1).state = "held"  # type: ignore[assignment]
    assert "approve is for sheriffs" in ask(desk, "ada", "approve R1").head
    assert "why?" in ask(desk, "grace", "reject R1").head
    assert "R1 is rejected" in ask(desk, "grace", "reject R1 noise").head
