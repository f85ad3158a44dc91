"""One worker: what it serves, where it keeps things, whom it reports to."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bisectbot.clock import Clock
from bisectbot.config import Config
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.queues import BUILD_QUEUE, host_queue
from workers.client import Client
from workers.lock import alone, exclusive
from workers.spool import Spool


@dataclass(frozen=True)
class Station:
    """``name`` is a host's, or ``build``. ``instance`` is unique to the life of this worker."""

    config: Config
    name: str
    clock: Clock
    instance: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, config: Config, name: str, clock: Clock) -> Station:
        """The station called ``name``; its folder is made. Raises UserError for a host that the configuration lacks."""
        if name != BUILD_QUEUE and name not in config.hosts:
            there = ", ".join([*sorted(config.hosts), BUILD_QUEUE])
            raise UserError(f"no host {name!r} in the configuration; there are: {there}")
        station = cls(config, name, clock)
        try:
            station.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"worker.state: {station.folder} cannot be made: {error.strerror}") from None
        return station

    @property
    def builds(self) -> bool:
        return self.name == BUILD_QUEUE

    @property
    def queue(self) -> str:
        return BUILD_QUEUE if self.builds else host_queue(self.name)

    @property
    def folder(self) -> Path:
        return self.config.worker.state / self.name

    @property
    def owner(self) -> str:
        """What every process that this station starts carries in its environment."""
        return f"{self.name} {self.folder.resolve()}"

    @property
    def spool(self) -> Spool:
        return Spool(self.folder / "spool")

    def client(self) -> Client:
        return Client.of(self.config)

    @contextmanager
    def measuring(self) -> Iterator[tuple[int, ...]]:
        """The machine to ourselves, as far as the configuration asks for it; yields the locks' descriptors."""
        names = {self.config.worker.exclusive}
        if not self.builds:
            names.add(self.config.hosts[self.name].exclusive)
        with exclusive(names) as held:
            yield held

    @contextmanager
    def desk(self) -> Iterator[Path]:
        """An empty folder, on the disk of the spool, that is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="desk-", dir=self.folder, ignore_cleanup_errors=True) as desk:
            yield Path(desk)

    @contextmanager
    def slot(self) -> Iterator[str]:
        """A build slot of this machine that nobody else builds in: the one that was used last, which is the warmest.

        Raises InfraError when all are taken, which another number of processes than slots would cause.
        """
        names = [f"slot{number}" for number in range(self.config.worker.slots)]
        names.sort(key=lambda name: -self._used(name))
        for name in names:
            with ExitStack() as held:
                try:
                    held.enter_context(alone(self.folder / f"{name}.lock", name))
                except UserError:
                    continue
                (self.folder / f"{name}.lock").touch()
                yield name
                return
        raise InfraError(f"all {len(names)} build slots are taken")

    def _used(self, slot: str) -> float:
        try:
            return (self.folder / f"{slot}.lock").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def sweep(self) -> None:
        """Remove what an earlier worker left half done; only when this worker is alone."""
        self.spool.sweep()
        for desk in self.folder.glob("desk-*"):
            shutil.rmtree(desk, ignore_errors=True)
