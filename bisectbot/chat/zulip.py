"""Zulip: an outgoing webhook's messages come in; the answer is the response, later ones go through the REST API."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

from bisectbot.chat.answer import Answer, columns
from bisectbot.chat.grammar import MENTION, PRIVATE
from bisectbot.chat.people import Identity
from bisectbot.chat.safety import Outbound, known, origin, secret
from bisectbot.chat.said import Said
from bisectbot.chat.webhook import Heard, Incoming, Refused, text_of
from bisectbot.config.chat import Zulip
from bisectbot.errors import UserError

_MARKED = re.compile(r"([\\*_~\[\]()#>|!<$:])")


def render(answer: Answer) -> str:
    """As Zulip's Markdown. Mentions (``@**all**``), streams and links of others' making are taken apart."""
    answer = answer.safe()
    lines = [_MARKED.sub(r"\\\1", line) for line in (answer.head, *answer.lines)]
    if answer.table:
        lines += ["```text", *(line.replace("`", "'") for line in columns(answer.table)), "```"]
    return "\n".join([*lines, *([answer.link] if answer.link else [])])[:9900]


def message(config: Zulip, incoming: Incoming) -> Heard:
    """A message that mentions us, or to us alone."""
    try:
        told = json.loads(incoming.body)
    except (ValueError, RecursionError):
        raise Refused(400, "no JSON") from None
    if not isinstance(told, dict) or not known(text_of(told, "token"), config.token_files):
        raise Refused(401, "the token is missing or wrong")
    inner = told.get("message")
    if text_of(told, "bot_email") != config.bot_email or not isinstance(inner, dict):
        raise Refused(403, "another bot's")
    number, sender = text_of(inner, "id"), text_of(inner, "sender_id")
    if not number or not sender:
        raise Refused(400, "no message")
    if text_of(inner, "sender_email") == config.bot_email or text_of(inner, "client") == "ZulipBot":
        return Heard(None, reply={"response_not_required": True})
    private = text_of(told, "trigger") in {"direct_message", "private_message"}
    room = {"to": sender, "type": "direct"} if private else _stream(inner)
    realm = urllib.parse.urlsplit(config.url).netloc
    said = Said(Identity("zulip", f"{realm}/{sender}"), " ".join(room.values()), room)
    text = text_of(told, "data") or text_of(inner, "content")
    for name in (text_of(told, "bot_full_name"), "bisectbot"):
        text = text.replace(f"@**{name}**", "@bisectbot") if name else text
    return Heard(said, text, PRIVATE if private else MENTION, once=f"zulip {realm} {number}")


def _stream(inner: dict[str, Any]) -> dict[str, str]:
    stream = text_of(inner, "stream_id") or text_of(inner, "display_recipient")
    return {"to": stream, "type": "stream", "topic": text_of(inner, "subject") or text_of(inner, "topic")}


def response(answer: Answer) -> dict[str, Any]:
    """What the webhook is answered with."""
    return {"content": render(answer)}


@dataclass(frozen=True)
class ZulipSpeaker:
    """Speaks with the bot's API key."""

    config: Zulip
    edits: bool = True

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """See `Speaker`."""
        text = render(answer)
        if message:
            self._call("PATCH", f"messages/{urllib.parse.quote(message, safe='')}", {"content": text})
            return message
        body = {"type": room["type"], "to": json.dumps([int(room["to"])]) if room["type"] == "direct" else room["to"]}
        if room.get("topic"):
            body["topic"] = room["topic"]
        return text_of(self._call("POST", "messages", {**body, "content": text}), "id")

    def later(self, url: str, answer: Answer) -> None:  # noqa: ARG002 - it has no such address
        """There is no address to answer at; the room is spoken in instead."""
        raise UserError("zulip gives no response_url")

    def _call(self, method: str, path: str, body: dict[str, str]) -> dict[str, Any]:
        if self.config.api_key_file is None:
            raise UserError("zulip: no api_key_file is configured")
        auth = (self.config.bot_email, secret(self.config.api_key_file))
        url = f"{self.config.url.rstrip('/')}/api/v1/{path}"
        return Outbound(frozenset({origin(self.config.url)})).request(method, url, data=body, auth=auth)
