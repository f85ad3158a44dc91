"""Matrix against a real Synapse: who may invite, and that a command is answered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from bisectbot.chat.commands import Desk
from bisectbot.chat.matrix import Client
from bisectbot.chat.safety import Pace
from bisectbot.config.chat import Matrix
from tests.support.homeserver import PASSWORD, Homeserver, Member

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]
BOT = "@bisectbot:localhost"
Running = Callable[..., AbstractContextManager[Client]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    made = Homeserver(tmp_path_factory.mktemp("matrix"), ("bisectbot", "ada", "ops", "eve"))
    yield made
    made.stop()


@pytest.fixture
def running(server: Homeserver, desk: Desk, tmp_path: Path) -> Running:
    """The bot, while the block runs; its state stays from one to the next."""
    (tmp_path / "matrix.password").write_text(PASSWORD)

    @contextmanager
    def run(*servers: str) -> Iterator[Client]:
        config = Matrix(
            homeserver=server.url,
            user=BOT,
            password_file=tmp_path / "matrix.password",
            servers=servers or ("localhost",),
        )
        client = Client(config, desk.people, desk.hear, Pace(1000), tmp_path / "chat")
        thread = threading.Thread(target=lambda: asyncio.run(client.run()))
        thread.start()
        deadline = time.monotonic() + 60
        while not client.connected.is_set():
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        try:
            yield client
        finally:
            client.stop()
            thread.join(30)
            assert not thread.is_alive()

    return run


def joined(member: Member, room: str) -> bool:
    return BOT in member.call("GET", f"rooms/{room}/joined_members")["joined"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_operators_invite_and_a_command_is_answered(server: Homeserver, running: Running) -> None:
    ops, ada, eve = (Member(server, name) for name in ("ops", "ada", "eve"))
    with running():
        evil = eve.room(BOT)
        room = ops.room(BOT, ada.id, eve.id)
        wait_for(lambda: joined(ops, room))
        assert not joined(eve, evil)
        for member in (ada, eve):
            member.call("POST", f"join/{room}", {})
        ada.say(room, "bisectbot: whoami")
        ada.wait(room, "you are ada, developer; I know you as matrix:@\u200bada:localhost")
