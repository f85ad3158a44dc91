"""Results on disk until the server has them: a worker may die, and the server be away, at any moment."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import structlog

from bisectbot.errors import InfraError, UserError
from bisectbot.jobs import wire
from bisectbot.results.delivery import ArtifactRef, BuildDelivery, RunDelivery
from workers.client import Client

log = structlog.get_logger(__name__)

Delivery = RunDelivery | BuildDelivery
_KINDS: dict[str, type[RunDelivery | BuildDelivery]] = {"run": RunDelivery, "build": BuildDelivery}
_DELIVERY = "delivery.json"


class Spool:
    """Deliveries in ``folder``, each a folder of its own with its artifacts; complete from the moment it is seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, delivery: Delivery, files: Mapping[str, Path]) -> None:
        """Keep ``delivery`` with ``files`` (name → file, moved here) as its artifacts.

        A build's archive is the file named ``archive``: it becomes the delivery's ``artifact``.
        Raises InfraError when the disk does not take it.
        """
        try:
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder, ignore_cleanup_errors=True) as new:
                self._fill(Path(new), delivery, files)
                target = self.folder / _name(delivery)
                shutil.rmtree(target, ignore_errors=True)  # the same work done twice under one token: the later one
                Path(new).rename(target)
                _sync(self.folder)
        except OSError as error:
            raise InfraError(f"{self.folder} does not take a result: {error.strerror}") from error

    def entries(self) -> list[Path]:
        """What waits, oldest first."""
        waiting = [(entry.stat().st_mtime, entry) for entry in self.folder.glob("*-*-*") if entry.name[0] != "."]
        return [entry for _, entry in sorted(waiting)]

    def deliver(self, client: Client) -> int:
        """Try each entry once, whatever becomes of the others; how many still wait.

        One process at a time: while another one delivers, nothing is done.
        """
        with self._turn() as ours:
            if ours:
                for entry in self.entries():
                    try:
                        self._deliver(entry, client)
                    except InfraError as error:
                        log.warning("not delivered yet", entry=entry.name, error=str(error))
        return len(self.entries())

    def sweep(self) -> None:
        """Remove what a killed process left half written; only when no other process uses this spool."""
        for entry in self.folder.glob(".new-*"):
            shutil.rmtree(entry, ignore_errors=True)

    def _fill(self, new: Path, delivery: Delivery, files: Mapping[str, Path]) -> None:
        refs = []
        for name, file in files.items():
            sha256, size = _digest(file)
            shutil.move(file, new / sha256)
            _sync(new / sha256)
            if name == "archive" and isinstance(delivery, BuildDelivery):
                delivery = replace(delivery, artifact=sha256)
            else:
                refs.append(ArtifactRef(name, sha256, size))
        delivery = replace(delivery, artifacts=(*delivery.artifacts, *refs))
        (new / _DELIVERY).write_bytes(wire.encode(delivery))
        _sync(new / _DELIVERY)
        _sync(new)

    def _deliver(self, entry: Path, client: Client) -> None:
        try:
            delivery = _read(entry)
        except (OSError, KeyError, UserError) as error:
            aside = self.folder / "damaged" / entry.name
            log.warning("a spooled result is damaged, set aside", entry=str(aside), error=str(error))
            aside.parent.mkdir(exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            entry.rename(aside)
            return
        for sha256 in _artifacts(delivery):
            client.put_artifact(sha256, entry / sha256)
        if not client.deliver(delivery):
            log.warning("the server refused a result for good, dropped", entry=entry.name)
        done = entry.rename(self.folder / f".new-{entry.name}")  # at once: half an entry would look damaged
        shutil.rmtree(done)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[bool]:
        with (self.folder / ".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def _read(entry: Path) -> Delivery:
    """The delivery of an entry. Raises UserError, OSError or KeyError when the entry is damaged."""
    delivery = wire.decode(_KINDS[entry.name.partition("-")[0]], (entry / _DELIVERY).read_bytes())
    for sha256 in _artifacts(delivery):
        if _digest(entry / sha256)[0] != sha256:
            raise UserError(f"artifact {sha256} is damaged")
    return delivery


def _name(delivery: Delivery) -> str:
    number = delivery.run if isinstance(delivery, RunDelivery) else delivery.build
    kind = "run" if isinstance(delivery, RunDelivery) else "build"
    return f"{kind}-{number}-{delivery.token}"


def _artifacts(delivery: Delivery) -> list[str]:
    archive = [delivery.artifact] if isinstance(delivery, BuildDelivery) and delivery.artifact else []
    return list(dict.fromkeys([*archive, *(ref.sha256 for ref in delivery.artifacts)]))


def _digest(file: Path) -> tuple[str, int]:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest(), file.stat().st_size


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
