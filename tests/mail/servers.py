"""A real SMTP server for the tests (aiosmtpd) that fails as it is told to."""
# ruff: noqa: ARG002, N802 - the hooks of aiosmtpd have its names and arguments

from __future__ import annotations

import asyncio
import email
import email.policy
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bisectbot.mail.smtp import Settings

CUT = "cut"  # close the connection instead of an answer
TAKE_AND_CUT = "take and cut"  # accept the message, then close before the answer


@dataclass(frozen=True)
class Received:
    """One message as the server took it."""

    sender: str
    recipients: tuple[str, ...]
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        """The message, parsed."""
        parsed = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed


@dataclass
class Script:
    """What the server answers: for each command the next reply in its list, 250 once that is used up.

    ``rcpt`` maps an address to its replies; ``hidden`` is an extension that is not announced,
    ``delay`` how many seconds each RCPT takes; ``received`` fills up.
    """

    mail: list[str] = field(default_factory=list)
    rcpt: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    data: list[str] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    hidden: str = ""
    delay: float = 0.0

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [response for response in responses if not self.hidden or self.hidden not in response]

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self._answer(server, self.mail)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        await asyncio.sleep(self.delay)
        answer = self._answer(server, self.rcpt.get(address, []))
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        answer = self._answer(server, self.data)
        if answer.startswith("250") or answer == TAKE_AND_CUT:
            assert isinstance(envelope.content, bytes)
            self.received.append(Received(envelope.mail_from or "", tuple(envelope.rcpt_tos), envelope.content))
        if answer == TAKE_AND_CUT:
            _abort(server)
        return answer

    @staticmethod
    def _answer(server: SMTP, replies: list[str]) -> str:
        answer = replies.pop(0) if replies else "250 2.0.0 fine"
        if answer == CUT:
            _abort(server)
        return answer


def _abort(server: SMTP) -> None:
    assert isinstance(server.transport, asyncio.Transport)
    server.transport.abort()


@contextmanager
def smtp_server(script: Script, port: int | None = None, **options: Any) -> Iterator[Settings]:
    """A server that follows ``script``; yields how to reach it. ``options`` are aiosmtpd's (tls_context, …)."""
    port = port or free_port()
    controller = Controller(script, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield Settings("127.0.0.1", port, timeout=5.0)
    finally:
        controller.stop()


def free_port() -> int:
    """A TCP port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
