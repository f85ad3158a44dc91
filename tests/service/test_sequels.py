"""What follows a report: additions in its thread, where its change has arrived, corrections, and the weekly digest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from bisectbot.service import commands
from bisectbot.service.post import optouts, rules
from bisectbot.service.post.sequels import seen_in, sequels
from bisectbot.service.post.weekly import weekly
from bisectbot.service.send import send
from bisectbot.store.tables import Judged, Outbox, OutboxState, Report
from tests.service.conftest import MakeLab
from tests.support.office import AUTHOR, LIST, MAINTAINER, OPERATOR, PATCH, Office, office, reached, with_mail

WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture
def desk(make: MakeLab) -> Iterator[Office]:
    with office(make(scale=1.0)) as made:
        yield made


def judge(desk: Office, report: int, judged: Judged, why: str = "") -> None:
    commands.judge(desk.context, "ops", f"R{report}", judged, why)


def test_what_is_found_later_goes_out_as_one_addendum_a_week_later_in_the_same_thread(desk: Office) -> None:
    report = desk.report()
    [first] = desk.send()
    desk.found(report, "fsmark.files_per_sec", "fsmark.app_overhead")
    desk.found(report, "hackbench.throughput")
    desk.days_pass(6.9)
    assert sequels(desk.context) == 0
    desk.days_pass(0.2)
    assert sequels(desk.context) == 1
    assert sequels(desk.context) == 0
    [addendum] = desk.send()
    assert reached([addendum]) == reached([first])
    assert addendum.message["In-Reply-To"] == first.message["Message-ID"]
    assert addendum.message["References"] == f"{PATCH} {first.message['Message-ID']}"
    assert addendum.message["Subject"] == f"Re: {first.message['Subject']}"
    assert addendum.message["X-Bisectbot-Kind"] == "followup"
    text = addendum.message.get_content()
    assert all(stat in text for stat in ("fsmark.files_per_sec", "fsmark.app_overhead", "hackbench.throughput"))


def test_at_most_one_addendum_a_week(desk: Office) -> None:
    report = desk.report()
    desk.send()
    for number in range(3):
        desk.days_pass(7.1)
        desk.found(report, f"suite.stat_{number}")
        sequels(desk.context)
        assert len(desk.send()) == 1
        desk.found(report, f"suite.soon_{number}")
        sequels(desk.context)
        assert desk.send() == []
    assert len(desk.rows("followup")) == 3
    assert "suite.soon_1" in desk.script.received[-1].message.get_content()


def test_the_same_change_in_mainline_and_stable_is_a_follow_up_and_no_report(desk: Office) -> None:
    report = desk.report()
    desk.send()
    with desk.context.database.write() as session:
        assert seen_in(session, report, "linus:master", "c" * 40)
        assert seen_in(session, report, "stable:linux-6.6.y", "d" * 40, exact=False)
        assert not seen_in(session, report, "linus:master", "c" * 40)
    desk.days_pass(7.1)
    assert sequels(desk.context) == 1
    [addendum] = desk.send()
    text = addendum.message.get_content()
    assert f"linus:master        {'c' * 40}" in text
    assert f"stable:linux-6.6.y  {'d' * 40}" in text
    with desk.context.database.read() as session:
        assert len(session.execute(select(Report.id)).all()) == 1


def test_an_addendum_reaches_nobody_whom_the_first_letter_did_not(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="author") as desk:
        report = desk.report()
        desk.send()
        desk.found(report, "suite.stat")
        desk.days_pass(7.1)
        desk.context = with_mail(desk.context, policy="lists")
        sequels(desk.context)
        got = desk.send()
        assert reached(got) <= {AUTHOR, OPERATOR}
        assert AUTHOR in reached(got)


def test_nothing_follows_a_held_or_a_wrong_report(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists") as desk:
        held = desk.report()
        desk.send()
        desk.found(held, "suite.stat")
        desk.days_pass(8)
        assert sequels(desk.context) == 0
        commands.approve(desk.context, "ops", f"R{held}")
        desk.send()
        judge(desk, held, Judged.DUPLICATE)
        desk.days_pass(8)
        assert sequels(desk.context) == 0


def test_a_correction_goes_to_everybody_who_got_the_wrong_one_once(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists") as desk:
        report = desk.report()
        commands.approve(desk.context, "ops", f"R{report}")
        first = next(one for one in desk.send() if one.message["X-Bisectbot-Kind"] == "report")
        judge(desk, report, Judged.WRONG, "A host ran with its fan blocked.")
        assert sequels(desk.context) == 1
        assert sequels(desk.context) == 0
        quiet = with_mail(
            desk.context, hourly_cap=0, daily_cap=0, quiet_days=["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        )
        assert send(quiet) == 1
        correction = desk.script.received[-1]
        assert reached([correction]) == reached([first])
        assert {AUTHOR, MAINTAINER, LIST} <= reached([correction])
        assert correction.message["In-Reply-To"] == first.message["Message-ID"]
        assert correction.message["X-Bisectbot-Kind"] == "correction"
        assert "A host ran with its fan blocked." in correction.message.get_content()


def test_a_correction_finds_those_whom_a_late_copy_reached(desk: Office) -> None:
    report = desk.report()
    desk.script.rcpt[AUTHOR] = ["451 4.7.1 greylisted"]
    assert reached(desk.send()) == {OPERATOR}
    judge(desk, report, Judged.WRONG, "no")
    with desk.context.database.write() as session:  # a sender has the letter in its hands
        session.execute(select(Outbox).filter_by(report_id=report)).scalar_one().state = OutboxState.SENDING
    sequels(desk.context)
    assert reached(desk.send()) == {OPERATOR}
    with desk.context.database.write() as session:  # and the author's server takes it after all
        row = session.execute(select(Outbox).filter_by(report_id=report, kind="report")).scalar_one()
        row.state, row.waiting, row.reached = OutboxState.SENT, [], [OPERATOR, AUTHOR]
    assert sequels(desk.context) == 1
    [second] = desk.send()
    assert reached([second]) == {AUTHOR}
    assert sequels(desk.context) == 0


def test_a_wrong_report_that_has_not_left_never_leaves(desk: Office) -> None:
    report = desk.report()
    judge(desk, report, Judged.WRONG, "no")
    assert sequels(desk.context) == 0
    assert desk.send() == []
    assert desk.row(report).state is OutboxState.CANCELLED


def test_the_stop_holds_a_correction_too(desk: Office) -> None:
    report = desk.report()
    desk.send()
    judge(desk, report, Judged.WRONG, "no")
    sequels(desk.context)
    commands.stop_mail(desk.context, "ops", "wait")
    assert desk.send() == []
    commands.resume_mail(desk.context, "ops")
    desk.days_pass(0.1)
    assert len(desk.send()) == 1


def test_thirty_judged_reports_prove_the_precision_and_a_rejected_one_counts_as_wrong(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists", approval={"precision": 0.75, "window": 4}) as desk:
        reports = [desk.report() for _ in range(4)]
        for report in reports[:3]:
            judge(desk, report, Judged.FIXED)
        assert desk.row(desk.report()).state is OutboxState.AWAITING_APPROVAL
        commands.reject(desk.context, "ops", f"R{reports[3]}", "a layout effect")
        assert desk.row(desk.report()).state is OutboxState.QUEUED
        judge(desk, reports[0], Judged.WRONG)
        late = desk.report()
        assert desk.row(late).held == ["lists need approval: 50% of the last 4 reports were right, not 75%"]


def test_what_is_below_the_bar_is_told_in_a_weekly_digest(desk: Office) -> None:
    small, sure = desk.report(probability=0.8), desk.report()
    assert reached(desk.send()) == {AUTHOR, OPERATOR}  # the sure one
    assert desk.row(small).state is OutboxState.AWAITING_APPROVAL
    assert weekly(desk.context) == 1
    assert weekly(desk.context) == 0
    [digest] = desk.send()
    assert reached([digest]) == {OPERATOR}
    assert digest.message["Precedence"] == "bulk"
    text = digest.message.get_content()
    with desk.context.database.read() as session:
        assert session.get_one(Report, small).sha[:10] in text
        assert session.get_one(Report, sure).sha[:10] not in text
    desk.report(probability=0.8)
    desk.days_pass(6)
    assert weekly(desk.context) == 0
    desk.days_pass(1.5)
    assert weekly(desk.context) in {0, 1}  # 0 where the clock's week is still the one of the first digest


def test_a_report_below_the_bar_can_be_approved_as_a_mail_of_its_own(desk: Office) -> None:
    report = desk.report(probability=0.8)
    weekly(desk.context)
    desk.send()
    commands.approve(desk.context, "ops", f"R{report}")
    assert reached(desk.send()) == {AUTHOR, OPERATOR}


def test_the_digest_goes_to_a_list_once_the_installation_has_proven_itself(make: MakeLab) -> None:
    settings = {"policy": "lists", "digest_to": ["perf@lists.example.net"], "approval": {"window": 1}}
    with office(make(scale=1.0), **settings) as desk:
        one = desk.report(probability=0.8)
        weekly(desk.context)
        assert desk.row(kind="digest").waiting == [OPERATOR]
        judge(desk, one, Judged.FIXED)
        desk.report(probability=0.8)
        with desk.context.database.write() as session:
            first = session.execute(select(Outbox).filter_by(kind="digest")).scalar_one()
            first.dedup_key, first.message_id, first.created = "digest/2001-01", "<last-week@example.org>", 0.0
        assert weekly(desk.context) == 1
        assert set(desk.row(kind="digest").waiting) == {OPERATOR, "perf@lists.example.net"}


def test_policy_knows_opt_outs_of_both_kinds(make: MakeLab) -> None:
    with office(make(scale=1.0), opted_out=["Rev@example.net"]) as desk, desk.context.database.write() as session:
        optouts.opt_out(session, "Mia@Example.net", "one-click")
        assert not optouts.opt_out(session, "mia@example.net", "mail")
        assert rules.policy(desk.context, session).opted_out == {"rev@example.net", "mia@example.net"}
        assert optouts.opt_in(session, "mia@example.net")
        assert rules.policy(desk.context, session).opted_out == {"rev@example.net"}
