"""Matrix: a person is the full id that their homeserver vouches for; only members of listed servers are heard.

Answers are notices, which no bot answers, and edits of what was said are no commands. What was said before we came is
passed over on the first sync; later, ``next_batch`` is stored, so that nothing is heard twice and nothing missed.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from nio import (
    AsyncClient,
    AsyncClientConfig,
    InviteMemberEvent,
    LoginError,
    MatrixRoom,
    RoomMessageText,
    RoomSendError,
    SyncError,
)

from bisectbot.chat.answer import Answer, columns
from bisectbot.chat.grammar import PRIVATE, WORD, Dialect, Role, parse
from bisectbot.chat.people import Identity, People
from bisectbot.chat.safety import Pace, secret
from bisectbot.chat.said import Said
from bisectbot.config.chat import Matrix
from bisectbot.errors import InfraError

log = structlog.get_logger()

SYNC_MS = 30_000
Hear = Callable[[str, Dialect, Said], list[Answer]]


def render(answer: Answer) -> dict[str, Any]:
    """As a notice with a plain and an HTML body, in which all is text and nobody is mentioned."""
    answer = answer.safe()
    table = columns(answer.table)
    link = [answer.link] if answer.link else []
    plain = "\n".join([answer.head, *answer.lines, *table, *link])
    rich = "<br>".join(html.escape(line) for line in (answer.head, *answer.lines))
    if table:
        rich += f"<pre><code>{html.escape(chr(10).join(table))}</code></pre>"
    if answer.link:
        rich += f'<br><a href="{html.escape(answer.link)}">{html.escape(answer.link)}</a>'
    return {
        "msgtype": "m.notice",
        "body": plain[:20000],
        "format": "org.matrix.custom.html",
        "formatted_body": rich[:40000],
        "m.mentions": {},
    }


def _relation(content: dict[str, Any]) -> object:
    related = content.get("m.relates_to")
    return related.get("rel_type") if isinstance(related, dict) else None


@dataclass
class Client:
    """An account that syncs for ever. `speak` may be called from any thread."""

    config: Matrix
    people: People
    hear: Hear
    pace: Pace
    state: Path
    edits: bool = True
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    _client: AsyncClient | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until `stop`: log in, sync, answer; after a failure again, ever more slowly."""
        self._loop = asyncio.get_running_loop()
        failures = 0
        while not self._stop.is_set():
            try:
                await self._session()
                failures = 0
            except (TimeoutError, InfraError, OSError) as error:
                failures = 1 if self.connected.is_set() else failures + 1
                log.warning("Matrix connection lost", homeserver=self.config.homeserver, error=str(error))
                try:
                    await asyncio.wait_for(self._stop.wait(), min(300.0, 2.0**failures))
                except TimeoutError:
                    continue
            finally:
                self.connected.clear()

    def stop(self) -> None:
        """Let `run` return; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """See `Speaker`: a notice in the room, later edits of it (``m.replace``)."""
        if self._loop is None or not self.connected.is_set():
            raise InfraError(f"{self.config.homeserver} is not connected")
        future = asyncio.run_coroutine_threadsafe(self._say(room, answer, message), self._loop)
        try:
            return future.result(60)
        except TimeoutError:
            raise InfraError(f"{self.config.homeserver} does not answer") from None

    async def _session(self) -> None:
        settings = AsyncClientConfig(max_limit_exceeded=3, max_timeouts=3, encryption_enabled=False)
        client = AsyncClient(self.config.homeserver, self.config.user, device_id="bisectbot", config=settings)
        self._client = client
        try:
            answer = await client.login(secret(self.config.password_file), device_name="bisectbot")
            if isinstance(answer, LoginError):
                raise InfraError(f"login refused: {answer.message}")
            since = self._since.read_text().strip() if self._since.is_file() else ""
            if not since:  # what was said before we came is not for us
                self._must(first := await client.sync(timeout=0, full_state=True))
                await self._invited(first)
                self._remember(first.next_batch)
            client.add_event_callback(self._message, RoomMessageText)
            self.connected.set()
            known = False
            while not self._stop.is_set():
                since = self._since.read_text().strip()
                # At first with every room's members: without them a room of many looks like a talk of two.
                sync = asyncio.ensure_future(client.sync(timeout=SYNC_MS, since=since, full_state=not known))
                stop = asyncio.ensure_future(self._stop.wait())
                await asyncio.wait({sync, stop}, return_when=asyncio.FIRST_COMPLETED)
                stop.cancel()
                if not sync.done():
                    sync.cancel()
                    return
                found = sync.result()
                self._must(found)
                await self._invited(found)
                self._remember(found.next_batch)
                known = True
        finally:
            await client.close()

    @property
    def _since(self) -> Path:
        name = hashlib.sha256(f"{self.config.homeserver} {self.config.user}".encode()).hexdigest()[:16]
        return self.state / f"matrix-{name}.since"

    def _remember(self, token: str) -> None:
        """Whole or not at all."""
        self._since.parent.mkdir(parents=True, exist_ok=True)
        part = self._since.with_suffix(".part")
        part.write_text(token)
        part.replace(self._since)

    @staticmethod
    def _must(answer: Any) -> None:
        if isinstance(answer, SyncError):
            raise InfraError(f"sync: {answer.message}")

    async def _invited(self, found: Any) -> None:
        """Operators may invite us, nobody else."""
        assert self._client is not None
        for room, info in found.rooms.invite.items():
            by = next(
                (
                    e.sender
                    for e in info.invite_state
                    if isinstance(e, InviteMemberEvent) and e.state_key == self.config.user
                ),
                "",
            )
            if self.people.of(Identity("matrix", by)).role is Role.OPERATOR and self._listed(by):
                await self._client.join(room)
            else:
                log.info("invitation refused", room=room, by=by)
                await self._client.room_leave(room)

    def _listed(self, user: str) -> bool:
        return user.partition(":")[2] in self.config.servers

    async def _message(self, room: MatrixRoom, event: RoomMessageText) -> None:
        content = event.source["content"]
        if event.sender == self.config.user or content.get("msgtype") != "m.text" or not self._listed(event.sender):
            return
        if "m.new_content" in content or _relation(content) == "m.replace":
            return  # an edit: what it was first has been heard
        dialect = PRIVATE if room.member_count <= 2 else WORD
        text = event.body if len(event.body) < 10_000 else ""
        if not parse(text, dialect) or not self.pace.allows(f"matrix {event.sender}"):
            return
        place = {"room": room.room_id, "event": event.event_id}
        said = Said(Identity("matrix", event.sender), room.room_id, place)
        for answer in await asyncio.to_thread(self.hear, text, dialect, said):
            try:
                await self._say(place, answer, "")
            except InfraError as error:
                log.warning("an answer did not arrive", transport="matrix", error=str(error))

    async def _say(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """Send it under a transaction id that is its own: sent twice, it arrives once."""
        assert self._client is not None
        content = render(answer)
        if message:
            edited = {**content, "body": f"* {content['body']}", "m.new_content": content}
            content = {**edited, "m.relates_to": {"rel_type": "m.replace", "event_id": message}}
        elif "event" in room:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": room["event"]}}
        key = f"{room} {message} {content['body']}"
        transaction = hashlib.sha256(key.encode()).hexdigest()[:32]
        told = await self._client.room_send(room["room"], "m.room.message", content, tx_id=transaction)
        if isinstance(told, RoomSendError):
            raise InfraError(f"{room['room']}: {told.message}")
        return message or str(told.event_id)
