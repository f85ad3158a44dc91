"""Slack: signed slash commands and mentions come in; answers go back at once, by response_url or the Web API."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import Any

from slack_sdk.signature import Clock, SignatureVerifier

from bisectbot.chat.answer import Answer, columns
from bisectbot.chat.grammar import MENTION, SLASH
from bisectbot.chat.people import Identity
from bisectbot.chat.safety import Outbound, origin, secret
from bisectbot.chat.said import Said
from bisectbot.chat.webhook import Heard, Incoming, Refused, form, text_of
from bisectbot.config.chat import Slack
from bisectbot.errors import InfraError, UserError


def render(answer: Answer) -> str:
    """As mrkdwn: nothing in it is a link, a mention or a channel that we did not write."""
    answer = answer.safe()
    lines = [_escaped(line) for line in (answer.head, *answer.lines)]
    if answer.table:
        lines += ["```", *(_escaped(line.replace("`", "'")) for line in columns(answer.table)), "```"]
    return "\n".join([*lines, *([answer.link] if answer.link else [])])[:3900]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def verified(config: Slack, incoming: Incoming, clock: Clock | None = None) -> str:
    """The signature, if one of our secrets made it over the raw body within 300 s. Raises Refused."""
    signature = incoming.header("x-slack-signature")
    timestamp = incoming.header("x-slack-request-timestamp")
    fits = False
    for file in config.signing_secret_files:  # all of them, whichever fits
        verifier = SignatureVerifier(secret(file), clock or Clock())
        fits |= _valid(verifier, incoming.body, timestamp, signature)
    if not fits:
        raise Refused(401, "the signature is missing, wrong or old")
    return signature


def _valid(verifier: SignatureVerifier, body: bytes, timestamp: str, signature: str) -> bool:
    if not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII) or not signature.isascii():
        return False
    try:
        return verifier.is_valid(body, timestamp, signature)
    except UnicodeDecodeError:
        return False


def command(config: Slack, incoming: Incoming, clock: Clock | None = None) -> Heard:
    """A slash command."""
    signature = verified(config, incoming, clock)
    fields = form(incoming.body)
    if fields.get("ssl_check") == "1":
        return Heard(None)
    team, user, channel = (fields.get(key, "") for key in ("team_id", "user_id", "channel_id"))
    said = _said(config, team, user, channel, "")
    return Heard(said, fields.get("text", ""), SLASH, once=signature, later=fields.get("response_url", ""))


def event(config: Slack, incoming: Incoming, clock: Clock | None = None) -> Heard:
    """An event: a mention of us is a message, anything else is nothing."""
    verified(config, incoming, clock)
    try:
        told = json.loads(incoming.body)
    except (ValueError, RecursionError):
        raise Refused(400, "no JSON") from None
    if not isinstance(told, dict):
        raise Refused(400, "no JSON object")
    if told.get("type") == "url_verification":
        return Heard(None, reply={"challenge": text_of(told, "challenge")[:200]})
    happened = told.get("event")
    if told.get("type") != "event_callback" or not isinstance(happened, dict) or happened.get("bot_id"):
        return Heard(None)
    if happened.get("type") != "app_mention" or text_of(happened, "user") == config.bot_user:
        return Heard(None)
    thread = text_of(happened, "thread_ts") or text_of(happened, "ts")
    said = _said(config, text_of(told, "team_id"), text_of(happened, "user"), text_of(happened, "channel"), thread)
    text = html.unescape(text_of(happened, "text").replace(f"<@{config.bot_user}>", "@bisectbot"))
    return Heard(said, text, MENTION, once=f"slack event {text_of(told, 'event_id')}", speak=True)


def _said(config: Slack, team: str, user: str, channel: str, thread: str) -> Said:
    if team != config.team:
        raise Refused(403, "another team's")
    room = {"channel": channel, "thread": thread, "user": user}
    return Said(Identity("slack", f"{team}/{user}" if user else ""), f"{channel} {thread}".strip(), room)


@dataclass(frozen=True)
class SlackSpeaker:
    """Speaks with the bot's token: `chat.postMessage`, then `chat.update` of the same message."""

    config: Slack
    edits: bool = True

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """See `Speaker`. What is private is shown to the asker alone."""
        body: dict[str, Any] = {"channel": room["channel"], "text": render(answer), "unfurl_links": False}
        if message:
            self._call("chat.update", {**body, "ts": message})
            return message
        if room.get("thread"):
            body["thread_ts"] = room["thread"]
        if answer.private:
            self._call("chat.postEphemeral", {**body, "user": room["user"]})
            return ""
        return text_of(self._call("chat.postMessage", body), "ts")

    def later(self, url: str, answer: Answer) -> None:
        """Answer a slash command by its response_url, which is only ever one of Slack's own."""
        Outbound(frozenset(self.config.response_origins)).post(url, response(answer))

    def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.config.bot_token_file is None:
            raise UserError("slack: no bot_token_file is configured")
        url = f"{self.config.api}/{method}"
        headers = {"Authorization": f"Bearer {secret(self.config.bot_token_file)}"}
        told = Outbound(frozenset({origin(self.config.api)})).post(url, body, headers=headers)
        if told.get("ok") is not True:
            error = text_of(told, "error") or "no answer"
            gone = error in {"channel_not_found", "is_archived", "not_in_channel", "message_not_found"}
            raise (UserError if gone else InfraError)(f"slack {method}: {error}")
        return told


def response(answer: Answer) -> dict[str, Any]:
    """What a slash command is answered with."""
    return {"response_type": "ephemeral" if answer.private else "in_channel", "text": render(answer)}
