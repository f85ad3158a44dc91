"""One scheduler leads, the others wait; what fails is tried again, a bug ends the process loudly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from bisectbot.errors import InfraError
from bisectbot.service import scheduler
from bisectbot.service.context import Context
from bisectbot.service.scheduler import Scheduler
from bisectbot.store.database import Database
from tests.service.conftest import MakeLab
from tests.support.lab import Lab

Own = Callable[[Lab], Context]


@pytest.fixture
def own() -> Iterator[Own]:
    """The laboratory's context with connections of its own, as another process would have."""
    opened: list[Database] = []

    def connect(lab: Lab) -> Context:
        opened.append(Database(lab.config.database_url))
        return replace(lab.context, database=opened[-1])

    yield connect
    for database in opened:
        database.dispose()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_scheduler_waits_and_takes_over(make: MakeLab, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = make({"tick": "0.05s"}, scale=1.0)
    led: list[Context] = []

    def lead(context: Context) -> int:
        led.append(context)
        return 1

    monkeypatch.setattr(scheduler, "LOOPS", {"decide": (lead,)})
    first, second = Scheduler(own(lab), "first"), Scheduler(own(lab), "second")
    threads = [threading.Thread(target=process.run) for process in (first, second)]
    threads[0].start()
    wait_for(first.leading)
    threads[1].start()
    time.sleep(0.2)
    assert not second.leading()
    first.stop()
    threads[0].join()
    wait_for(second.leading)
    wait_for(lambda: led[-1] is second.context)
    second.stop()
    threads[1].join()


def test_a_step_that_fails_does_not_stop_the_others(lab: Lab, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def fails(context: Context) -> int:
        raise InfraError("upstream is away")

    def works(context: Context) -> int:
        done.append(1)
        return 1

    monkeypatch.setattr(scheduler, "LOOPS", {"decide": (fails, works)})
    process = Scheduler(own(lab), "only")
    thread = threading.Thread(target=process.run)
    thread.start()
    wait_for(lambda: len(done) >= 3)
    process.stop()
    thread.join()


def test_a_bug_ends_the_process_loudly(lab: Lab, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(context: Context) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(scheduler, "LOOPS", {"decide": (bug,)})
    with pytest.raises(ZeroDivisionError):
        Scheduler(own(lab), "only").run()
