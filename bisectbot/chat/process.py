"""The chat process: connections that last, commands that came by mail, and telling people how their requests go."""

from __future__ import annotations

import asyncio
import threading

import structlog

from bisectbot.chat import webhooks
from bisectbot.chat.commands import Desk
from bisectbot.chat.irc import Client as IrcClient
from bisectbot.chat.mail import MailSpeaker, handler
from bisectbot.chat.matrix import Client as MatrixClient
from bisectbot.chat.safety import Pace
from bisectbot.chat.transport import Speaker, tell
from bisectbot.errors import InfraError
from bisectbot.service.post.inbox import obey

log = structlog.get_logger()

TELL_S = 10.0
"""Farm seconds between two looks at what people wait for."""


class Process:
    """Runs until `stop`. Exactly one may run: two would both tell."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        chat = desk.context.config.chat
        pace = Pace(chat.messages_per_minute)
        self.speakers: dict[str, Speaker] = {hook.transport: hook.speaker for hook in webhooks.hooks(desk).values()}
        self.speakers["mail"] = MailSpeaker(desk.context)
        self._stop = threading.Event()
        self.irc: IrcClient | None = None
        self.matrix: MatrixClient | None = None
        if chat.irc is not None:
            self.irc = self.speakers["irc"] = IrcClient(chat.irc, desk.hear, pace)
        if chat.matrix is not None:
            state = desk.context.config.state / "chat"
            self.matrix = self.speakers["matrix"] = MatrixClient(chat.matrix, desk.people, desk.hear, pace, state)

    def stop(self) -> None:
        """Let `run` return."""
        self._stop.set()
        for client in (self.irc, self.matrix):
            if client is not None:
                client.stop()

    def run(self) -> None:
        """Hold the connections and tell, until `stop`.

        Raises InfraError when a connection has ended for good: whoever started this process starts it again.
        """
        threads = []
        if (irc := self.irc) is not None:
            threads.append(threading.Thread(target=irc.run, name="irc", daemon=True))
        if (matrix := self.matrix) is not None:
            threads.append(threading.Thread(target=lambda: asyncio.run(matrix.run()), name="matrix", daemon=True))
        for thread in threads:
            thread.start()
        context = self.desk.context
        while not self._stop.wait(context.clock.real(TELL_S)):
            if dead := [thread.name for thread in threads if not thread.is_alive()]:
                raise InfraError(f"the connection to {', '.join(dead)} ended for good; why is said above")
            try:
                obey(context, handler(self.desk))
                tell(context, self.speakers)
            except InfraError as error:
                log.warning("telling failed; it will be tried again", error=str(error))
        for thread in threads:
            thread.join(10)
