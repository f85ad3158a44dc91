"""Handing a message to a mail server, and saying exactly what became of it."""

from __future__ import annotations

import enum
import smtplib
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import UserError
from bisectbot.mail import unsubscribe
from bisectbot.mail.message import seven_bit
from bisectbot.mail.signing import Dkim

_OK = 250
_WILL_DELIVER = {250, 251}  # 251: not here, but it forwards


class Security(enum.StrEnum):
    """How the connection is protected."""

    NONE = "none"  # for a server on this machine
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True)
class Settings:
    """The server that takes our mail. Password and key are files, never values.

    ``timeout`` is for each answer, ``patience`` for a whole delivery, in seconds: what is not begun by then waits for
    the next attempt, so that a slow server cannot outlast the sender's lease.
    """

    host: str
    port: int = 25
    security: Security = Security.NONE
    user: str = ""
    password_file: Path | None = None
    ca_file: Path | None = None
    helo: str | None = None
    timeout: float = 60.0
    patience: float = 600.0
    dkim: Dkim | None = None


@dataclass(frozen=True)
class Recipient:
    """One RCPT TO. ``unsubscribe_url`` is that person's one-click link; such a recipient gets a copy of their own."""

    address: str
    unsubscribe_url: str = ""


@dataclass(frozen=True)
class Envelope:
    """MAIL FROM (empty: bounces are unwanted) and RCPT TO, at least one."""

    return_path: str
    recipients: tuple[Recipient, ...]

    def __post_init__(self) -> None:
        if not self.recipients:
            raise UserError("envelope without recipients: nothing can be delivered; drop the letter or address it")


def return_path(outbox: int, domain: str, local: str = "bounce") -> str:
    """The variable return path of outbox row ``outbox`` (VERP): a bounce to it names its letter."""
    return f"{local}+{outbox}@{domain}"


class Result(enum.StrEnum):
    """What became of a delivery as a whole, worst news first where recipients differ."""

    UNKNOWN = "unknown"  # the connection was lost after the message had been sent: it may have arrived
    DEFERRED = "deferred"  # later, for the recipients in `Outcome.waiting`
    FAILED = "failed"  # for good: nobody got it and nobody will
    SENT = "sent"  # at least one recipient got it and no one waits


@dataclass(frozen=True)
class Refusal:
    """A recipient, or the whole message for it, refused for good."""

    address: str
    code: int
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What became of a delivery. Every recipient of the envelope is in exactly one of the three."""

    result: Result
    code: int | None = None
    reason: str = ""
    accepted: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()


def deliver(raw: bytes, envelope: Envelope, settings: Settings) -> Outcome:
    """Hand ``raw`` (CRLF line ends) to the server, signed if a key is configured.

    People with a one-click link get their own copies, all others share one, all on one connection and with the
    same Message-ID. Network and server trouble is an `Outcome`; UserError is raised for settings that can never
    work (an unreadable password or key), before anything is sent.
    """
    delivery = _Delivery([recipient.address for recipient in envelope.recipients], time.monotonic() + settings.patience)
    password = _password(settings)
    try:
        with _connect(settings, password) as server:
            for text, addresses in _copies(raw, envelope, settings, eight_bit=server.has_extn("8bitmime")):
                delivery.hand_over(server, text, envelope.return_path, addresses)
    except (smtplib.SMTPException, OSError) as error:
        delivery.lost(error)
    return delivery.outcome()


def _password(settings: Settings) -> str:
    if settings.password_file is None:
        return ""
    try:
        return settings.password_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise UserError(f"SMTP password {settings.password_file}: {error}; correct smtp.password_file") from error


def _connect(settings: Settings, password: str) -> smtplib.SMTP:
    context = ssl.create_default_context(cafile=settings.ca_file and str(settings.ca_file))
    if settings.security is Security.TLS:
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            settings.host, settings.port, settings.helo, timeout=settings.timeout, context=context
        )
    else:
        server = smtplib.SMTP(settings.host, settings.port, settings.helo, timeout=settings.timeout)
    try:
        if settings.security is Security.STARTTLS:
            server.starttls(context=context)
        server.ehlo_or_helo_if_needed()
        if settings.user:
            server.login(settings.user, password)
    except BaseException:
        server.close()
        raise
    return server


def _copies(raw: bytes, envelope: Envelope, settings: Settings, *, eight_bit: bool) -> list[tuple[bytes, list[str]]]:
    """The texts to hand over, each with its recipients, ready to be signed as they will travel."""
    raw = raw if eight_bit else seven_bit(raw)
    shared = [recipient.address for recipient in envelope.recipients if not recipient.unsubscribe_url]
    copies = [(raw, shared)] if shared else []
    copies += [
        (unsubscribe.personal_copy(raw, recipient.unsubscribe_url), [recipient.address])
        for recipient in envelope.recipients
        if recipient.unsubscribe_url
    ]
    if settings.dkim is None:
        return copies
    return [(settings.dkim.sign(text), addresses) for text, addresses in copies]


class _Delivery:
    """The bookkeeping of one delivery: what is known of each recipient, also when the connection breaks."""

    def __init__(self, addresses: list[str], end: float) -> None:
        self._open = addresses
        self._end = end
        self._accepted: list[str] = []
        self._waiting: list[str] = []
        self._refused: list[Refusal] = []
        self._code: int | None = None
        self._reason = ""
        self._in_data = False
        self._uncertain = False

    def hand_over(self, server: smtplib.SMTP, text: bytes, sender: str, addresses: list[str]) -> None:
        """One mail transaction. Raises what smtplib raises when the connection breaks."""
        options = ["body=8bitmime"] if not text.isascii() else []
        if server.has_extn("size"):
            options.append(f"size={len(text)}")
        self._watch_time()
        code, reply = server.mail(sender, options)
        if code != _OK:
            self._settle(addresses, code, reply)
            server.rset()
            return
        willing = []
        for address in addresses:
            self._watch_time()
            code, reply = server.rcpt(address)
            if code in _WILL_DELIVER:
                willing.append(address)
            else:
                self._settle([address], code, reply)
        if not willing:
            server.rset()
            return
        self._watch_time()
        self._in_data = True
        try:
            code, reply = server.data(text)
        except smtplib.SMTPDataError as error:  # the server would not even have the text
            code, reply = error.smtp_code, _text(error.smtp_error).encode()
        self._in_data = False
        self._settle(willing, code, reply)

    def _watch_time(self) -> None:
        if time.monotonic() > self._end:
            raise TimeoutError("the server is too slow, the rest waits for the next attempt")

    def _settle(self, addresses: list[str], code: int, reply: bytes | str) -> None:
        self._open = [address for address in self._open if address not in addresses]
        if 200 <= code < 300:
            self._accepted += addresses
            return
        reason = _text(reply)
        if 500 <= code < 600:
            self._refused += [Refusal(address, code, reason) for address in addresses]
        else:
            self._waiting += addresses
            self._code, self._reason = code, reason

    def lost(self, error: Exception) -> None:
        """The connection failed; whoever has no answer yet waits."""
        if not self._open:
            return
        self._uncertain = self._in_data
        self._waiting += self._open
        self._open = []
        self._code = error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
        self._reason = _text(str(error)) or type(error).__name__

    def outcome(self) -> Outcome:
        """What is known at the end."""
        if self._waiting:
            result, code, reason = Result.UNKNOWN if self._uncertain else Result.DEFERRED, self._code, self._reason
        elif self._accepted:
            result, code, reason = Result.SENT, None, ""
        else:
            first = self._refused[0]
            result, code, reason = Result.FAILED, first.code, first.reason
        return Outcome(result, code, reason, tuple(self._accepted), tuple(self._waiting), tuple(self._refused))


def _text(reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join(text.split())[:300]
