"""A mail server of the operators' own hands us mail over LMTP: it is in the maildir before it is acknowledged."""
# ruff: noqa: ARG002, N802 - the hooks of aiosmtpd have its names and arguments

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiosmtpd.controller import Controller
from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Envelope, Session

from bisectbot.errors import UserError
from bisectbot.mail.inbox import Maildir
from bisectbot.mail.message import Identity

LARGEST = 10_000_000  # octets


@contextmanager
def listening(listen: str, drop: Maildir, identity: Identity) -> Iterator[None]:
    """Take mail for us at ``listen`` (HOST:PORT) into ``drop``. Raises UserError if somebody else listens there."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise UserError(f"mail.inbox.lmtp: cannot listen at {listen}: {error.strerror}; choose another port") from error
    server = _Server(_Drop(drop, identity), hostname=host, port=int(port))
    server.start()
    try:
        yield
    finally:
        server.stop()


class _Server(Controller):
    def factory(self) -> SMTP:
        return LMTP(self.handler, data_size_limit=LARGEST, ident="bisectbot LMTP")


class _Drop:
    def __init__(self, maildir: Maildir, identity: Identity) -> None:
        self._maildir = maildir
        self._domain = identity.domain.lower()

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """One recipient at a time: LMTP wants an answer for each, and ours are all one mailbox."""
        if address.rpartition("@")[2].lower() != self._domain:
            return f"550 5.1.1 <{address}> is not here"
        if envelope.rcpt_tos:
            return "452 4.5.3 one recipient at a time"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 fine"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """On disk, then acknowledged."""
        content = envelope.content
        raw = content if isinstance(content, bytes) else (content or "").encode()
        head = f"Return-Path: <{envelope.mail_from or ''}>\r\nDelivered-To: {envelope.rcpt_tos[0]}\r\n"
        try:
            _write(self._maildir, head.encode("ascii", "replace") + raw)
        except OSError as error:
            return f"451 4.3.0 cannot be kept: {error.strerror}"
        return "250 2.0.0 kept"


def _write(maildir: Maildir, raw: bytes) -> None:
    name = f"{time.time_ns()}.{os.getpid()}.{secrets.token_hex(6)}"
    part = maildir.path / "tmp" / name
    with part.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    part.rename(maildir.path / "new" / name)
