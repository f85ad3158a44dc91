"""Heartbeats: as long as we work on something, the server hears of it."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import structlog

from bisectbot.clock import Clock
from bisectbot.errors import InfraError
from bisectbot.jobs.assignment import Heartbeat
from workers.client import Client
from workers.process import Stop

log = structlog.get_logger(__name__)


class Lease:
    """Says every third of the lease that we are still at it, from a thread of its own.

    An unreachable server changes nothing: the work goes on and its result is delivered later. Only when the server
    says that nobody wants it any more, `stop` is set.
    """

    def __init__(self, client: Client, beat: Heartbeat, lease_s: float, clock: Clock) -> None:
        self.stop = Stop()
        self._client = client
        self._beat = beat
        self._interval = clock.real(lease_s) / 3
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease {beat.kind} {beat.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()
        self.stop.close()

    def _keep(self) -> None:
        while not self._over.wait(self._interval):
            try:
                reply = self._client.heartbeat(self._beat)
            except InfraError as error:
                log.warning("heartbeat not heard", kind=self._beat.kind, id=self._beat.id, error=str(error))
                continue
            if not reply.go_on:
                self.stop.set(reply.reason or "the server wants it no more")
                return
