"""Mails leave the outbox: claimed with a lease, handed over outside any transaction, settled.

A sender that dies in the middle leaves a row whose lease ends; it goes out again with the same Message-ID, by which
receivers recognise the second copy. Every mail that leaves is also kept as a file.
"""

from __future__ import annotations

import email
import email.policy
import uuid
from dataclasses import replace
from pathlib import Path

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import InfraError, UserError
from bisectbot.mail import outbox, unsubscribe
from bisectbot.mail.message import Kind, archive_key
from bisectbot.mail.policy import Policy, Rung, Way, wait_until
from bisectbot.mail.signing import Dkim
from bisectbot.mail.smtp import Envelope, Outcome, Recipient, Result, Security, Settings, deliver, return_path
from bisectbot.service.context import Context
from bisectbot.service.post import letters, notes, rules
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import Outbox, OutboxState

log = structlog.get_logger()

LONGEST_WAIT = 300.0
"""Farm seconds after which a letter that must wait asks again: the stop is lifted, a cap raised."""
_SENDER = f"sender-{uuid.uuid4().hex[:12]}"


def send(context: Context) -> int:
    """Hand over every mail that is due; returns how many left."""
    with context.database.read() as session:
        time = now(session)
        states = [OutboxState.QUEUED, OutboxState.DEFERRED, OutboxState.SENDING]
        rows = session.execute(select(Outbox).where(Outbox.state.in_(states)).order_by(Outbox.id)).scalars().all()
        due = [row.id for row in rows if row.state is OutboxState.SENDING or row.not_before <= time]
    return sum(_send(context, row) for row in due)


def _send(context: Context, row_id: int) -> bool:
    claimed = _claim(context, row_id)
    if claimed is None:
        return False
    row, raw, way, recipients = claimed
    keep(context, row.message_id, raw)
    if way is Way.MAIL:
        sender = return_path(row.id, rules.identity(context).domain)
        try:
            outcome = deliver(raw, Envelope(sender, recipients), settings(context))
        except UserError as error:  # the mail server's password cannot be read: an operator's to mend
            outcome = Outcome(Result.DEFERRED, reason=str(error), waiting=row.waiting)
    else:
        outcome = Outcome(Result.SENT, accepted=row.waiting)
    with context.database.write() as session:
        stored = session.get_one(Outbox, row_id, with_for_update=True)
        time = now(session)
        settled = outbox.settle(_row(stored), row.token, outcome, time)
        _store(context, stored, settled, time)
        stored.reached = [*stored.reached, *(one for one in outcome.accepted if one not in stored.reached)]
        leases.release(session, _lease(row_id), row.token)
        _tell_operators(context, session, stored, outbox.operators_note(settled, outcome))
    log.info("mail", message_id=row.message_id, to=row.waiting, way=way.value, result=outcome.result.value)
    return settled.state is outbox.State.SENT


def _tell_operators(context: Context, session: Session, stored: Outbox, said: str | None) -> None:
    """A letter that went wrong; of a note that did, only the log can tell."""
    if said is None:
        return
    log.error("mail", note=said)
    if stored.kind != Kind.NOTE.value:
        about = f" about R{stored.report_id}" if stored.report_id else ""
        lines = [said, "", "Mend what is wrong, then send it again:", f"    bisectbot mail retry M{stored.id}"]
        key = f"mail/{stored.id}/{stored.attempts}/{stored.token}"
        notes.note(context, session, key, f"mail{about} was not delivered", lines)


def _claim(context: Context, row_id: int) -> tuple[outbox.Row, bytes, Way, tuple[Recipient, ...]] | None:
    """Take the row if it is due and nothing stands against sending it now."""
    with context.database.write() as session:
        stored = session.get_one(Outbox, row_id, with_for_update=True)
        time = now(session)
        grant = leases.acquire(session, _lease(row_id), _SENDER, context.clock.real(outbox.LEASE), floor=stored.token)
        if grant is None:
            return None
        row = _row(stored)
        if row.state is outbox.State.SENDING:  # its sender died: nobody knows whether it arrived
            row = outbox.expire(row, time)
            _store(context, stored, row, time)
            leases.release(session, _lease(row_id), grant.token)
            return None
        policy = rules.policy(context, session, letters.testcase_of(session, stored))
        if outbox.is_due(row, time) and not policy.stopped and not _still_wanted(policy, stored):
            stored.state, stored.last_error = OutboxState.CANCELLED, "nobody is left who wants or can get it"
            leases.release(session, _lease(row_id), grant.token)
            return None
        row = _row(stored)
        until = _not_now(context, session, policy, stored, time) if outbox.is_due(row, time) else row.not_before
        if until is not None:
            stored.not_before = until
            leases.release(session, _lease(row_id), grant.token)
            return None
        row = replace(outbox.claim(row, time), token=grant.token)
        _store(context, stored, row, time)
        return row, stored.raw, Way(stored.way), _recipients(context, stored)


def _still_wanted(policy: Policy, stored: Outbox) -> bool:
    """Leave out whoever has opted out or muted it, or whose mail has bounced, since the letter was written."""
    if stored.way == Way.MAIL.value:
        gone = policy.opted_out | policy.suppressed
        if stored.kind not in {Kind.ANSWER.value, Kind.TEST.value}:  # those were asked for
            gone |= policy.muted
        stored.waiting = [address for address in stored.waiting if address.lower() not in gone]
    return bool(stored.waiting) or bool(stored.reached)


def _recipients(context: Context, stored: Outbox) -> tuple[Recipient, ...]:
    """People get a copy of their own, with a link that stops the mail; lists and operators share one."""
    base = context.config.mail.unsubscribe_url
    personal = stored.rung > int(Rung.OPERATORS) and stored.kind != Kind.ANSWER.value
    if not (base and personal):
        return tuple(Recipient(address) for address in stored.waiting)
    secret = rules.unsubscribe_secret(context)
    lists = {entry.mailbox.key for entry in letters.addressees(stored) if entry.list}
    return tuple(
        Recipient(address, "" if address.lower() in lists else f"{base}/{unsubscribe.token(address, secret)}")
        for address in stored.waiting
    )


def _not_now(context: Context, session: Session, policy: Policy, stored: Outbox, time: float) -> float | None:
    """Caps, quiet days, the weekly pause of a thread and the global stop, asked just before each send."""
    record = rules.record(context, session, time, stored.report_id)
    until = wait_until(policy, Kind(stored.kind), Rung(stored.rung), record, time)
    return None if until is None else time + context.clock.real(min(until - time, LONGEST_WAIT))


def _row(stored: Outbox) -> outbox.Row:
    return outbox.Row(
        id=stored.id,
        message_id=stored.message_id,
        key=stored.dedup_key,
        waiting=tuple(stored.waiting),
        state=outbox.State(stored.state.value),
        not_before=stored.not_before,
        attempts=stored.attempts,
        token=stored.token,
        lease_until=stored.lease_until,
        held=tuple(stored.held),
        approved_by=stored.approved_by,
        last_error=stored.last_error,
    )


def _store(context: Context, stored: Outbox, row: outbox.Row, time: float) -> None:
    stored.state = OutboxState(row.state.value)
    stored.waiting, stored.token, stored.lease_until = list(row.waiting), row.token, row.lease_until
    stored.attempts, stored.last_error = row.attempts, row.last_error
    if row.not_before > time:  # the room counts in farm seconds
        stored.not_before = time + context.clock.real(row.not_before - time)
    if row.state is outbox.State.SENT and stored.sent is None:
        stored.sent = time


def _lease(row: int) -> str:
    return f"outbox:{row}"


def settings(context: Context) -> Settings:
    """The mail server, as configured."""
    smtp = context.config.mail.smtp
    dkim = Dkim(smtp.dkim.domain, smtp.dkim.selector, smtp.dkim.key_file) if smtp.dkim else None
    return Settings(
        host=smtp.host,
        port=smtp.port,
        security=Security(smtp.security),
        user=smtp.user,
        password_file=smtp.password_file,
        ca_file=smtp.ca_file,
        dkim=dkim,
    )


def mail_file(context: Context, message_id: str) -> Path:
    """Where a mail is kept."""
    return context.config.state / "mails" / f"{archive_key(message_id)}.eml"


def keep(context: Context, message_id: str, raw: bytes) -> Path:
    """Keep a mail as a file, whole or not at all."""
    path = mail_file(context, message_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part")
        temporary.write_bytes(raw)
        temporary.replace(path)
    except OSError as error:
        raise InfraError(f"{path} cannot be written: {error.strerror}; free space or mend the disk") from error
    return path


def readable(raw: bytes) -> str:
    """A mail as people see it: the headers that matter, then the text."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    shown = ("From", "To", "Cc", "Subject", "Date", "Message-ID")
    head = "".join(f"{name}: {message[name]}\n" for name in shown if message[name])
    body = message.get_content() if message.get_content_maintype() == "text" else ""
    return f"{head}\n{body}"
