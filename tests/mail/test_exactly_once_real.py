"""The service's sender, killed at every line and on a full disk: each letter arrives, under one Message-ID."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail.message import Kind, choose_message_id, compose
from bisectbot.mail.policy import Rung, Way
from bisectbot.report.render import render_mail
from bisectbot.report.twin import to_json
from bisectbot.store.database import Database
from bisectbot.store.tables import (
    Bounce,
    Change,
    Judged,
    Judgement,
    OptOut,
    Outbox,
    OutboxState,
    Reply,
    Report,
    ReportState,
    Sighting,
)
from tests.mail.letters import AUTHOR, IDENTITY, LIST, NOW, REVIEWER, letter
from tests.mail.servers import Received, Script, smtp_server
from tests.report import samples

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

EVERYBODY = {box.address for box in (AUTHOR, REVIEWER, LIST)}
MESSAGE_ID = choose_message_id("93b7d0a2c4e6f809", IDENTITY, NOW)


class Sender:
    """The process of killable.py."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self._port = port

    def run(self, url: str, folder: Path, *, step: str = "send", kill_at: int = 0, most_bytes: int = 0) -> int:
        """Do a step once; returns the signal that ended it, or 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(step, url, folder, self._port, kill_at, most_bytes, file=self._process.stdin, flush=True)
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


def everything(url: str) -> tuple[Counter[str], list[str], int, int, set[str]]:
    """What stands in the database: letters by kind, keys, replies, bounces, opt-outs."""
    database = Database(url)
    with database.read() as session:
        rows = session.execute(select(Outbox)).scalars().all()
        replies, bounces = (len(session.execute(select(table.id)).all()) for table in (Reply, Bounce))
        out = set(session.execute(select(OptOut.address)).scalars())
    database.engine.dispose()
    return Counter(row.kind for row in rows), sorted(row.dedup_key for row in rows), replies, bounces, out


@pytest.fixture(scope="module")
def busy(template: bytes, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database in which every step has something to do: a wrong report and one with more, both sent, one below."""
    folder = tmp_path_factory.mktemp("busy")
    url = fresh(folder / "b", template)
    database = Database(url)
    with database.write() as session:
        session.get_one(Outbox, 1).state = OutboxState.CANCELLED
        for number in (1, 2, 3):
            reported(session, number)
        session.add(Judgement(report_id=1, judged=Judged.WRONG, who="Ada", why="no", at=NOW))
        session.add(Sighting(report_id=2, place="linus:master", sha="c" * 40, exact=True, seen=NOW))
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.engine.dispose()
    return (folder / "b" / "b.sqlite").read_bytes()


def reported(session: Session, number: int) -> None:
    """A report; the first two have reached the author a week ago, the third is below the bar."""
    model = samples.report()
    text = render_mail(model)
    session.add(Change(id=number, key=f"{number:040x}"))
    session.flush()
    left = number < 3
    session.add(
        Report(
            id=number,
            change_id=number,
            direction="regression",
            sha=model.commit.id,
            subject=text.subject,
            body=text.body,
            twin=json.loads(to_json(model)),
            state=ReportState.RELEASED if left else ReportState.HELD,
            message_id=f"<{number}@bisectbot.example.org>",
            created=NOW,
        )
    )
    session.flush()
    session.add(
        Outbox(
            report_id=number,
            kind=Kind.REPORT.value,
            message_id=f"<{number}@bisectbot.example.org>",
            dedup_key=f"report/R{number}",
            state=OutboxState.SENT if left else OutboxState.AWAITING_APPROVAL,
            way=Way.MAIL.value if left else Way.DIGEST.value,
            rung=int(Rung.AUTHOR),
            addressees=[
                {"address": AUTHOR.address, "name": AUTHOR.name, "place": "to", "why": "author", "list": False}
            ],
            waiting=[],
            reached=[AUTHOR.address] if left else [],
            raw=bytes(compose(letter(message_id=f"<{number}@bisectbot.example.org>"), IDENTITY, NOW)),
            held=[],
            created=NOW,
            sent=NOW if left else None,
        )
    )


@pytest.mark.parametrize(
    ("step", "kinds"),
    [
        ("sequels", {"report": 4, "followup": 1, "correction": 1}),
        ("weekly", {"report": 4, "digest": 1}),
        ("receive", {"report": 4}),
    ],
)
def test_the_other_steps_killed_at_every_line(busy: bytes, tmp_path: Path, step: str, kinds: dict[str, int]):
    """Whatever a step had done when it died, done again it comes to the same, and each letter is written once."""
    answers = [
        f"From: {AUTHOR.address}\nMessage-ID: <out@x>\nSubject: unsubscribe\n\n",
        f"From: {REVIEWER.address}\nMessage-ID: <one@x>\nIn-Reply-To: <2@bisectbot.example.org>\n\nThanks.\n",
    ]
    found = set()
    with sender(1) as process:
        line, ended = 0, int(signal.SIGKILL)
        while ended == signal.SIGKILL:
            line += 1
            folder = tmp_path / str(line)
            url = fresh(folder, busy)
            for part in ("new", "cur", "tmp"):
                (folder / "drop" / part).mkdir(parents=True)
            for number, raw in enumerate(answers):
                (folder / "drop" / "new" / f"{number}").write_text(raw)
            ended = process.run(url, folder, step=step, kill_at=line)
            assert process.run(url, folder, step=step) == 0
            seen = everything(url)
            assert seen[0] == kinds
            found.add(repr(seen))
            shutil.rmtree(folder)
    assert ended == 0
    assert line > 20
    assert len(found) == 1


def test_greylisted_then_down_then_cut(template: bytes, tmp_path: Path):
    script = Script(mail=["451 4.7.1 greylisted"], data=["452 4.3.1 disk full"])
    script.rcpt[AUTHOR.address] = ["450 4.7.1 greylisted"]
    folder = tmp_path / "grey"
    url = fresh(folder, template)
    with smtp_server(script) as settings, sender(settings.port) as process:
        process.until_sent(url, folder)
    assert copies(script.received) == dict.fromkeys(EVERYBODY, 1)
