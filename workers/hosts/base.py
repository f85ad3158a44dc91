"""What every host driver can do; a driver is one file beside this one, registered in `workers.hosts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bisectbot.clock import Clock
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import BootRecord
from workers.process import Ended, Stop


@dataclass(frozen=True)
class Booted:
    """What a host has booted (or, where nothing boots, unpacked): a build's signature and the boot's key, "" if
    nothing."""

    signature: str = ""
    boot: str = ""


@dataclass(frozen=True)
class Program:
    """A shell line to run on a host, in the folder of the build. ``timeout_s`` in farm seconds, ``output_limit`` in
    bytes for stdout and stderr together."""

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0
    output_limit: int = 16 * 2**20


RESULTS = "BISECTBOT_RESULTS"
"""Variable that names an empty folder on the host; what a program leaves there comes home and belongs to the run."""


class Host(Protocol):
    """One machine. Methods raise InfraError when the machine fails, Untestable when the build does not boot on it."""

    def clear(self) -> int:
        """Stop what an earlier holder of the host left running there; how many processes there were."""

    def booted(self) -> Booted:
        """What is booted now, known to be sound."""

    def prepare(self, assignment: RunAssignment, program: Program, archive: Path, stop: Stop) -> BootRecord | None:
        """Make the host ready for the run of ``program``: ``archive`` booted, or still booted from the run before
        unless a fresh boot is asked for. The record of the boot that the run happens in; None where nothing boots."""

    def boots(self) -> tuple[BootRecord, ...]:
        """The attempts to boot since it was last asked, oldest first, whatever became of them."""

    def run(
        self,
        assignment: RunAssignment,
        program: Program,
        stdout: Path,
        stderr: Path,
        *,
        stop: Stop,
        hold: Sequence[int] = (),
    ) -> Ended:
        """Run ``program`` for the assignment, its output into two files of this machine.

        Returns when it has ended, was cut, or ``stop`` was set; the locks ``hold`` stay closed until then.
        """

    def disturbed(self) -> str:
        """What happened to the machine in the last run that makes its numbers worthless (heat, SMIs), "" if nothing."""

    def results(self) -> dict[str, Path]:
        """What the last run left in the folder `RESULTS`, by name: files of this machine, now the caller's."""

    def logs(self) -> dict[str, Path]:
        """What the machine said during the last run (``console``, ``dmesg``), likewise."""

    def read(self, path: str) -> str:
        """The text of a small file on the host (``/proc/vmstat``), "" if there is none."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What makes numbers of this host comparable (`workers.facts`)."""


@dataclass(frozen=True)
class Place:
    """Where a driver works: the host's name, its own state folder, the clock it lives by, its group's ``facts``."""

    name: str
    folder: Path
    clock: Clock
    facts: Mapping[str, object] = field(default_factory=dict)
