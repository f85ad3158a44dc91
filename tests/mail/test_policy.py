"""Who may get a letter, and when."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Kind
from bisectbot.mail.policy import (
    DAY,
    HOUR,
    WEEK,
    Matter,
    Override,
    Policy,
    Record,
    Rung,
    Way,
    decide,
    rung_for,
    wait_until,
)
from bisectbot.mail.recipients import Recipients
from tests.mail.letters import AUTHOR, LIST, NOW, REVIEWER

OPERATOR = Mailbox("ops@example.org", "Operators")
MATTER = Matter(
    Kind.REPORT, "linux-next:master", "will-it-scale", Recipients((AUTHOR,), (REVIEWER,), (LIST,)), 0.99, -3.2
)
PROVEN = Record(right=(True,) * 30)
TUESDAY = NOW  # 2023-11-14 22:13:20 UTC


def policy(rung: Rung, **changes: object) -> Policy:
    return replace(Policy(operators=(OPERATOR,)), rung=rung, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rung", "way", "to", "cc"),
    [
        (Rung.FILES, Way.FILE, (), ()),
        (Rung.OPERATORS, Way.MAIL, (OPERATOR,), ()),
        (Rung.AUTHOR, Way.MAIL, (AUTHOR,), (OPERATOR,)),
        (Rung.LISTS, Way.MAIL, (AUTHOR,), (REVIEWER, LIST)),
    ],
)
def test_the_ladder(rung: Rung, way: Way, to: tuple[Mailbox, ...], cc: tuple[Mailbox, ...]):
    decision = decide(policy(rung), MATTER, PROVEN)
    assert (decision.way, decision.rung, decision.to, decision.cc, decision.held) == (way, rung, to, cc, None)


def test_a_new_installation_writes_files():
    assert decide(Policy(), MATTER, PROVEN).way is Way.FILE


def test_overrides_by_tree_and_testcase_and_the_lowest_wins():
    overrides = (
        Override(Rung.OPERATORS, testcase="fsmark*"),
        Override(Rung.LISTS, tree="net*:main"),
        Override(Rung.FILES, tree="net-next:*", testcase="netperf"),
    )
    configured = policy(Rung.AUTHOR, overrides=overrides)
    assert rung_for(configured, "linus:master", "aim9") is Rung.AUTHOR
    assert rung_for(configured, "linus:master", "fsmark-1hdd") is Rung.OPERATORS
    assert rung_for(configured, "net-next:main", "aim9") is Rung.LISTS
    assert rung_for(configured, "net-next:main", "netperf") is Rung.FILES


@pytest.mark.parametrize(
    ("right", "held"),
    [
        ((True,) * 29, "lists need approval: 29 of the 30 reports that prove precision have been judged"),
        ((True,) * 26 + (False,) * 4, "lists need approval: 87% of the last 30 reports were right, not 90%"),
        ((True,) * 27 + (False,) * 3, None),
        ((False,) * 50 + (True,) * 30, None),
        (
            (True,) * 50 + (False,) * 4 + (True,) * 26,
            "lists need approval: 87% of the last 30 reports were right, not 90%",
        ),
    ],
)
def test_lists_need_approval_until_the_last_thirty_were_right(right: tuple[bool, ...], held: str | None):
    assert decide(policy(Rung.LISTS), MATTER, Record(right)).held == held
    assert decide(policy(Rung.LISTS), MATTER, Record(right), approved_by="grace").held is None
    assert decide(policy(Rung.AUTHOR), MATTER, Record(right)).held is None


@pytest.mark.parametrize(("confidence", "effect"), [(0.9, -3.2), (0.99, 0.4)])
def test_below_the_bar_goes_to_the_digest(confidence: float, effect: float):
    matter = replace(MATTER, confidence=confidence, effect=effect)
    assert decide(policy(Rung.LISTS, least_effect=0.5), matter, PROVEN).way is Way.DIGEST


def test_who_opted_out_or_bounces_is_left_out_and_named():
    configured = policy(Rung.LISTS, opted_out=frozenset({REVIEWER.key}), suppressed=frozenset({AUTHOR.key}))
    decision = decide(configured, MATTER, PROVEN)
    assert (decision.to, decision.cc) == ((LIST,), ())
    assert [(dropped.mailbox, dropped.why) for dropped in decision.dropped] == [
        (AUTHOR, "mail to this address bounces"),
        (REVIEWER, "opted out"),
    ]


def test_an_author_who_opted_out_leaves_it_to_the_operators():
    decision = decide(policy(Rung.AUTHOR, opted_out=frozenset({AUTHOR.key})), MATTER, PROVEN)
    assert (decision.way, decision.to, decision.cc) == (Way.MAIL, (OPERATOR,), ())


def test_nobody_left_is_a_file():
    gone = frozenset({AUTHOR.key, OPERATOR.key})
    assert decide(policy(Rung.AUTHOR, opted_out=gone), MATTER, PROVEN).way is Way.FILE


def test_a_correction_goes_to_whoever_got_the_wrong_letter_without_approval():
    matter = replace(MATTER, kind=Kind.CORRECTION, earlier=(AUTHOR, LIST, OPERATOR))
    decision = decide(policy(Rung.OPERATORS), matter, Record())
    assert (decision.to, decision.held) == ((AUTHOR, LIST, OPERATOR), None)
    assert decide(policy(Rung.LISTS), matter, Record()).held is None


def test_a_correction_after_a_retreat_to_files_waits_for_a_person():
    matter = replace(MATTER, kind=Kind.CORRECTION, earlier=(AUTHOR, LIST))
    decision = decide(policy(Rung.FILES), matter, Record())
    assert (decision.way, decision.to) == (Way.MAIL, (AUTHOR, LIST))
    assert decision.held == "only files are written now, but 2 got the letter that this corrects"
    assert decide(policy(Rung.FILES), matter, Record(), approved_by="grace").held is None
    assert decide(policy(Rung.FILES), replace(matter, earlier=()), Record()).way is Way.FILE


@pytest.mark.parametrize("rung", list(Rung))
def test_a_follow_up_goes_no_further_than_what_it_follows(rung: Rung):
    matter = replace(MATTER, kind=Kind.FOLLOWUP, thread_rung=rung)
    assert decide(policy(Rung.LISTS), matter, PROVEN).rung is rung
    assert decide(policy(Rung.OPERATORS), matter, PROVEN).rung is min(rung, Rung.OPERATORS)


def test_addresses_are_compared_without_case():
    loud = Mailbox("ADA@Example.org")
    matter = replace(MATTER, recipients=Recipients((loud,)))
    assert decide(policy(Rung.AUTHOR, opted_out=frozenset({"ada@example.org"})), matter, PROVEN).to == (OPERATOR,)


def ask(configured: Policy, record: Record, kind: Kind = Kind.REPORT, rung: Rung = Rung.AUTHOR) -> float | None:
    return wait_until(configured, kind, rung, record, NOW)


def test_nothing_to_wait_for():
    assert ask(policy(Rung.AUTHOR), Record()) is None


def test_the_stop_holds_everything():
    stopped = policy(Rung.LISTS, stopped=True)
    for kind in Kind:
        for rung in Rung:
            assert ask(stopped, Record(), kind, rung) == float("inf")


def test_hourly_cap():
    configured = policy(Rung.AUTHOR, hourly_cap=2)
    sent = [NOW - 2 * HOUR, NOW - 3000, NOW - 1800]
    assert ask(configured, Record(sent=sent)) == NOW - 3000 + HOUR
    assert ask(configured, Record(sent=sent[:2])) is None
    assert ask(configured, Record(sent=sent), Kind.CORRECTION) is None
    assert ask(configured, Record(sent=sent), rung=Rung.OPERATORS) is None


def test_daily_cap():
    configured = policy(Rung.AUTHOR, daily_cap=3)
    sent = [NOW - hours * HOUR for hours in (30, 20, 10, 5, 2)]
    assert ask(configured, Record(sent=sent)) == NOW - 10 * HOUR + DAY


def test_a_cap_of_zero_lets_nothing_out():
    assert ask(policy(Rung.AUTHOR, hourly_cap=0), Record()) == float("inf")


def test_one_addendum_a_week():
    record = Record(in_thread=NOW - 2 * DAY)
    assert ask(policy(Rung.AUTHOR), record, Kind.FOLLOWUP) == NOW - 2 * DAY + WEEK
    assert ask(policy(Rung.AUTHOR), record, Kind.CORRECTION) is None
    assert ask(policy(Rung.AUTHOR), Record(in_thread=NOW - 8 * DAY), Kind.FOLLOWUP) is None


def test_quiet_days_are_waited_out():
    configured = policy(Rung.AUTHOR, quiet_weekdays=frozenset({5, 6}), quiet_dates=frozenset({dt.date(2023, 11, 20)}))
    saturday = dt.datetime(2023, 11, 18, 12, tzinfo=dt.UTC).timestamp()
    tuesday = dt.datetime(2023, 11, 21, tzinfo=dt.UTC).timestamp()
    assert wait_until(configured, Kind.REPORT, Rung.AUTHOR, Record(), saturday) == tuesday
    assert wait_until(configured, Kind.REPORT, Rung.AUTHOR, Record(), TUESDAY) is None
    assert wait_until(configured, Kind.CORRECTION, Rung.AUTHOR, Record(), saturday) is None


def test_a_wait_that_ends_on_a_quiet_day_goes_on():
    friday_night = dt.datetime(2023, 11, 17, 23, 30, tzinfo=dt.UTC).timestamp()
    monday = dt.datetime(2023, 11, 20, tzinfo=dt.UTC).timestamp()
    configured = policy(Rung.AUTHOR, hourly_cap=1, quiet_weekdays=frozenset({5, 6}))
    assert wait_until(configured, Kind.REPORT, Rung.AUTHOR, Record(sent=[friday_night - 60]), friday_night) == monday


def test_a_week_of_quiet_days_never_ends():
    assert ask(policy(Rung.AUTHOR, quiet_weekdays=frozenset(range(7))), Record()) == float("inf")
