"""What people wish in chat is what mail does: what is muted stays away, subscribers get what fits, nobody gets two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import SLASH, Role
from bisectbot.chat.people import Identity, People, Person
from bisectbot.chat.said import Said
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.recipients import Recipients
from bisectbot.report.model import Direction
from bisectbot.service.people.judgements import judge
from bisectbot.service.post.sequels import sequels
from bisectbot.service.post.wanted import with_subscribers
from bisectbot.service.post.weekly import weekly
from bisectbot.store.tables import Judged, OutboxState, Report, Subscription
from tests.report import samples
from tests.service.conftest import MakeLab
from tests.support.office import AUTHOR, LIST, MAINTAINER, OPERATOR, Office, office, reached, with_mail

SUITE = "will-it-scale"
GRACE, GRACE_AT_HOME = "grace@example.org", "grace@home.example"
PROVEN = {"policy": "lists", "approval": {"window": 1}, "hourly_cap": 100}


def say(desk: Office, mails: tuple[str, ...], text: str) -> str:
    """A developer with these addresses says something in chat; what they are answered."""
    identity = Identity("slack", f"T1/{mails[0] if mails else 'nobody'}")
    people = People({identity.key: Person(identity.id, Role.DEVELOPER, listed=True, mails=mails)})
    [answer] = Desk(desk.context, people).hear(text, SLASH, Said(identity))
    return answer.head


def prove(desk: Office) -> None:
    """One report is judged: from now on lists need no approval."""
    first = desk.report()
    with desk.context.database.write() as session:
        judge(session, session.get_one(Report, first), Judged.FIXED, "ops", "")
    desk.send()
    desk.days_pass(1)


@pytest.fixture
def desk(make: MakeLab) -> Iterator[Office]:
    """Mail that goes to authors, its operators in Cc."""
    with office(make(scale=1.0), hourly_cap=100) as made:
        yield made


@pytest.fixture
def public(make: MakeLab) -> Iterator[Office]:
    """Mail that goes as far as mail can."""
    with office(make(scale=1.0), **PROVEN) as made:
        prove(made)
        yield made


@pytest.mark.parametrize("words", [f"mute suite={SUITE}", "mute suite=will-*", "mute 30d", f"mute suite={SUITE} 1h"])
def test_what_is_muted_is_not_mailed_to_whoever_muted_it(desk: Office, words: str) -> None:
    assert say(desk, (AUTHOR,), words).startswith("no mail")
    report = desk.report()
    assert reached(desk.send()) == {OPERATOR}
    assert {entry["address"]: entry["place"] for entry in desk.row(report).addressees}[AUTHOR] == "muted"


def test_another_suite_is_not_muted(desk: Office) -> None:
    say(desk, (AUTHOR,), "mute suite=stress-ng 30d")
    desk.report()
    assert AUTHOR in reached(desk.send())


def test_a_mute_ends_with_its_time_or_with_a_word(desk: Office) -> None:
    say(desk, (AUTHOR,), f"mute suite={SUITE} 2h")
    desk.report()
    assert AUTHOR not in reached(desk.send())
    with desk.context.database.write() as session:
        session.execute(update(Subscription).values(muted_until=Subscription.muted_until - 2 * 3600.0))
    desk.report()
    assert AUTHOR in reached(desk.send())
    say(desk, (AUTHOR,), "mute 30d")
    say(desk, (AUTHOR,), "unmute")
    desk.report()
    assert AUTHOR in reached(desk.send())


def test_a_letter_that_waits_is_not_sent_to_whoever_mutes_it_meanwhile(desk: Office) -> None:
    one = desk.report()
    say(desk, (AUTHOR,), f"mute suite={SUITE} 1h")
    assert reached(desk.send()) == {OPERATOR}
    assert desk.row(one).state is OutboxState.SENT
    alone = with_mail(desk.context, operators=[])
    desk.context = alone
    say(desk, (AUTHOR,), "unmute")
    two = desk.report()
    say(desk, (AUTHOR,), "mute 1h")
    assert desk.send() == []
    assert desk.row(two).state is OutboxState.CANCELLED


def test_a_muted_report_has_no_sequel_either(desk: Office) -> None:
    report = desk.report()
    desk.send()
    say(desk, (AUTHOR,), f"mute suite={SUITE} 30d")
    desk.found(report, "will-it-scale.per_thread_ops")
    desk.days_pass(7.1)
    assert sequels(desk.context) == 1
    assert reached(desk.send()) <= {OPERATOR}


def test_a_subscriber_gets_the_report_once_and_what_follows_it(public: Office) -> None:
    assert (
        say(public, (GRACE, GRACE_AT_HOME), "subscribe path=level min=3%") == "W1: you are told of min=3%, path=level"
    )
    say(public, (GRACE, GRACE_AT_HOME), f"subscribe suite={SUITE}")
    report = public.report()
    [got] = public.send()
    assert list(got.recipients).count(GRACE) == 1
    assert {AUTHOR, MAINTAINER, LIST, GRACE} < set(got.recipients)
    assert GRACE_AT_HOME not in got.recipients
    assert {entry["address"]: entry["why"] for entry in public.row(report).addressees}[GRACE] == "subscribed"
    public.found(report, "will-it-scale.per_thread_ops")
    public.days_pass(7.1)
    assert sequels(public.context) == 1
    assert GRACE in reached(public.send())


@pytest.mark.parametrize("mine", [AUTHOR, MAINTAINER])
def test_whose_business_it_is_already_gets_no_second_mail_elsewhere(public: Office, mine: str) -> None:
    say(public, (GRACE_AT_HOME, mine), "subscribe")
    public.report()
    [got] = public.send()
    assert list(got.recipients).count(mine) == 1
    assert GRACE_AT_HOME not in got.recipients


def test_the_ladder_and_opt_outs_are_stronger_than_a_subscription(make: MakeLab) -> None:
    with office(make(scale=1.0), policy="lists", approval={"window": 2}, hourly_cap=100) as desk:
        say(desk, (GRACE,), "subscribe")
        held = desk.report()
        assert GRACE not in reached(desk.send())  # the operators' note only
        assert desk.row(held).state is OutboxState.AWAITING_APPROVAL
        for rung in ("files", "operators", "author"):
            desk.context = with_mail(desk.context, policy=rung)
            desk.report()
            assert GRACE not in reached(desk.send())
        desk.context = with_mail(desk.context, **PROVEN)
        with desk.context.database.write() as session:
            judge(session, session.get_one(Report, held), Judged.FIXED, "ops", "")
        desk.report()
        assert GRACE in reached(desk.send())
        for words in (f"mute suite={SUITE} 1h", "mute"):
            say(desk, (GRACE,), words)
            desk.report()
            assert GRACE not in reached(desk.send())


def test_who_has_no_address_cannot_subscribe(desk: Office) -> None:
    assert "I know no address of yours" in say(desk, (), "subscribe path=mm/")


def test_the_digest_goes_to_its_subscribers_when_it_may_go_beyond_operators(public: Office) -> None:
    say(public, (GRACE,), "subscribe digest=weekly")
    say(public, (GRACE_AT_HOME,), "subscribe digest=none")
    public.report(probability=0.8)
    assert weekly(public.context) == 1
    assert set(public.row(kind="digest").waiting) == {OPERATOR, GRACE}


def test_a_digest_for_operators_only_is_for_operators_only(desk: Office) -> None:
    say(desk, (GRACE,), "subscribe digest=weekly")
    desk.report(probability=0.8)
    assert weekly(desk.context) == 1
    assert desk.row(kind="digest").waiting == [OPERATOR]


RULES = {
    "": True,
    "path=mm/": True,
    "path=mm": True,
    "path=mm/*.c": True,
    "path=m": False,
    "path=net/": False,
    "host=icl": True,
    "host=ic*": True,
    "host=csl": False,
    "suite=will-it-scale": True,
    "suite=will": False,
    "min=3%": True,
    "min=20": False,
    "kinds=regression": True,
    "kinds=improvement min=10%": True,
    "kinds=regression min=10%": False,  # only the other finding is that large
}


def test_a_subscription_fits_or_not(desk: Office) -> None:
    found = {}
    for words in RULES:
        rule = say(desk, (GRACE,), f"subscribe {words}").partition(":")[0]
        found[words] = GRACE in _told(desk, samples.report())
        assert say(desk, (GRACE,), f"unsubscribe {rule}") == f"{rule} is ended"
    assert found == RULES


def test_a_failure_is_a_regression_of_any_size(desk: Office) -> None:
    say(desk, (GRACE,), "subscribe kinds=regression min=50%")
    model = samples.report()
    assert GRACE not in _told(desk, model)
    assert GRACE in _told(desk, replace(model, finding=samples.finding(None, Direction.FAILURE)))


def test_subscribers_never_make_a_letter_too_large_and_are_not_told_of_nobodys_commit(desk: Office) -> None:
    for number in range(15):
        say(desk, (f"grace{number}@example.org",), "subscribe")
    assert len(_told(desk, samples.report())) == 12
    with desk.context.database.read() as session:
        assert with_subscribers(session, samples.report(), (), Recipients(()), 12) == Recipients(())


def _told(desk: Office, model: Any) -> list[str]:
    found = Recipients((Mailbox(AUTHOR),))
    with desk.context.database.read() as session:
        made = with_subscribers(session, model, ("mm/slub.c", "include/linux/slab.h"), found, 12)
    return [box.address for box in (*made.to, *made.people)]
