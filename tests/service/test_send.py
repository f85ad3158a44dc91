"""Mail leaves once, to whom it may and when it may: server down and back, caps, quiet days, the stop, opt-outs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.mail.gate import Contents, Sample
from bisectbot.service import commands
from bisectbot.service.people import status
from bisectbot.service.post import optouts
from bisectbot.service.post.concerned import concerned
from bisectbot.service.send import mail_file, send
from bisectbot.store.tables import CommandLog, Outbox, OutboxState
from tests.mail.servers import CUT, TAKE_AND_CUT, free_port
from tests.service.conftest import MakeLab
from tests.support.office import AUTHOR, LIST, MAINTAINER, OPERATOR, PATCH, Office, office, reached, with_mail


@pytest.fixture
def desk(make: MakeLab) -> Iterator[Office]:
    """Mail that goes to authors, its operators in Cc."""
    with office(make(scale=1.0)) as made:
        yield made


def in_hours(desk: Office, hours: float) -> None:
    desk.days_pass(hours / 24)


def test_a_mail_is_sent_once_and_kept(desk: Office) -> None:
    report = desk.report()
    [got] = desk.send()
    assert desk.send() == []
    assert reached([got]) == {AUTHOR, OPERATOR}
    row = desk.row(report)
    assert got.message["Message-ID"] == row.message_id
    assert row.state is OutboxState.SENT
    assert set(row.reached) == {AUTHOR, OPERATOR}
    assert mail_file(desk.context, row.message_id).read_bytes() == row.raw


def test_the_letter_joins_the_thread_of_the_patch(desk: Office) -> None:
    desk.report()
    [got] = desk.send()
    assert (got.message["In-Reply-To"], got.message["References"]) == (PATCH, PATCH)
    assert got.message["Auto-Submitted"] == "auto-generated"


def test_an_hour_without_a_server(desk: Office) -> None:
    report = desk.report()
    down = with_mail(desk.context, smtp={"port": free_port()})
    for _ in range(3):
        assert send(down) == 0
        assert desk.row(report).state is OutboxState.DEFERRED
        assert desk.send() == []  # not before the back-off has passed
        in_hours(desk, 0.51)
    in_hours(desk, 2)
    [got] = desk.send()
    assert got.message["Message-ID"] == desk.row(report).message_id
    assert desk.all_went()


def test_greylisting(desk: Office) -> None:
    report = desk.report()
    desk.script.rcpt[AUTHOR] = ["451 4.7.1 greylisted, come back"]
    [first] = desk.send()
    assert reached([first]) == {OPERATOR}
    assert desk.row(report).waiting == [AUTHOR]
    in_hours(desk, 0.1)
    [second] = desk.send()
    assert reached([second]) == {AUTHOR}
    assert first.message["Message-ID"] == second.message["Message-ID"]
    assert desk.row(report).state is OutboxState.SENT


@pytest.mark.parametrize("fault", [CUT, TAKE_AND_CUT])
def test_a_connection_lost_in_the_middle_means_the_same_message_id_again(desk: Office, fault: str) -> None:
    report = desk.report()
    desk.script.data = [fault]
    desk.send()
    assert desk.row(report).state is OutboxState.DEFERRED
    in_hours(desk, 0.1)
    desk.send()
    assert {one.message["Message-ID"] for one in desk.script.received} == {desk.row(report).message_id}
    assert len(desk.script.received) == (2 if fault == TAKE_AND_CUT else 1)
    assert desk.row(report).state is OutboxState.SENT


def test_a_sender_that_died_is_followed_by_another_with_the_same_message_id(desk: Office) -> None:
    report = desk.report()
    with desk.context.database.write() as session:
        stored = session.execute(select(Outbox)).scalar_one()
        stored.state, stored.attempts, stored.token = OutboxState.SENDING, 1, 1
    assert desk.send() == []
    in_hours(desk, 0.1)
    [got] = desk.send()
    assert got.message["Message-ID"] == desk.row(report).message_id


def test_a_refused_mail_fails_and_the_operators_are_told_by_mail(desk: Office) -> None:
    report = desk.report()
    desk.script.mail = ["554 5.7.1 we do not like you"]
    got = desk.send()
    assert desk.row(report).state is OutboxState.FAILED
    [note] = got
    assert reached([note]) == {OPERATOR}
    assert note.message["Subject"] == f"bisectbot: mail about R{report} was not delivered"
    text = note.message.get_content()
    assert "554 we do not like you" in text or "we do not like you" in text
    retried = f"M{desk.row(report).id}"
    assert f"bisectbot mail retry {retried}" in text
    assert commands.retry_mail(desk.context, "ops", retried) == f"{retried} is queued"
    assert reached(desk.send()) == {AUTHOR, OPERATOR}


def test_a_note_that_fails_makes_no_further_note(desk: Office) -> None:
    desk.report()
    desk.script.mail = ["554 no"] * 10
    assert desk.send() == []
    assert [row.state for row in desk.rows("note")] == [OutboxState.FAILED]


def test_on_the_lowest_rung_a_mail_is_a_file_and_nothing_leaves(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="files") as desk:
        report = desk.report()
        assert desk.send() == []
        row = desk.row(report)
        assert (row.state, row.way) == (OutboxState.SENT, "file")
        assert mail_file(desk.context, row.message_id).exists()


def test_operators_only(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="operators") as desk:
        desk.report()
        assert reached(desk.send()) == {OPERATOR}


def test_a_tree_and_testcase_may_have_a_lower_rung(make: MakeLab) -> None:
    rungs = [{"tree": "demo:*", "testcase": "will-it-*", "policy": "operators"}]
    with office(make(scale=1.0), policy="author", rungs=rungs) as desk:
        desk.report()
        assert reached(desk.send()) == {OPERATOR}


def test_lists_wait_for_a_person_who_sees_why(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists") as desk:
        report = desk.report()
        [note] = desk.send()
        assert reached([note]) == {OPERATOR}
        assert note.message["Subject"] == f"bisectbot: R{report} waits for approval"
        assert "lists need approval: 0 of the 30 reports" in note.message.get_content()
        assert status.overview(desk.context).reports[0].state == "held"
        assert commands.approve(desk.context, "ops", f"R{report}") == f"R{report} is released"
        [got] = desk.send()
        assert {AUTHOR, MAINTAINER, LIST} < reached([got])
        with pytest.raises(UserError, match=f"R{report} is released already"):
            commands.reject(desk.context, "ops", f"R{report}", "too late")


def test_approval_counts_as_of_now_not_as_of_then(make: MakeLab) -> None:
    """Held on the highest rung; approved after the operators have gone down to the author's."""
    with office(make(scale=1.0), policy="lists") as desk:
        report = desk.report()
        desk.send()
        lower = with_mail(desk.context, policy="author")
        commands.approve(lower, "ops", f"R{report}")
        assert reached(desk.send()) == {AUTHOR, OPERATOR}


def test_a_rejected_report_is_never_sent(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists") as desk:
        report = desk.report()
        commands.reject(desk.context, "ops", f"R{report}", "a layout effect")
        desk.send()
        assert desk.row(report).state is OutboxState.CANCELLED
        assert reached(desk.script.received) == {OPERATOR}


def test_fewer_samples_than_promised_or_an_empty_table_hold_a_report(desk: Office) -> None:
    report = desk.report(contents=Contents(tables=(0,), samples=(Sample("demo.ops, parent", 6, 4),)))
    [note] = desk.send()
    assert reached([note]) == {OPERATOR}
    text = note.message.get_content()
    assert "table 1 of 1 is empty" in text
    assert "demo.ops, parent: 4 samples where 6 were promised" in text
    assert desk.row(report).state is OutboxState.AWAITING_APPROVAL


def test_the_hourly_cap_holds_what_is_more(desk: Office) -> None:
    desk.context = with_mail(desk.context, hourly_cap=2)
    for _ in range(3):
        desk.report()
    assert len(desk.send()) == 2
    in_hours(desk, 0.5)
    assert desk.send() == []
    in_hours(desk, 0.6)
    assert len(desk.send()) == 1


def test_the_daily_cap(desk: Office) -> None:
    desk.context = with_mail(desk.context, hourly_cap=10, daily_cap=1)
    for _ in range(2):
        desk.report()
    assert len(desk.send()) == 1
    in_hours(desk, 23)
    assert desk.send() == []
    in_hours(desk, 2)
    assert len(desk.send()) == 1


def test_quiet_days_are_for_everybody_but_operators(desk: Office) -> None:
    """Today and its neighbours are quiet: midnight may pass while this runs."""
    today = dt.datetime.now(dt.UTC).date()
    quiet = [today + dt.timedelta(days=days) for days in (0, 1)]
    normal, desk.context = desk.context, with_mail(desk.context, quiet_days=quiet)
    desk.report()
    assert desk.send() == []
    desk.context = with_mail(desk.context, policy="operators")
    desk.report()
    assert reached(desk.send()) == {OPERATOR}
    desk.context = normal
    in_hours(desk, 0.1)
    assert len(desk.send()) == 1


def test_the_stop_is_looked_at_just_before_each_send(desk: Office) -> None:
    for _ in range(2):
        desk.report()
    commands.stop_mail(desk.context, "ops", "wrong host")
    assert desk.send() == []
    assert {row.state for row in desk.rows("report")} == {OutboxState.QUEUED}
    assert commands.resume_mail(desk.context, "ops") == "mail leaves again"
    in_hours(desk, 0.1)
    assert len(desk.send()) == 2
    with desk.context.database.read() as session:
        logged = list(session.execute(select(CommandLog.raw).order_by(CommandLog.id)).scalars())
    assert logged == ["mail stop wrong host", "mail resume"]


def test_the_stop_of_the_configuration_is_stronger(desk: Office) -> None:
    stopped = with_mail(desk.context, stopped=True)
    desk.report()
    assert send(stopped) == 0
    assert "stays stopped" in commands.resume_mail(stopped, "ops")


def test_who_opts_out_before_the_letter_leaves_does_not_get_it(desk: Office) -> None:
    report = desk.report()
    with desk.context.database.write() as session:
        assert optouts.opt_out(session, AUTHOR.upper(), "one-click")
    assert reached(desk.send()) == {OPERATOR}
    assert desk.row(report).state is OutboxState.SENT
    later = desk.report()
    desk.send()
    assert AUTHOR not in reached(desk.script.received)
    [out] = [entry for entry in desk.row(later).addressees if entry["address"] == AUTHOR]
    assert (out["place"], out["why"]) == ("opted out", "author")


def test_a_letter_that_nobody_wants_any_more_is_cancelled(desk: Office) -> None:
    report = desk.report()
    with desk.context.database.write() as session:
        for address in (AUTHOR, OPERATOR):
            optouts.opt_out(session, address, "mail")
    assert desk.send() == []
    assert desk.row(report).state is OutboxState.CANCELLED


def test_one_click_links_are_personal_and_never_reach_a_list(make: MakeLab) -> None:
    base = "https://bot.example.org/unsubscribe"
    with office(make(scale=1.0), policy="lists", unsubscribe_url=base) as desk:
        report = desk.report()
        commands.approve(desk.context, "ops", f"R{report}")
        got = [one for one in desk.send() if one.message["X-Bisectbot-Kind"] == "report"]
        links = {}
        for one in got:
            for address in one.recipients:
                links[address] = one.message["List-Unsubscribe"], one.message["List-Unsubscribe-Post"]
        assert links[LIST] == (f"<mailto:bot@example.org?subject=unsubscribe>,\r\n <{base}>".replace("\r\n", ""), None)
        assert links[AUTHOR][1] == "List-Unsubscribe=One-Click"
        token = links[AUTHOR][0].rpartition("/")[2].rstrip(">")
        assert optouts.owner(desk.context, token) == AUTHOR
        assert len({one.message["Message-ID"] for one in got}) == 1


def test_every_addressee_comes_with_a_reason(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists", also={"people": ["Perf <perf@example.net>"]}) as desk:
        report = desk.report()
        why = {entry["address"]: entry["why"] for entry in desk.row(report).addressees}
        assert why[AUTHOR] == "author"
        assert why[MAINTAINER] == "MAINTAINERS: LEVEL OF THE LAB"
        assert why[LIST] == "MAINTAINERS: LEVEL OF THE LAB"
        assert why["rev@example.net"] == "Reviewed-by of the commit"
        assert why["perf@example.net"] == "by configuration"
        assert "ignacio@example.net" not in why
        assert "flora@example.net" not in why


def test_a_keyword_in_the_diff_concerns_its_maintainers(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists") as desk:
        sha = desk.commit(level="90.0\nflurb\n")
        found = concerned(desk.context, sha, "demo")
        assert "flora@example.net" in {box.address for box in found.recipients.people}


def test_a_tree_s_own_additions(make: MakeLab) -> None:
    trees = {"demo": {"lists": ["regressions@lists.example.net"], "most": 3, "most_lists": 1}}
    with office(make(scale=1.0), policy="lists", trees=trees) as desk:
        report = desk.report()
        got = [entry for entry in desk.row(report).addressees if entry["place"] in {"to", "cc"}]
        assert len(got) == 3
        assert [entry["address"] for entry in got if entry["list"]] == ["regressions@lists.example.net"]
