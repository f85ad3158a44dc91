"""Mail that comes in: bounces are counted, people's answers linked to their report, their commands handed over.

A mail is remembered by its Message-ID before the inbox is told that it was handled, so it is handled once however
often it comes. Nothing here answers but `obey`, and that only people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.errors import BisectbotError
from bisectbot.mail import incoming
from bisectbot.mail.bounces import Bounce as Notified
from bisectbot.mail.inbox import Imap, Inbox, Maildir
from bisectbot.mail.incoming import Incoming, Sort
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Kind, is_message_id, reply_subject
from bisectbot.mail.policy import DAY, Decision, Matter, Policy, Rung, Way
from bisectbot.mail.recipients import Recipients
from bisectbot.mail.signing import DnsLookup, vouched_for
from bisectbot.mail.thread import Thread
from bisectbot.mail.vouching import vouched_by
from bisectbot.service.context import Context
from bisectbot.service.post import notes, rules
from bisectbot.service.post.letters import Draft, addressees, put
from bisectbot.service.post.optouts import opt_out
from bisectbot.store.database import now
from bisectbot.store.tables import Bounce, Outbox, Reply

log = structlog.get_logger()

LARGEST_TEXT = 20_000  # characters of somebody's own words that are kept
LARGEST_MAIL = 2_000_000  # octets of a person's mail that are kept
MOST_A_DAY = 20  # mails with commands that one address may send
_LEAVE = {"mute", "unsubscribe"}


@dataclass(frozen=True)
class MailCommand:
    """Commands that somebody mailed. ``lines`` are without their ``#bisectbot``, at most three.

    ``vouched``: the sender's domain has signed the mail (DKIM), or our own mail server says so; without that the sender
    may be anybody. ``message`` is the mail with its patch, ``report`` the number of the report that it answers, if it
    does.
    """

    reply: int
    lines: tuple[str, ...]
    sender: Mailbox
    vouched: bool
    message: Incoming
    report: int | None


Handler = Callable[[Context, MailCommand], str]
"""Carries out the commands of one mail and returns the text of the answer, "" for none."""


def open_inbox(context: Context) -> Inbox | None:
    """Where mail comes in, as configured."""
    spec = context.config.mail.inbox
    if spec.imap is not None:
        imap = spec.imap
        return Imap(imap.host, imap.user, imap.password_file, imap.folder, imap.port, imap.ca_file)
    if spec.lmtp:
        return drop(context)
    return Maildir(spec.maildir) if spec.maildir is not None else None


def drop(context: Context) -> Maildir:
    """The maildir into which the web process puts what comes by LMTP."""
    path = context.config.state / "inbox"
    (path / "new").mkdir(parents=True, exist_ok=True)
    (path / "tmp").mkdir(exist_ok=True)
    return Maildir(path)


def receive(context: Context, dns: DnsLookup | None = None) -> int:
    """Handle what waits in the inbox; returns how many mails that was."""
    inbox = open_inbox(context)
    if inbox is None:
        return 0
    items = inbox.waiting()
    for item in items:
        take(context, item.raw, dns)
        inbox.done(item)
    return len(items)


def take(context: Context, raw: bytes, dns: DnsLookup | None = None) -> None:
    """Handle one mail, unless it was handled before."""
    mail = incoming.read(raw, rules.identity(context))
    name = _storable(mail.message_id) or f"<{hashlib.sha256(raw).hexdigest()}@no-message-id>"
    with context.database.read() as session:
        if session.execute(select(Reply.id).filter_by(message_id=name)).scalar_one_or_none() is not None:
            return
    human = mail.sort is Sort.HUMAN and mail.sender is not None
    vouched = human and mail.sender is not None and bool(mail.commands) and _vouched(context, raw, mail.sender, dns)
    with context.database.write() as session:
        if session.execute(select(Reply.id).filter_by(message_id=name)).scalar_one_or_none() is not None:
            return
        reply = Reply(
            message_id=name,
            report_id=_report(session, mail),
            sender=_storable(str(mail.sender or "")),
            kind=mail.sort.value,
            subject=_storable(mail.subject),
            body=_storable(mail.text[:LARGEST_TEXT]),
            raw=raw if human and len(raw) <= LARGEST_MAIL else b"",
            vouched=vouched,
            received=now(session),
        )
        if mail.sort is Sort.BOUNCE:
            _bounced(context, session, mail, name, reply.received)
        if human and mail.sender is not None:
            _asked(context, session, mail, mail.sender, reply)
        session.add(reply)
    log.info("mail came in", kind=mail.sort.value, sender=reply.sender, report=reply.report_id)


def _vouched(context: Context, raw: bytes, sender: Mailbox, dns: DnsLookup | None) -> bool:
    """Whether the mail server before our inbox says, or a signature shows, that it is the sender's."""
    server = context.config.mail.inbox.authserv
    return (bool(server) and vouched_by(raw, sender.address, server)) or vouched_for(raw, sender.address, dns)


def obey(context: Context, handler: Handler) -> int:
    """Hand the commands that wait to ``handler`` and mail its answers; returns how many mails had some."""
    asked = pending(context)
    for command in asked:
        try:
            text = handler(context, command)
        except BisectbotError as error:
            text = " ".join(str(error).split())
        answer(context, command, text)
    return len(asked)


def pending(context: Context) -> list[MailCommand]:
    """The commands that nobody has taken up yet, oldest first."""
    identity = rules.identity(context)
    with context.database.read() as session:
        rows = session.execute(select(Reply).where(Reply.pending).order_by(Reply.id)).scalars().all()
    found = []
    for row in rows:
        mail = incoming.read(row.raw, identity)
        assert mail.sender is not None, "only people's commands wait"
        found.append(MailCommand(row.id, mail.commands, mail.sender, row.vouched, mail, row.report_id))
    return found


def answer(context: Context, command: MailCommand, text: str) -> None:
    """The commands were carried out: mail ``text`` to whoever gave them, once."""
    with context.database.write() as session:
        row = session.get_one(Reply, command.reply, with_for_update=True)
        if not row.pending:
            return
        row.pending = False
        if text.strip():
            policy = rules.policy(context, session)
            put(context, session, _answer(policy, command, row.message_id, text), now(session))


def _answer(policy: Policy, command: MailCommand, message_id: str, text: str) -> Draft:
    mail, sender = command.message, command.sender
    asks = sender.key in {box.key for box in policy.operators}
    allowed = policy.rung >= Rung.AUTHOR or (asks and policy.rung >= Rung.OPERATORS)
    to = Recipients((sender,))
    references = tuple(name for name in reversed(mail.answers) if is_message_id(name))
    return Draft(
        key=f"answer/{command.reply}",
        subject=reply_subject(mail.subject or "bisectbot"),
        body=text,
        matter=Matter(Kind.ANSWER, tree="", testcase="", recipients=to),
        report=command.report,
        thread=Thread(message_id, references) if is_message_id(message_id) else None,
        decision=Decision(Way.MAIL if allowed else Way.FILE, Rung.OPERATORS if asks else Rung.AUTHOR, to.to),
    )


def _asked(context: Context, session: Session, mail: Incoming, sender: Mailbox, reply: Reply) -> None:
    """What a person wants of us: to be left alone, or commands for us to carry out."""
    verbs = {line.strip().lower() for line in mail.commands}
    if mail.wants_out or verbs & _LEAVE:
        opt_out(session, sender.address, "mail")
        log.info("wants no more mail", address=sender.address)
    if mail.commands and mail.addressed and reply.raw and not verbs <= _LEAVE:
        reply.pending = _today(context, session, reply) < MOST_A_DAY


def _today(context: Context, session: Session, reply: Reply) -> int:
    since = reply.received - context.clock.real(DAY)
    query = select(func.count()).where(Reply.sender == reply.sender, Reply.received > since)
    return int(session.execute(query).scalar_one())


def _report(session: Session, mail: Incoming) -> int | None:
    """The report that a mail answers, however deep in its thread."""
    for answered in mail.answers:
        for table in (Outbox, Reply):
            query = select(table.report_id).where(table.message_id == answered)
            if (report := session.execute(query).scalar_one_or_none()) is not None:
                return report
    return None


def _bounced(context: Context, session: Session, mail: Incoming, name: str, time: float) -> None:
    """Remember what a notification says of letters that we sent, about addresses that they were sent to."""
    before = rules.policy(context, session).suppressed
    for key, bounce in {bounce.address.lower(): bounce for bounce in mail.bounces}.items():
        row = _letter(session, mail.outbox, bounce.letter)
        if row is None or key not in _sent_to(row):
            continue
        session.add(
            Bounce(
                notification=name,
                outbox_id=row.id,
                address=key,
                action=bounce.action[:16],
                status=bounce.status,
                diagnostic=_storable(bounce.diagnostic),
                at=time,
            )
        )
        session.flush()
    for address in sorted(rules.policy(context, session).suppressed - before):
        _tell(context, session, address, mail.bounces)


def _letter(session: Session, number: int | None, message_id: str) -> Outbox | None:
    if number is not None and (row := session.get(Outbox, number)) is not None:
        return row
    return session.execute(select(Outbox).filter_by(message_id=message_id)).scalar_one_or_none()


def _sent_to(row: Outbox) -> set[str]:
    known = (*row.waiting, *row.reached, *(entry.address for entry in addressees(row) if entry.gets_it))
    return {address.lower() for address in known}


def _storable(text: str) -> str:
    """What came by mail, as both databases take it."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _tell(context: Context, session: Session, address: str, found: Sequence[Notified]) -> None:
    said = next((bounce.diagnostic for bounce in found if bounce.address.lower() == address), "")
    lines = [
        f"Mail to {address} has come back twice and is not sent there any more.",
        f"The last notification says: {said or 'nothing'}",
        "",
        "When the address works again:",
        f"    bisectbot mail allow {address}",
    ]
    notes.note(context, session, f"bounce/{address}", f"{address} bounces", lines)
