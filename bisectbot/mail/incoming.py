"""What came in: bounces, machines, our own mail, and people with their answers and commands.

Nothing here answers, so nothing can loop; `Incoming.sort` tells who may be answered at all: people.
"""

from __future__ import annotations

import email
import enum
import re
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.policy import compat32

from bisectbot.mail import bounces, thread
from bisectbot.mail.bounces import Bounce
from bisectbot.mail.mailbox import Mailbox, parse_mailboxes
from bisectbot.mail.message import Identity

MOST_COMMANDS = 3
LARGEST_PATCH = 1_000_000  # characters
_COMMAND = "#bisectbot"

_DAEMON = re.compile(
    r"(?:mailer-daemon|postmaster|double-bounce|no-?reply|do-?not-?reply)@|.*-(?:bounces|owner|request|confirm)@|owner-"
)
_AUTOMATIC_HEADERS = ("X-Autoreply", "X-Autorespond", "X-List-Administrivia", "X-Bisectbot-Kind")
_AUTO_SUBJECT = re.compile(
    r"(?:auto(?:matic|mated)?(?:[ -]?(?:reply|response|antwort))?|out of (?:the )?office|abwesen\w+)\s*:", re.IGNORECASE
)
_QUOTE = re.compile(r"\s*>")
_ATTRIBUTION = re.compile(r"(?:On .+wrote|Am .+ schrieb.*|.*\bwrites?)\s*:\s*$")
_FORWARDED = re.compile(r"-{3,}\s*(?:Original Message|Forwarded message|Begin forwarded).*", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git |--- \S+.*\n\+\+\+ \S+)", re.MULTILINE)


class Sort(enum.StrEnum):
    """Who wrote a mail."""

    BOUNCE = "bounce"
    AUTOMATIC = "automatic"  # an auto-reply, a list's robot, another bot: never answered, never obeyed
    OWN = "own"  # our own letter, come back through a list
    HUMAN = "human"


@dataclass(frozen=True)
class Incoming:
    """One mail that came in.

    ``answers`` are Message-IDs, the nearest first: whoever knows one of them knows the report. ``text`` holds the
    writer's own words, ``commands`` its lines for `chat` (without the ``#bisectbot``), ``patch`` the first diff.
    ``outbox`` is the row that a bounce is about, when its address names it. ``addressed`` says that our address is
    in To or Cc, ``wants_out`` that the mail is a request to unsubscribe its sender.
    """

    sort: Sort
    message_id: str
    sender: Mailbox | None
    subject: str
    answers: tuple[str, ...] = ()
    text: str = ""
    commands: tuple[str, ...] = ()
    patch: str = ""
    bounces: tuple[Bounce, ...] = ()
    outbox: int | None = None
    recipients: tuple[Mailbox, ...] = ()
    addressed: bool = False
    wants_out: bool = False


def read(raw: bytes, identity: Identity, *, delivered_to: str = "") -> Incoming:
    """Sort one mail. Never raises for what a mail may hold; what cannot be understood is empty.

    ``delivered_to`` is the envelope's recipient where it is known (LMTP); else the headers are searched for it.
    """
    message = email.message_from_bytes(raw, policy=compat32)
    reached = [box.address for box in _mailboxes(message, "Delivered-To", "X-Original-To", "To")]
    outbox = bounces.outbox_of([delivered_to, *reached], identity)
    sender = next(iter(_mailboxes(message, "From")), None)
    recipients = _mailboxes(message, "To", "Cc")
    found = bounces.parse(message)
    from_daemon = sender is None or bool(_DAEMON.match(sender.key))
    sort = _sort(message, sender, identity, bounced=bool(found) or (outbox is not None and from_daemon))
    text = _own_words(_plain(message)) if sort is Sort.HUMAN else ""
    subject = _text(message["Subject"])
    return Incoming(
        sort,
        message_id=next(iter(thread.message_ids(message, "Message-ID")), ""),
        sender=sender,
        subject=subject,
        answers=thread.answered(message),
        text=text,
        commands=_commands(text),
        patch=_patch(message) if sort is Sort.HUMAN else "",
        bounces=found if sort is Sort.BOUNCE else (),
        outbox=outbox,
        recipients=recipients,
        addressed=any(box.key == identity.address.lower() for box in recipients),
        wants_out=sort is Sort.HUMAN and subject.lower().strip() == "unsubscribe",
    )


def patch_of(raw: bytes) -> str:
    """The first diff in a mail, whoever sent it; "" if it holds none."""
    return _patch(email.message_from_bytes(raw, policy=compat32))


def _sort(message: Message, sender: Mailbox | None, identity: Identity, *, bounced: bool) -> Sort:
    if bounced:
        return Sort.BOUNCE
    own_id = f"-bisectbot@{identity.domain}>"
    if (sender and sender.key == identity.address.lower()) or _text(message["Message-ID"]).strip().endswith(own_id):
        return Sort.OWN
    return Sort.AUTOMATIC if _is_automatic(message, sender) else Sort.HUMAN


def _is_automatic(message: Message, sender: Mailbox | None) -> bool:
    """RFC 3834, and what older programs and list robots say instead."""
    submitted = _text(message["Auto-Submitted"]).strip().lower()
    precedence = _text(message["Precedence"]).strip().lower()
    through_list = "List-Id" in message or "List-Post" in message
    return (
        submitted not in {"", "no"}
        or _text(message["Return-Path"]).strip() == "<>"
        or sender is None
        or bool(_DAEMON.match(sender.key))
        or precedence in {"auto_reply", "junk"}
        or (not through_list and (precedence in {"bulk", "list"} or "X-Loop" in message))
        or any(name in message for name in _AUTOMATIC_HEADERS)
        or message.get_content_type() == "multipart/report"
        or bool(_AUTO_SUBJECT.match(_text(message["Subject"]).strip()))
    )


def _commands(text: str) -> tuple[str, ...]:
    found = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word.lower() == _COMMAND and rest.strip():
            verb, _, arguments = rest.strip().partition(" ")
            found.append(f"{verb.removesuffix(':')} {arguments}".strip())
    return tuple(found[:MOST_COMMANDS])


def _plain(message: Message) -> str:
    """The first text/plain part that is no attachment, of the message itself or of its alternatives."""
    for part in message.walk():
        if part.get_content_type() == "message/rfc822":
            break
        if part.get_content_type() == "text/plain" and part.get_content_disposition() != "attachment":
            return _decoded(part)
    return ""


def _own_words(text: str) -> str:
    """``text`` without quotes and the lines that introduce them, fenced code, forwarded mail and the signature."""
    kept: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line in {"-- ", "--"} or _FORWARDED.match(line):
            break
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            continue
        elif _QUOTE.match(line):
            while kept and (not kept[-1].strip() or _ATTRIBUTION.match(kept[-1])):
                if _ATTRIBUTION.match(kept.pop()):
                    break
            kept.append("")
        else:
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


def _patch(message: Message) -> str:
    """The first diff in a text part, from its first line on."""
    for part in message.walk():
        if part.get_content_maintype() != "text" or part.get_content_type() == "text/html":
            continue
        text = _decoded(part)
        if match := _DIFF.search(text):
            return text[match.start() :] if len(text) - match.start() <= LARGEST_PATCH else ""
    return ""


def _decoded(part: Message) -> str:
    octets = part.get_payload(decode=True)
    if not isinstance(octets, bytes):
        return ""
    try:
        text = octets.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:
        text = octets.decode("utf-8", "replace")
    return text.replace("\r\n", "\n")


def _mailboxes(message: Message, *names: str) -> tuple[Mailbox, ...]:
    boxes = [box for name in names for value in message.get_all(name, []) for box in parse_mailboxes(str(value))]
    return tuple(Mailbox(box.address, _text(box.name)) for box in boxes)


def _text(value: object) -> str:
    """A header's value as text on one line, whatever is in it."""
    if value is None:
        return ""
    try:
        return str(make_header(decode_header(str(value)))).replace("\r\n", "").replace("\n", "")
    except (LookupError, ValueError, MessageError):
        return str(value)
