"""A desk over a laboratory, with people of every role, and transports configured against nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bisectbot.chat.commands import Desk, open_desk
from bisectbot.chat.people import Identity
from bisectbot.chat.said import Said
from tests.support.lab import Lab, make_lab

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"role": "developer", "slack": "T1/UADA", "mattermost": "chat.example.org/ada", "matrix": "@ada:localhost",
            "irc": "testnet/ada", "zulip": "zulip.example.org/7", "mail": ["ada@example.org"]},
    "grace": {"role": "sheriff", "slack": "T1/UGRACE", "mail": "grace@example.org"},
    "ops": {"role": "operator", "slack": "T1/UOPS", "matrix": "@ops:localhost", "irc": "testnet/ops"},
}  # fmt: skip
SECRETS = {"slack.secret": "8f742231b10e8888abcd99yyyzzz85a5", "slack.next": "another-secret", "slack.token": "xoxb-1",
           "mattermost.token": "mm-token", "mattermost.bot": "mm-bot", "zulip.token": "z-token",
           "zulip.key": "z-key"}  # fmt: skip


def chat_config(**changes: Any) -> dict[str, Any]:
    """The section ``chat`` with Slack, Mattermost and Zulip."""
    return {
        "slack": {"signing_secret_files": ["slack.secret", "slack.next"], "team": "T1", "bot_user": "UBOT",
                  "bot_token_file": "slack.token"},
        "mattermost": {"url": "https://chat.example.org", "token_files": ["mattermost.token"],
                       "bot_token_file": "mattermost.bot"},
        "zulip": {"url": "https://zulip.example.org", "bot_email": "bisectbot-bot@zulip.example.org",
                  "token_files": ["zulip.token"], "api_key_file": "zulip.key"},
        **changes,
    }  # fmt: skip


def write_people(folder: Path) -> None:
    """people.yaml and the secrets that `chat_config` names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.yaml").write_text(yaml.safe_dump({"people": PEOPLE}))
    for name, text in SECRETS.items():
        (folder / name).write_text(text + "\n")


def make_desk(folder: Path, database_url: str, chat: dict[str, Any] | None = None, **desk: Any) -> tuple[Lab, Desk]:
    """A laboratory and the desk in front of it."""
    write_people(folder)
    lab = make_lab(folder, database_url, {"chat": chat if chat is not None else chat_config()})
    return lab, open_desk(lab.context, **desk)


def said(who: str, transport: str = "slack", **more: Any) -> Said:
    """A message of one of `PEOPLE`, or of a stranger."""
    known = PEOPLE.get(who, {}).get(transport, "")
    identity = known[0] if isinstance(known, list) else known
    return Said(Identity(transport, identity or (f"T1/{who}" if transport == "slack" else who)), "here", **more)
