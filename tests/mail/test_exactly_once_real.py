"""The service's sender, killed at every line and on a full disk: each letter arrives, under one Message-ID."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bisectbot.mail.message import Kind, choose_message_id, compose
from bisectbot.mail.policy import Rung, Way
from bisectbot.store.database import Database
from bisectbot.store.tables import Outbox, OutboxState
from tests.mail.letters import AUTHOR, IDENTITY, LIST, NOW, REVIEWER, letter
from tests.mail.servers import Received, Script, smtp_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

EVERYBODY = {box.address for box in (AUTHOR, REVIEWER, LIST)}
MESSAGE_ID = choose_message_id("93b7d0a2c4e6f809", IDENTITY, NOW)


class Sender:
    """The process of killable.py."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self._port = port

    def run(self, url: str, folder: Path, *, kill_at: int = 0, most_bytes: int = 0) -> int:
        """Send what is due once; returns the signal that ended it, or 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(url, folder, self._port, kill_at, most_bytes, file=self._process.stdin, flush=True)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status := int(self._process.stdout.readline())) else 0

    def until_sent(self, url: str, folder: Path) -> None:
        """Send until the only letter is over, as the scheduler's loop does."""
        end = time.monotonic() + 30.0
        while state(url) is not OutboxState.SENT:
            assert time.monotonic() < end, state(url)
            assert self.run(url, folder) == 0
            time.sleep(0.05)


@contextmanager
def sender(port: int) -> Iterator[Sender]:
    command = [sys.executable, "-m", "tests.mail.killable"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        yield Sender(process, port)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database whose outbox holds one letter, as a file."""
    file = tmp_path_factory.mktemp("template") / "b.sqlite"
    database = Database(f"sqlite:///{file}")
    database.upgrade()
    with database.write() as session:
        session.add(
            Outbox(
                kind=Kind.REPORT.value,
                message_id=MESSAGE_ID,
                dedup_key="report/1",
                state=OutboxState.QUEUED,
                way=Way.MAIL.value,
                rung=int(Rung.OPERATORS),
                waiting=[box.address for box in (AUTHOR, REVIEWER, LIST)],
                raw=bytes(compose(letter(), IDENTITY, NOW)),
                held=[],
                created=NOW,
            )
        )
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.engine.dispose()
    return file.read_bytes()


def state(url: str) -> OutboxState:
    database = Database(url)
    with database.read() as session:
        found = session.get_one(Outbox, 1).state
    database.engine.dispose()
    return found


def fresh(folder: Path, template: bytes) -> str:
    folder.mkdir()
    (folder / "b.sqlite").write_bytes(template)
    return f"sqlite:///{folder / 'b.sqlite'}"


def copies(received: list[Received]) -> Counter[str]:
    """How often each address got the letter; all of them under its one Message-ID."""
    assert {str(one.message["Message-ID"]) for one in received} == {MESSAGE_ID}
    return Counter(address for one in received for address in one.recipients)


def test_killed_at_every_line(template: bytes, tmp_path: Path):
    """Only between the server's answer and the record of it can a kill lead to a second copy."""
    script = Script()
    twice = 0
    with smtp_server(script) as settings, sender(settings.port) as process:
        line = 0
        while True:
            line += 1
            folder = tmp_path / str(line)
            url = fresh(folder, template)
            ended = process.run(url, folder, kill_at=line)
            if ended == 0:
                break
            assert ended == signal.SIGKILL
            unrecorded = bool(script.received) and state(url) is not OutboxState.SENT
            process.until_sent(url, folder)
            assert copies(script.received) == dict.fromkeys(EVERYBODY, 2 if unrecorded else 1)
            twice += unrecorded
            script.received.clear()
    assert line > 100
    assert 0 < twice < line / 2


@pytest.mark.parametrize("most_bytes", [1, 4096])
def test_a_full_disk_only_delays(template: bytes, tmp_path: Path, most_bytes: int):
    script = Script()
    folder = tmp_path / "disk"
    url = fresh(folder, template)
    with smtp_server(script) as settings, sender(settings.port) as process:
        for _ in range(3):
            assert process.run(url, folder, most_bytes=most_bytes) == 0
            assert script.received == []
        process.until_sent(url, folder)
    assert copies(script.received) == dict.fromkeys(EVERYBODY, 1)


def test_greylisted_then_down_then_cut(template: bytes, tmp_path: Path):
    script = Script(mail=["451 4.7.1 greylisted"], data=["452 4.3.1 disk full"])
    script.rcpt[AUTHOR.address] = ["450 4.7.1 greylisted"]
    folder = tmp_path / "grey"
    url = fresh(folder, template)
    with smtp_server(script) as settings, sender(settings.port) as process:
        process.until_sent(url, folder)
    assert copies(script.received) == dict.fromkeys(EVERYBODY, 1)
