"""This machine as a host: nothing boots, a build is unpacked and its programs run here, pinned.

It is made ready and looked at as a box is: what its file says is set and read back, heat discards a run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from bisectbot import config
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import BootRecord
from workers import process
from workers.archive import unpack
from workers.facts import environment
from workers.hosts.base import RESULTS, Booted, Place, Program
from workers.hosts.here import Here
from workers.hosts.inventory import expected
from workers.hosts.ready import disturbances, make_ready, wanted
from workers.process import Command, Ended, Stop, check_cpus, clean_environment


class LocalHost:
    """Every build is unpacked at the same path (its length moves the stack, and so the numbers), fresh whenever the
    build changes or a fresh boot is asked for."""

    def __init__(self, place: Place, settings: config.Host, here: Here | None = None) -> None:
        self._place = place
        self._here = here or Here()
        self._ready = settings.ready
        self._expected = expected(place.facts)
        self._before: dict[str, str] = {}
        self._disturbed: list[str] = []
        self._cpus = settings.local.cpus
        self._tree = place.folder / "unpacked"
        self._home = place.folder / "scratch"
        self._results = place.folder / "results"
        self._mark = place.folder / "unpacked.signature"
        self._owner = f"{place.name} {place.folder.resolve()}"
        check_cpus(self._cpus, f"host {place.name}: local.cpus")

    def clear(self) -> int:
        return process.kill_owned(self._owner)

    def booted(self) -> Booted:
        try:
            return Booted(signature=self._mark.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Booted()

    def prepare(
        self,
        assignment: RunAssignment,
        program: Program,  # noqa: ARG002
        archive: Path,
        stop: Stop,  # noqa: ARG002
    ) -> BootRecord | None:
        if assignment.fresh_boot or not assignment.signature or self.booted().signature != assignment.signature:
            self._mark.unlink(missing_ok=True)  # first: half a tree is no build
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self._tree)
            unpack(archive, self._tree)
            self._mark.write_text(assignment.signature, encoding="utf-8")
        want = wanted(self._ready, assignment.job)
        self._before = make_ready(self._place.name, self._here, want, self._expected)
        return None

    def boots(self) -> tuple[BootRecord, ...]:
        return ()

    def run(
        self,
        assignment: RunAssignment,  # noqa: ARG002
        program: Program,
        stdout: Path,
        stderr: Path,
        *,
        stop: Stop,
        hold: Sequence[int] = (),
    ) -> Ended:
        self._home.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._results, ignore_errors=True)
        self._results.mkdir()
        try:
            command = Command(
                ("/bin/sh", "-c", program.line),
                cwd=self._tree,
                environment=clean_environment(self._home, {**program.environment, RESULTS: str(self._results)}),
                timeout_s=self._place.clock.real(program.timeout_s),
                output_limit=program.output_limit,
                cpus=self._cpus,
            )
            ended = process.run(command, stdout, stderr, owner=self._owner, stop=stop, hold=hold)
            self._disturbed = disturbances(self._before, self._here.look())
            return ended
        finally:
            shutil.rmtree(self._home, ignore_errors=True)

    def disturbed(self) -> str:
        return "; ".join(self._disturbed)

    def results(self) -> dict[str, Path]:
        return {file.name: file for file in sorted(self._results.glob("*")) if file.is_file() and not file.is_symlink()}

    def logs(self) -> dict[str, Path]:
        return {}

    def read(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*environment(self.read), ("kernel", os.uname().release))
