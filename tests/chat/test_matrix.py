"""Matrix as a homeserver's answers have it: edits, what was said while we were away, rooms after a restart.

The answers have the form of the client-server API; the client is the real one, over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from bisectbot.chat.commands import Desk
from bisectbot.chat.matrix import Client
from bisectbot.chat.safety import Pace
from bisectbot.config.chat import Matrix

BOT, ADA, ROOM = "@bisectbot:localhost", "@ada:localhost", "!room:localhost"
MEMBERS = (BOT, ADA, "@ops:localhost", "@eve:localhost")


def said(number: int, body: str, **content: Any) -> dict[str, Any]:
    """A message of Ada's; ``number`` names it."""
    return {
        "type": "m.room.message",
        "sender": ADA,
        "event_id": f"$event{number}",
        "origin_server_ts": 1_700_000_000_000 + number,
        "content": {"msgtype": "m.text", "body": body, **content},
    }


def edited(number: int, first: int, body: str) -> dict[str, Any]:
    """What a client sends when somebody corrects message ``first``."""
    new = {"msgtype": "m.text", "body": body}
    relation = {"rel_type": "m.replace", "event_id": f"$event{first}"}
    return said(number, f"* {body}", **{"m.new_content": new, "m.relates_to": relation})


class Homeserver:
    """A room's timeline, handed out from ``since`` on; what the bot has sent, each transaction once."""

    def __init__(self) -> None:
        self.timeline: list[dict[str, Any]] = []
        self.sent: dict[str, dict[str, Any]] = {}
        self.handed_out = 0
        handler = type("Handler", (_Handler,), {"home": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answers(self) -> list[tuple[str, str]]:
        """The event that each answer is to, and its first line."""
        found = []
        for content in self.sent.values():
            to = content["m.relates_to"]["m.in_reply_to"]["event_id"]
            found.append((to, content["body"].split("\n")[0]))
        return found

    def sync(self, since: int, full: bool) -> dict[str, Any]:
        events = self.timeline[since:]
        self.handed_out = max(self.handed_out, since)
        member = {"type": "m.room.member", "origin_server_ts": 1, "content": {"membership": "join"}}
        state = [{**member, "sender": one, "state_key": one, "event_id": f"$join{one}"} for one in MEMBERS]
        room = {
            "timeline": {"events": events, "limited": False, "prev_batch": f"p{since}"},
            "state": {"events": state if full else []},
            "account_data": {"events": []},
            "ephemeral": {"events": []},
            "summary": {},
        }
        return {
            "next_batch": f"s{since + len(events)}",
            "rooms": {"join": {ROOM: room} if full or events else {}, "invite": {}, "leave": {}},
            "to_device": {"events": []},
            "device_lists": {"changed": [], "left": []},
            "device_one_time_keys_count": {},
            "presence": {"events": []},
            "account_data": {"events": []},
        }


class _Handler(BaseHTTPRequestHandler):
    home: Homeserver

    def do_POST(self) -> None:
        self._read()
        self._answer({"user_id": BOT, "device_id": "bisectbot", "access_token": "token"})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        since = int(query.get("since", ["s0"])[0][1:])
        full = query.get("full_state") == ["true"]
        deadline = time.monotonic() + 0.2
        while not full and len(self.home.timeline) <= since and time.monotonic() < deadline:
            time.sleep(0.02)
        self._answer(self.home.sync(since, full))

    def do_PUT(self) -> None:
        transaction = unquote(urlsplit(self.path).path).rpartition("/")[2]
        self.home.sent.setdefault(transaction, json.loads(self._read()))
        self._answer({"event_id": f"${transaction}"})

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def home() -> Iterator[Homeserver]:
    made = Homeserver()
    yield made
    made.stop()


@contextmanager
def running(home: Homeserver, desk: Desk, folder: Path) -> Iterator[None]:
    """The bot, while the block runs, until it has heard everything; its state stays from one to the next."""
    (folder / "matrix.password").write_text("secret")
    config = Matrix(homeserver=home.url, user=BOT, password_file=folder / "matrix.password", servers=("localhost",))
    client = Client(config, desk.people, desk.hear, Pace(1000), folder / "chat")
    thread = threading.Thread(target=lambda: asyncio.run(client.run()))
    thread.start()
    try:
        until(client.connected.is_set)
        yield
        until(lambda: home.handed_out == len(home.timeline))  # it has asked for what comes after
    finally:
        client.stop()
        thread.join(30)
        assert not thread.is_alive()


def until(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_edited_command_is_not_heard_again(home: Homeserver, desk: Desk, tmp_path: Path) -> None:
    with running(home, desk, tmp_path):
        home.timeline += [
            said(1, "bisectbot: whoami"),
            edited(2, 1, "bisectbot: whoami"),
            edited(3, 1, "bisectbot: queue"),
            said(4, "bisectbot: queue", **{"m.new_content": {"msgtype": "m.text", "body": "bisectbot: queue"}}),
            said(5, "bisectbot: queue", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$event1"}}),
            said(6, "bisectbot: whoami", **{"m.relates_to": "no relation"}),
            said(7, "bisectbot: whoami", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$event1"}}),
        ]
    assert [event for event, _ in home.answers()] == ["$event1", "$event6", "$event7"]
    assert {line for _, line in home.answers()} == {"you are ada, developer; I know you as matrix:@\u200bada:localhost"}


def test_what_was_said_while_away_is_answered_once_and_what_was_said_before_we_came_never(
    home: Homeserver, desk: Desk, tmp_path: Path
) -> None:
    home.timeline.append(said(1, "bisectbot: whoami"))
    with running(home, desk, tmp_path):
        home.timeline.append(said(2, "bisectbot: whoami"))
    home.timeline.append(said(3, "bisectbot: whoami"))
    home.timeline.append(edited(4, 2, "bisectbot: whoami"))
    for _ in range(2):
        with running(home, desk, tmp_path):
            pass
    assert [event for event, _ in home.answers()] == ["$event2", "$event3"]


def test_a_process_killed_before_it_noted_how_far_it_was_answers_no_second_time(
    home: Homeserver, desk: Desk, tmp_path: Path
) -> None:
    with running(home, desk, tmp_path):
        pass
    [note] = (tmp_path / "chat").glob("*.since")
    before = note.read_text()
    home.timeline.append(said(1, "bisectbot: whoami"))
    with running(home, desk, tmp_path):
        pass
    note.write_text(before)
    with running(home, desk, tmp_path):
        pass
    assert [event for event, _ in home.answers()] == ["$event1"]


def test_talk_among_many_is_no_command_after_a_restart_either(home: Homeserver, desk: Desk, tmp_path: Path) -> None:
    with running(home, desk, tmp_path):
        home.timeline.append(said(1, "whoami"))
    home.timeline.append(said(2, "whoami"))
    with running(home, desk, tmp_path):
        home.timeline.append(said(3, "status of this looks bad"))
    assert home.sent == {}
