"""``python -m workers.main HOST --config bisectbot.yaml``: a worker for one host, or for the ``build`` queue."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

import structlog
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.signals import worker_process_init

from bisectbot import clock, config
from bisectbot.errors import BisectbotError, InfraError
from bisectbot.jobs.queues import BUILD_QUEUE
from workers import hosts, process
from workers.app import make_app
from workers.keeper import PR_SET_PDEATHSIG, prctl
from workers.lock import alone
from workers.station import Station

log = structlog.get_logger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 5.0, 300.0  # farm time between attempts to deliver what waits


def serve(settings: config.Config, name: str) -> int:
    """Work for the host ``name`` until SIGTERM, which lets the run in hand end; the exit status.

    Raises UserError when the configuration does not fit this machine or another worker is here already.
    """
    station = Station.of(settings, name, clock.from_environment())
    with alone(station.folder / "worker.lock", f"a worker for {name}"):
        place = hosts.Place(name, station.folder, station.clock, _facts(settings, name))
        host = None if station.builds else hosts.attach(place, settings.hosts[name])
        left = process.kill_owned(station.owner) + (host.clear() if host else 0)
        if left:
            log.warning("stopped what an earlier worker left running", processes=left)
        station.sweep()
        warnings.simplefilter("ignore", SecurityWarning)  # root is how a controller reaches its box; no pickle here
        warnings.simplefilter("ignore", CPendingDeprecationWarning)
        app = make_app(station, settings.broker_url, host)
        parent = os.getpid()
        worker_process_init.connect(lambda **_: _die_with(parent), weak=False)
        with _Postman(station):
            worker = app.Worker(
                hostname=f"{name}@{os.uname().nodename}",
                pool="prefork",
                concurrency=settings.worker.slots if station.builds else 1,
                optimization="fair",
                without_gossip=True,
                without_mingle=True,
                without_heartbeat=True,
                quiet=True,
            )
            worker.start()
        return int(worker.exitcode or 0)


def _facts(settings: config.Config, name: str) -> Mapping[str, object]:
    """What the host's group is said to be."""
    known = settings.facts.get(settings.hosts[name].group) if name in settings.hosts else None
    return known.facts if known else {}


class _Postman:
    """Delivers what waits in the spool for as long as the worker runs, ever more rarely while nothing gets through."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._round, name="postman", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join(5.0)  # it may hang in a request; what is not delivered waits for the next worker

    def _round(self) -> None:
        spool, client = self._station.spool, self._station.client()
        wait = 0.0
        while not self._over.wait(self._station.clock.real(wait)):
            try:
                left = spool.deliver(client) if spool.entries() else 0
            except OSError as error:
                log.warning("the spool cannot be read", error=str(error))
                left = 1
            wait = min(max(2 * wait, FIRST_RETRY_S), LAST_RETRY_S) if left else FIRST_RETRY_S
        client.close()


def _die_with(parent: int) -> None:
    """In the process that does the work: a worker that is killed outright must not work on in secret."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.main", description=__doc__)
    parser.add_argument("host", help=f"a host of the configuration, or {BUILD_QUEUE!r}")
    parser.add_argument("--config", type=Path, default=Path("config/bisectbot.yaml"))
    options = parser.parse_args(arguments)
    try:
        return serve(config.load(options.config), options.host)
    except InfraError as error:
        sys.stderr.write(f"bisectbot worker: {error}\n")
        return 3
    except BisectbotError as error:
        sys.stderr.write(f"bisectbot worker: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
