"""Attempts to boot, remembered on disk before each risky step: a worker that dies forgets none.

Two dead boots of one kernel, its own fault both times, make it untestable on the host; the machine's fault is retried
by whoever asked for the run and counts against the machine.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bisectbot.errors import InfraError, Untestable
from bisectbot.results.delivery import BootRecord
from workers.hosts.watch import Blame, Death, Failure, Phase, death

DEAD_BOOTS = 2


class DiedError(Exception):
    """A boot, or a kernel in the middle of a run, has died."""

    def __init__(self, how: Death) -> None:
        super().__init__(str(how))
        self.how = how


@dataclass(frozen=True)
class Attempt:
    """One attempt. ``key`` is unique to it; ``phase`` is how far it has come, ``started`` seconds since 1970."""

    key: str
    signature: str
    started: float
    phase: Phase = Phase.RESERVED


class Journal:
    """The attempts of one host, in ``folder``: the one that goes on, dead boots by signature, and what has not been
    told yet."""

    def __init__(self, folder: Path, host: str) -> None:
        self._file = folder / "boots.json"
        self._host = host
        self.current: Attempt | None = None
        self.dead: dict[str, int] = {}
        self.records: list[BootRecord] = []
        self._load()

    def begin(self, signature: str, now: float) -> Attempt:
        """A new attempt, on disk before anything is done to the machine.

        Raises Untestable when the kernel has died twice already; the count begins anew then.
        """
        if self.dead.get(signature, 0) >= DEAD_BOOTS:
            del self.dead[signature]
            self._save()
            last = next((record for record in reversed(self.records) if record.failure), None)
            why = f": {last.message}" if last else ""
            raise Untestable(f"does not boot: {DEAD_BOOTS} boots died on {self._host}{why}")
        self.current = Attempt(f"{self._host}-{uuid.uuid4().hex[:12]}", signature, now)
        self._save()
        return self.current

    def reach(self, phase: Phase) -> None:
        """The attempt has come this far."""
        if self.current is not None and self.current.phase.before(phase):
            self.current = replace(self.current, phase=phase)
            self._save()

    def sound(self, seconds: float) -> BootRecord:
        """The attempt has booted what it should, after ``seconds``."""
        assert self.current is not None, "an attempt was begun"
        attempt, self.current = self.current, None
        self.dead.pop(attempt.signature, None)
        return self._record(
            BootRecord(attempt.key, seconds, attempt.started, phase=Phase.VERIFIED.value, signature=attempt.signature)
        )

    def died(self, how: Death, seconds: float) -> None:
        """The attempt failed."""
        assert self.current is not None, "an attempt was begun"
        attempt, self.current = self.current, None
        if how.blame is Blame.KERNEL:
            self.dead[attempt.signature] = self.dead.get(attempt.signature, 0) + 1
        told = (how.phase.value, how.failure.value, how.blame.value, str(how))
        self._record(BootRecord(attempt.key, seconds, attempt.started, *told, attempt.signature))

    def died_later(self, record: BootRecord, how: Death) -> None:
        """A sound boot's kernel died in a run. Of this, the run tells whom to believe: it is not counted here."""
        self._record(
            replace(
                record,
                phase=how.phase.value,
                failure=how.failure.value,
                blame=how.blame.value,
                message=str(how),
            )
        )

    def take(self) -> tuple[BootRecord, ...]:
        """The records since the last call, oldest first."""
        taken = tuple(self.records)
        self.records.clear()
        if taken:
            self._save()
        return taken

    def _record(self, record: BootRecord) -> BootRecord:
        self.records.append(record)
        self._save()
        return record

    def _load(self) -> None:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            self.dead = {str(signature): int(count) for signature, count in found["dead"].items()}
            self.records = [BootRecord(**record) for record in found["records"]]
            current = found["current"]
            attempt = Attempt(**{**current, "phase": Phase(current["phase"])}) if current else None
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError):  # half a file: nothing in it is worth a crash
            self.dead, self.records, attempt = {}, [], None
        if attempt is not None:
            self.current = attempt
            self.died(death(Failure.INTERRUPTED, attempt.phase, "the worker ended in the middle"), 0.0)

    def _save(self) -> None:
        text = json.dumps(
            {
                "current": asdict(self.current) if self.current else None,
                "dead": self.dead,
                "records": [asdict(record) for record in self.records],
            }
        )
        new = self._file.with_suffix(".new")
        try:
            with new.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._file)
        except OSError as error:
            raise InfraError(f"{self._file} cannot be written: {error.strerror}") from error


def boot(journal: Journal, signature: str, attempt: Callable[[Attempt], float], now: Callable[[], float]) -> BootRecord:
    """Try until a boot is sound or its failures decide: the sound one's record.

    ``attempt`` boots once and returns the seconds it took; it raises DiedError. Raises Untestable after two dead boots
    that were the kernel's fault, InfraError for a failure that was the machine's.
    """
    while True:
        this = journal.begin(signature, now())
        try:
            return journal.sound(attempt(this))
        except DiedError as error:
            journal.died(error.how, now() - this.started)
            if error.how.blame is not Blame.KERNEL:
                raise InfraError(f"no sound boot: {error.how}") from None
        except Exception:
            journal.died(death(Failure.INTERRUPTED, this.phase, "the worker could not go on"), now() - this.started)
            raise
