"""Processes die at any line: the same culprit, no run counted twice, the mail sent once.

Real broker, real Celery workers, real web server, real scheduler, real SMTP; only the hosts are simulated.
"""

from __future__ import annotations

import email
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from sqlalchemy import func, select

from bisectbot.service.people import status
from bisectbot.store.tables import Outbox, OutboxState, Report, Run, RunState, Sample
from tests.support.farm import Farm, farm
from tests.support.lab import HOST

pytestmark = pytest.mark.timeout(900)

CULPRIT = 9
LEVELS = [100.0] * CULPRIT + [94.0] * 7
WORKER = f"worker-{HOST}"


def worker_killed(running: Farm) -> None:
    """In the middle of a run, twice."""
    for _ in range(2):
        running.until(lambda: bool(status.hosts(running.context)[0].run), "a run")
        running.kill(WORKER)
        running.one_more_result()


def scheduler_killed(running: Farm) -> None:
    for _ in range(2):
        running.kill("scheduler")
        running.one_more_result()


def broker_flushed(running: Farm) -> None:
    with redis.Redis(unix_socket_path=str(running.context.config.broker_socket)) as client:
        client.flushall()


def broker_down_for_a_minute(running: Farm) -> None:
    running.kill("broker", signal.SIGSTOP)
    running.rest(60)
    running.kill("broker", signal.SIGKILL)


def server_unreachable_for_three_leases(running: Farm) -> None:
    running.until(lambda: bool(status.hosts(running.context)[0].run), "a run")
    running.kill("web", signal.SIGSTOP)
    running.rest(3 * 90)
    running.kill("web", signal.SIGCONT)


def hint_sent_many_times(running: Farm) -> None:
    for _ in range(20):
        running.context.hints.run(HOST, 1)
        running.context.hints.build(1)


def worker_back_after_its_lease(running: Farm) -> None:
    running.until(lambda: bool(status.hosts(running.context)[0].run), "a run")
    running.kill(WORKER, signal.SIGSTOP)
    running.rest(120)
    running.kill(WORKER, signal.SIGCONT)


def everything_dies_at_once(running: Farm) -> None:
    for name in list(running.tree.pids()):
        running.kill(name)


FAULTS: list[Callable[[Farm], None]] = [
    worker_killed,
    scheduler_killed,
    broker_flushed,
    broker_down_for_a_minute,
    server_unreachable_for_three_leases,
    hint_sent_many_times,
    worker_back_after_its_lease,
    everything_dies_at_once,
]


def bisect_through(fault: Callable[[Farm], None], folder: Path, database_url: str) -> None:
    """A bisection with ``fault`` in its middle, and everything that must hold at its end."""
    with farm(folder, database_url, LEVELS) as running:
        bisection = running.submit(0, len(LEVELS) - 1)
        running.until(lambda: running.results() >= 3, "three results")
        fault(running)
        running.until(lambda: status.bisection_status(running.context, bisection).line.verdict != "", "the verdict")
        seen = status.bisection_status(running.context, bisection)
        assert (seen.line.verdict, seen.line.culprit) == ("culprit", running.shas[CULPRIT])
        running.until(lambda: bool(running.sink.mails), "the mail")
        running.rest(120)
        ids = [email.message_from_bytes(mail)["Message-ID"] for mail in running.sink.mails]
        with running.context.database.read() as session:
            counted = Counter(session.execute(select(Sample.run_id)).scalars())
            assert set(counted.values()) == {1}
            done = session.execute(select(func.count()).where(Run.state == RunState.DONE)).scalar_one()
            assert len(counted) == done
            assert ids == [session.execute(select(Report.message_id)).scalar_one()]
            assert session.execute(select(Outbox.state)).scalar_one() is OutboxState.SENT


def test_a_bisection_with_real_processes_survives_the_death_of_worker_and_scheduler(
    tmp_path: Path, database_url: str
) -> None:
    def both(running: Farm) -> None:
        worker_killed(running)
        scheduler_killed(running)

    bisect_through(both, tmp_path, database_url)


@pytest.mark.real
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_chaos(fault: Callable[[Farm], None], tmp_path: Path, database_url: str) -> None:
    bisect_through(fault, tmp_path, database_url)
