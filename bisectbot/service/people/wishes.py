"""What people want to hear and what not: subscriptions, quiet, steps that are accepted."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.service import catalog
from bisectbot.service.commands import number
from bisectbot.service.context import Context
from bisectbot.store.database import now
from bisectbot.store.tables import Finding, OptOut, Person, Step, StepState, Subscription

_VALUES = {
    "path": re.compile(r"[\w./*+-]{1,200}", re.ASCII),
    "host": re.compile(r"[\w.*-]{1,60}", re.ASCII),
    "suite": re.compile(r"[\w.*-]{1,60}", re.ASCII),
    "min": re.compile(r"\d{1,3}(?:\.\d+)?%?", re.ASCII),
    "kinds": re.compile(r"(?:regression|improvement)(?:,(?:regression|improvement))?"),
    "digest": re.compile(r"weekly|none"),
}
_ALL = "*"
MOST = 50
"""Rules of a person."""


def rule(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` as a rule. Raises UserError for the first value that is none."""
    for key, value in options.items():
        if not _VALUES[key].fullmatch(value):
            raise UserError(f"{key}={value[:40]} cannot be; `help subscribe` shows how")
    return dict(options)


def subscribe(context: Context, name: str, mails: tuple[str, ...], wanted: Mapping[str, str]) -> str:
    """Keep a rule; returns its id, ``W12``."""
    _must_be_known(mails)
    with context.database.write() as session:
        return f"W{_add(session, name, {**wanted, 'mails': mails}, None).id}"


def unsubscribe(context: Context, name: str, word: str) -> None:
    """End one's own rule. Raises UserError if it is none."""
    with context.database.write() as session:
        row = session.get(Subscription, number(word, "W"))
        if row is None or row.person_id != _person(session, name).id:
            raise UserError(f"you have no subscription {word.upper()[:20]}")
        session.delete(row)


def mute(context: Context, name: str, mails: tuple[str, ...], suite: str, lasts: float | None) -> str:
    """No mail to a person: at all and for ever, or of one suite, or for ``lasts`` s. Returns when it ends, in UTC."""
    _must_be_known(mails)
    rule({"suite": suite} if suite else {})
    with context.database.write() as session:
        if not suite and lasts is None:
            for address in mails:
                catalog.find_or_add(session, OptOut, {"address": address}, how="command", at=now(session))
            return ""
        until = now(session) + lasts if lasts is not None else None
        _add(session, name, {"mute": suite or _ALL, "mails": mails}, until)
        return "" if until is None else dt.datetime.fromtimestamp(until, dt.UTC).strftime("%Y-%m-%d %H:%M")


def unmute(context: Context, name: str, mails: tuple[str, ...]) -> None:
    """Mail to a person again."""
    with context.database.write() as session:
        for row in session.execute(select(OptOut).where(OptOut.address.in_(mails))).scalars():
            session.delete(row)
        mine = select(Subscription).where(Subscription.person_id == _person(session, name).id)
        for quiet in session.execute(mine).scalars():
            if "mute" in quiet.rule:
                session.delete(quiet)


def accept_steps(context: Context, report: int) -> int:
    """The steps that a report explains are as they should be; returns how many."""
    with context.database.write() as session:
        bisections = select(Finding.bisection_id).where(Finding.report_id == report)
        steps = session.execute(select(Step).where(Step.bisection_id.in_(bisections))).scalars().all()
        for step in steps:
            step.state, step.reason = StepState.ACCEPTED, f"accepted with R{report}"
        return len(steps)


def _must_be_known(mails: tuple[str, ...]) -> None:
    if not mails:
        raise UserError("I know no address of yours; ask an operator to list it with you")


def _add(session: Session, name: str, wanted: Mapping[str, object], until: float | None) -> Subscription:
    person = _person(session, name)
    if len(session.execute(select(Subscription.id).filter_by(person_id=person.id)).all()) >= MOST:
        raise UserError(f"you have {MOST} rules already; unsubscribe or unmute first")
    row = Subscription(person_id=person.id, rule=dict(wanted), muted_until=until)
    session.add(row)
    session.flush()
    return row


def _person(session: Session, name: str) -> Person:
    return catalog.find_or_add(session, Person, {"name": name}, role="", identities={})
