"""The web process' part of chat: Slack, Mattermost and Zulip post here. Mounted by the command line, under ``/chat``.

The order never changes: size, pace of the caller, authenticity of the raw body, pace of the person, replay, and only
then is a message read for what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from bisectbot.chat import mattermost, slack, zulip
from bisectbot.chat.answer import Answer
from bisectbot.chat.commands import Desk
from bisectbot.chat.mattermost import MattermostSpeaker
from bisectbot.chat.safety import BODY_LIMIT, Pace, first_time
from bisectbot.chat.slack import SlackSpeaker
from bisectbot.chat.transport import Speaker
from bisectbot.chat.webhook import Heard, Incoming, Refused
from bisectbot.chat.zulip import ZulipSpeaker
from bisectbot.errors import BisectbotError

log = structlog.get_logger()

PATIENCE_S = {"slack": 2.0, "mattermost": 5.0, "zulip": 7.0}
"""Real seconds in which the transport wants its answer (Slack 3, Zulip 10), less what the way takes."""
CALLER_PACE = 600
"""Requests a minute from one address, authentic or not."""


class HookSpeaker(Speaker, Protocol):
    """A speaker that can also answer at the address that came with a command."""

    def later(self, url: str, answer: Answer) -> None: ...


@dataclass(frozen=True)
class Hook:
    """A way in: who reads it, how an answer goes back at once, and who speaks later."""

    transport: str
    read: Callable[[Incoming], Heard]
    respond: Callable[[Answer], dict[str, Any]]
    speaker: HookSpeaker


def hooks(desk: Desk) -> dict[str, Hook]:
    """The ways in that are configured, by path."""
    chat, found = desk.context.config.chat, {}
    if (s := chat.slack) is not None:
        speaker = SlackSpeaker(s)
        found["slack/command"] = Hook("slack", lambda incoming: slack.command(s, incoming), slack.response, speaker)
        found["slack/events"] = Hook("slack", lambda incoming: slack.event(s, incoming), slack.response, speaker)
    if (m := chat.mattermost) is not None:
        hook = Hook("mattermost", lambda i: mattermost.command(m, i), mattermost.response, MattermostSpeaker(m))
        found["mattermost"] = hook
    if (z := chat.zulip) is not None:
        found["zulip"] = Hook("zulip", lambda i: zulip.message(z, i), zulip.response, ZulipSpeaker(z))
    return found


@dataclass
class Door:
    """Carries messages from hooks to the desk and answers back."""

    desk: Desk
    persons: Pace
    callers: Pace = field(default_factory=lambda: Pace(CALLER_PACE))
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def take(self, hook: Hook, incoming: Incoming) -> dict[str, Any] | None:
        """The body of the response; None for an empty one. Raises Refused."""
        if not self.callers.allows(incoming.source):
            raise Refused(429, "too many requests")
        heard = await run_in_threadpool(hook.read, incoming)
        if heard.said is None:
            return heard.reply or None
        if not self.persons.allows(str(heard.said.identity)):
            raise Refused(429, "too many messages of one person")
        if heard.once and not await run_in_threadpool(first_time, self.desk.context, heard.once):
            return {"response_not_required": True} if hook.transport == "zulip" else None
        answers = asyncio.create_task(run_in_threadpool(self.desk.hear, heard.text, heard.dialect, heard.said))
        if not heard.speak:
            done, _ = await asyncio.wait({answers}, timeout=PATIENCE_S[hook.transport])
            if done:
                said = answers.result()
                return hook.respond(said[0]) if said else {"response_not_required": True}
        self._later(hook, heard, answers)
        return {"response_not_required": True} if hook.transport == "zulip" else None

    def _later(self, hook: Hook, heard: Heard, answers: asyncio.Task[list[Answer]]) -> None:
        """Answer when there is one, outside the request."""

        async def finish() -> None:
            for answer in await answers:
                await run_in_threadpool(_say, hook, heard, answer)

        task = asyncio.create_task(finish())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def _say(hook: Hook, heard: Heard, answer: Answer) -> None:
    assert heard.said is not None
    try:
        if heard.later:
            hook.speaker.later(heard.later, answer)
        else:
            hook.speaker.speak(heard.said.room, answer, "")
    except BisectbotError as error:
        log.warning("an answer did not arrive", transport=hook.transport, error=str(error))


def create_app(desk: Desk) -> FastAPI:
    """The ASGI application to mount under ``/chat``."""
    app = FastAPI(openapi_url=None)
    door = Door(desk, Pace(desk.context.config.chat.messages_per_minute))
    for path, hook in hooks(desk).items():
        app.add_api_route(f"/{path}", _route(door, hook), methods=["POST"])
    return app


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise Refused(413, "too large")
    return body


def _route(door: Door, hook: Hook) -> Callable[[Request], Any]:
    async def route(request: Request) -> Response:
        try:
            body = await _body(request)
            source = request.client.host if request.client else ""
            headers = {name.lower(): value for name, value in request.headers.items()}
            reply = await door.take(hook, Incoming(body, headers, source))
        except Refused as refused:
            log.info("chat request refused", hook=hook.transport, status=refused.status, why=str(refused))
            return JSONResponse({"detail": str(refused)}, refused.status)
        return JSONResponse(reply) if reply is not None else Response(status_code=200)

    return route
