"""A letter becomes a message: headers that kernel people's tools rely on, and the same bytes every time."""

from __future__ import annotations

import datetime as dt
import email
import enum
import hashlib
import quopri
import re
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from bisectbot.errors import UserError
from bisectbot.mail import body, headers
from bisectbot.mail.mailbox import Mailbox

_AS_WRITTEN = SMTP.clone(refold_source="none")  # the bytes that went in come out
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]+@[\x21-\x3b\x3d\x3f-\x7e]+>")


class Kind(enum.StrEnum):
    """What a letter is; X-Bisectbot-Kind, for people's filters."""

    REPORT = "report"  # the first mail on a change
    FOLLOWUP = "followup"  # what was found later about the same change
    CORRECTION = "correction"  # the report was wrong
    TEST = "test"  # the result of a test that somebody asked for
    ANSWER = "answer"  # to a command
    DIGEST = "digest"  # weekly, what is below the bar
    NOTE = "note"  # to the operators


@dataclass(frozen=True)
class Facts:
    """What X-Bisectbot-* say about a letter; empty ones are left out."""

    report: str = ""  # R12
    change: str = ""  # 40-hex commit of the change
    hosts: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    confidence: float | None = None  # 0..1


@dataclass(frozen=True)
class Letter:
    """What is to be said to whom.

    ``key`` names the letter for ever: the report's hexadecimal key for its first mail, anything distinct
    (``<key>/addendum/2``) for later ones. ``message_id``, with its angle brackets, is what `choose_message_id`
    gave when the body's ``Closes:`` line was written; None lets `compose` choose it.
    """

    key: str
    kind: Kind
    subject: str
    body: str
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...] = ()
    message_id: str | None = None
    in_reply_to: str | None = None
    references: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True)
class Identity:
    """Who writes. ``reply_to`` is where answers go besides ``address``, usually the installation's own list.

    ``unsubscribe_url`` is a page; a personal copy appends ``/<token>`` to it (`bisectbot.mail.unsubscribe`).
    """

    address: str
    name: str = "bisectbot"
    reply_to: tuple[Mailbox, ...] = ()
    unsubscribe_url: str = ""

    @property
    def mailbox(self) -> Mailbox:
        """The From of everything."""
        return Mailbox(self.address, self.name)

    @property
    def domain(self) -> str:
        """The right side of Message-IDs and of the List-Id."""
        return self.address.rpartition("@")[2]


def choose_message_id(key: str, identity: Identity, now: float) -> str:
    """``<YYYYMMDDhhmm.<8 hex>-bisectbot@domain>``, LKP's form: the minute in UTC, 8 hex of ``key``.

    ``now`` is in seconds since 1970 UTC. A key that is no hexadecimal number of 8 digits or more is hashed first.
    """
    eight = key[:8].lower() if re.fullmatch(r"[0-9A-Fa-f]{8,}", key) else hashlib.sha256(key.encode()).hexdigest()[:8]
    minute = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y%m%d%H%M")
    return f"<{minute}.{eight}-bisectbot@{identity.domain}>"


def archive_key(message_id: str) -> str:
    """A Message-ID as archives and artifact addresses use it: without its angle brackets."""
    return message_id.strip().removeprefix("<").removesuffix(">")


def is_message_id(text: str) -> bool:
    """Whether a Message-ID, with its angle brackets, may stand in a header of ours."""
    return _MESSAGE_ID.fullmatch(text) is not None


def reply_subject(subject: str) -> str:
    """``Re: subject``, once."""
    return subject if re.match(r"re:", subject, re.IGNORECASE) else f"Re: {subject}"


def compose(letter: Letter, identity: Identity, now: float) -> EmailMessage:
    """``letter`` as one text/plain message; ``now`` in seconds since 1970 UTC.

    Equal arguments give equal bytes, and `bytes(message)` gives them unchanged: CRLF line ends, headers in 7 bits.
    Raises UserError for a letter to nobody or with a malformed Message-ID.
    """
    if not letter.to:
        raise UserError(f"letter {letter.key}: no recipient in To; give one")
    message_id = letter.message_id or choose_message_id(letter.key, identity, now)
    encoding, octets = body.encode(body.clean(letter.body))
    head = "".join([
        headers.mailboxes("From", [identity.mailbox]),
        headers.mailboxes("To", letter.to),
        headers.mailboxes("Cc", letter.cc) if letter.cc else "",
        headers.mailboxes("Reply-To", [identity.mailbox, *identity.reply_to]) if identity.reply_to else "",
        headers.unstructured("Subject", letter.subject or "(no subject)"),
        headers.tokens("Date", format_datetime(dt.datetime.fromtimestamp(int(now), dt.UTC)).split()),
        headers.tokens("Message-ID", [_checked(message_id)]),
        _thread(letter),
        _machine(letter, identity),
        "MIME-Version: 1.0\r\n",
        "Content-Type: text/plain; charset=utf-8\r\n",
        f"Content-Transfer-Encoding: {encoding}\r\n",
    ])  # fmt: skip
    raw = head.encode("ascii") + b"\r\n" + octets.replace(b"\n", b"\r\n")
    message = email.message_from_bytes(raw, policy=_AS_WRITTEN)
    assert isinstance(message, EmailMessage)
    return message


def seven_bit(raw: bytes) -> bytes:
    """``raw`` as `compose` made it, in 7 bits: for a server that does not take 8BITMIME."""
    if raw.isascii():
        return raw
    head, _, text = raw.partition(b"\r\n\r\n")
    encoded = quopri.encodestring(text.replace(b"\r\n", b"\n")).replace(b"\n", b"\r\n")
    head = head.replace(b"\r\nContent-Transfer-Encoding: 8bit", b"\r\nContent-Transfer-Encoding: quoted-printable")
    return head + b"\r\n\r\n" + encoded


def _thread(letter: Letter) -> str:
    if letter.in_reply_to is None:
        return ""
    parent = _checked(letter.in_reply_to)
    chain = [_checked(reference) for reference in letter.references if reference != parent]
    return headers.tokens("In-Reply-To", [parent]) + headers.tokens("References", [*chain, parent])


def _machine(letter: Letter, identity: Identity) -> str:
    """What programs read: how the mail came about, how to stop it, what it is about."""
    answering = letter.kind in {Kind.ANSWER, Kind.TEST}
    stop = [f"<mailto:{identity.address}?subject=unsubscribe>"]
    if identity.unsubscribe_url:
        stop.append(f"<{identity.unsubscribe_url}>")
    facts = letter.facts
    about = {
        "Report": facts.report,
        "Change": facts.change,
        "Host": ", ".join(facts.hosts),
        "Metric": ", ".join(facts.metrics),
        "Confidence": "" if facts.confidence is None else f"{facts.confidence:.3f}",
        "Kind": str(letter.kind),
    }
    lines = [
        headers.tokens("Auto-Submitted", ["auto-replied" if answering else "auto-generated"]),
        headers.tokens("Precedence", ["bulk"]) if letter.kind is Kind.DIGEST else "",
        headers.tokens("List-Id", [identity.name, "reports", f"<reports.{identity.domain}>"]),
        headers.tokens("List-Unsubscribe", stop, separator=","),
    ]
    return "".join(lines + [headers.unstructured(f"X-Bisectbot-{name}", text) for name, text in about.items() if text])


def _checked(message_id: str) -> str:
    if not is_message_id(message_id):
        raise UserError(f"Message-ID {message_id!r}: not <left@right> without blanks; take it from the mail's header")
    return message_id
