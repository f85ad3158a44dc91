"""What governs mail: the configuration, what people asked for, what bounced, what the installation has shown."""

from __future__ import annotations

import datetime as dt
import os
import secrets
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.clock import Clock
from bisectbot.config.mail import MailPolicy
from bisectbot.errors import InfraError, UserError
from bisectbot.mail import bounces
from bisectbot.mail.mailbox import Mailbox, parse_mailboxes
from bisectbot.mail.message import Identity, Kind
from bisectbot.mail.policy import Override, Policy, Record, Rung
from bisectbot.mail.recipients import TreeRules
from bisectbot.service.context import Context
from bisectbot.service.people import judgements
from bisectbot.service.post import wanted
from bisectbot.store.tables import Bounce, OptOut, Outbox, Switch

MAIL_SWITCH = "mail"
RUNGS = {
    MailPolicy.FILES: Rung.FILES,
    MailPolicy.OPERATORS: Rung.OPERATORS,
    MailPolicy.AUTHOR: Rung.AUTHOR,
    MailPolicy.LISTS: Rung.LISTS,
}


def identity(context: Context) -> Identity:
    """Who writes."""
    mail = context.config.mail
    [sender] = parse_mailboxes(mail.sender)
    return Identity(sender.address, sender.name or "bisectbot", mailboxes(mail.reply_to), mail.unsubscribe_url)


def mailboxes(texts: tuple[str, ...]) -> tuple[Mailbox, ...]:
    """The mailboxes of a configured list."""
    return tuple(box for text in texts for box in parse_mailboxes(text))


def policy(context: Context, session: Session, testcase: str = "") -> Policy:
    """How far letters about ``testcase`` may travel now: as configured, and as people and bounces have it."""
    mail = context.config.mail
    opted_out = session.execute(select(OptOut.address)).scalars()
    return Policy(
        rung=RUNGS[mail.policy],
        overrides=tuple(Override(RUNGS[spec.policy], spec.tree, spec.testcase) for spec in mail.rungs),
        operators=mailboxes(mail.operators),
        precision=mail.approval.precision,
        window=mail.approval.window,
        hourly_cap=mail.hourly_cap,
        daily_cap=mail.daily_cap,
        quiet_weekdays=frozenset(day for day in mail.quiet_days if isinstance(day, int)),
        quiet_dates=frozenset(day for day in mail.quiet_days if isinstance(day, dt.date)),
        least_confidence=mail.bar.confidence,
        least_effect=mail.bar.effect,
        opted_out=frozenset((*mail.opted_out, *opted_out)),
        muted=wanted.muted(session, testcase),
        suppressed=bounces.suppressed(_history(session)),
        stopped=mail.stopped or stop_switch(session) is not None,
    )


def _history(session: Session) -> list[bounces.Bounce]:
    rows = session.execute(select(Bounce).order_by(Bounce.id)).scalars()
    return [bounces.Bounce(row.address, row.action, row.status, letter=str(row.outbox_id or "")) for row in rows]


def stop_switch(session: Session) -> Switch | None:
    """Who has stopped all mail at run time, if somebody has."""
    return session.execute(select(Switch).filter_by(name=MAIL_SWITCH)).scalar_one_or_none()


def tree_rules(context: Context, tree: str) -> TreeRules:
    """Whom operators add to every report on a tree."""
    mail = context.config.mail
    own = mail.trees.get(tree)
    limits = own or mail.also
    people = (*mail.also.people, *(own.people if own else ()))
    lists = (*mail.also.lists, *(own.lists if own else ()))
    return TreeRules(mailboxes(people), mailboxes(lists), limits.most, limits.most_lists)


def record(context: Context, session: Session, now: float, report: int | None = None) -> Record:
    """What the installation has done; the times are ``now`` minus farm seconds, as the policy counts.

    ``in_thread`` is the last letter that left in the thread of ``report``.
    """
    beyond = select(Outbox.sent).where(Outbox.sent.is_not(None), Outbox.rung > int(Rung.OPERATORS))
    sent = [at for at in session.execute(beyond.order_by(Outbox.sent)).scalars() if at is not None]
    thread = last_in_thread(session, report) if report is not None else None
    return Record(
        right=judgements.right(session),
        sent=[ago(context.clock, at, now) for at in sent],
        in_thread=None if thread is None else ago(context.clock, thread, now),
    )


def last_in_thread(session: Session, report: int) -> float | None:
    """When the last letter of a report's thread left, corrections aside."""
    kinds = [Kind.REPORT.value, Kind.FOLLOWUP.value]
    query = select(Outbox.sent).where(Outbox.report_id == report, Outbox.kind.in_(kinds), Outbox.sent.is_not(None))
    return session.execute(query.order_by(Outbox.sent.desc()).limit(1)).scalar_one_or_none()


def ago(clock: Clock, at: float, now: float) -> float:
    """A stored time as the policy, which counts in farm seconds, must see it at ``now``."""
    return now - clock.farm(now - at)


def unsubscribe_secret(context: Context) -> bytes:
    """The secret in unsubscribe links: as configured, or made once below the state folder."""
    path = context.config.mail.unsubscribe_secret or context.config.state / "unsubscribe.secret"
    try:
        return _secret(path)
    except OSError as error:
        raise InfraError(f"{path}: {error.strerror}; mend it, or name mail.unsubscribe_secret") from error


def _secret(path: Path) -> bytes:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            path.hardlink_to(part)  # whole or not at all, and never over another process's
        except FileExistsError:
            pass
        finally:
            part.unlink()
    secret = path.read_bytes().strip()
    if len(secret) < 16:
        raise UserError(f"{path}: a secret has 16 characters or more; write a longer one")
    return secret
