"""Mattermost: slash commands with a token come in; nothing is signed, so only TLS and the caller's address vouch."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

from bisectbot.chat.answer import Answer, columns
from bisectbot.chat.grammar import SLASH
from bisectbot.chat.people import Identity
from bisectbot.chat.safety import Outbound, known, origin, secret
from bisectbot.chat.said import Said
from bisectbot.chat.webhook import Heard, Incoming, Refused, form, text_of
from bisectbot.config.chat import Mattermost
from bisectbot.errors import UserError

_MARKED = re.compile(r"([\\*_~\[\]()#>|!<:])")


def render(answer: Answer) -> str:
    """As Markdown in which nothing is marked up but what we mark up; no link, picture, mention or emoji."""
    answer = answer.safe()
    lines = [_escaped(line) for line in (answer.head, *answer.lines)]
    if answer.table:
        lines += ["```", *(line.replace("`", "'") for line in columns(answer.table)), "```"]
    return "\n".join([*lines, *([answer.link] if answer.link else [])])[:16000]


def _escaped(text: str) -> str:
    """Code between backticks stays, the rest is escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _MARKED.sub(r"\\\1", text.replace("`", "'"))
    return "`".join(part if at % 2 else _MARKED.sub(r"\\\1", part) for at, part in enumerate(parts))


def command(config: Mattermost, incoming: Incoming) -> Heard:
    """A slash command."""
    if config.sources and not _from(incoming.source, config.sources):
        raise Refused(403, "not from there")
    fields = form(incoming.body)
    scheme, _, header = incoming.header("authorization").partition(" ")
    given = [token for token in (header if scheme.casefold() == "token" else "", fields.get("token", "")) if token]
    if not given or sum(known(token, config.token_files) for token in given) < len(given):
        raise Refused(401, "the token is missing or wrong")
    team, channel, user = (fields.get(key, "") for key in ("team_id", "channel_id", "user_id"))
    if (config.teams and team not in config.teams) or (config.channels and channel not in config.channels):
        raise Refused(403, "another team or channel")
    host = urllib.parse.urlsplit(config.url).netloc
    trigger = fields.get("trigger_id", "")
    if not trigger:
        raise Refused(400, "no trigger_id")
    said = Said(Identity("mattermost", f"{host}/{user}" if user else ""), channel, {"channel": channel, "user": user})
    text = fields.get("text", "")
    return Heard(said, text, SLASH, once=f"mattermost {trigger}", later=fields.get("response_url", ""))


def _from(source: str, allowed: tuple[str, ...]) -> bool:
    try:
        address = ipaddress.ip_address(source)
        return any(address in ipaddress.ip_network(one, strict=False) for one in allowed)
    except ValueError:
        return False


def response(answer: Answer) -> dict[str, Any]:
    """What a slash command is answered with. A long table is a second message for the asker's channel."""
    kind = "ephemeral" if answer.private else "in_channel"
    if not answer.table or answer.private:
        return {"response_type": kind, "text": render(answer)}
    head = Answer(answer.head, answer.lines, link=answer.link)
    rest = "```\n" + "\n".join(line.replace("`", "'") for line in columns(answer.safe().table)) + "\n```"
    return {"response_type": kind, "text": render(head), "extra_responses": [{"response_type": kind, "text": rest}]}


@dataclass(frozen=True)
class MattermostSpeaker:
    """Speaks with a bot account's token through the REST API."""

    config: Mattermost
    edits: bool = True

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """See `Speaker`."""
        if message:
            self._call("PUT", f"posts/{urllib.parse.quote(message, safe='')}/patch", {"message": render(answer)})
            return message
        body: dict[str, Any] = {"channel_id": room["channel"], "message": render(answer)}
        if answer.private:
            self._call("POST", "posts/ephemeral", {"user_id": room["user"], "post": body})
            return ""
        return text_of(self._call("POST", "posts", body), "id")

    def later(self, url: str, answer: Answer) -> None:
        """Answer by the response_url, which is only ever one of the server's own hooks."""
        if not urllib.parse.urlsplit(url).path.startswith("/hooks/commands/"):
            raise UserError("that is no response_url")
        Outbound(frozenset({origin(self.config.url)})).post(url, response(answer))

    def _call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.config.bot_token_file is None:
            raise UserError("mattermost: no bot_token_file is configured")
        headers = {"Authorization": f"Bearer {secret(self.config.bot_token_file)}"}
        url = f"{self.config.url.rstrip('/')}/api/v4/{path}"
        return Outbound(frozenset({origin(self.config.url)})).request(method, url, json=body, headers=headers)
