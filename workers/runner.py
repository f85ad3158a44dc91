"""Running a command in a work tree, here or through another program: ``ssh box``, ``docker exec -i c sh -c``."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bisectbot.errors import InfraError
from workers import process
from workers.process import Command, Ended

UNREACHABLE = 255
"""ssh's own exit status when it could not reach the other side."""
ATTEMPTS = 3
PAUSE_S = 10.0  # before the second attempt, twice as long before the third


@dataclass(frozen=True)
class Runner:
    """Runs shell lines at the root of a tree.

    ``prefix`` is a program that takes one more argument, a shell line, and runs it where the numbers are to come
    from; "" runs it here. The other side gets a copy of the tree through the program's stdin (it needs tar), at
    the same path for every commit. ``timeout_s`` and ``output_limit`` bound one run.
    """

    prefix: str = ""
    name: str = "bisectbot"
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 3600.0
    output_limit: int = 64 * 2**20

    @property
    def folder(self) -> str:
        """Where the other side keeps the tree."""
        return f"/tmp/{self.name}"  # noqa: S108 - on another machine

    def bring(self, tree: Path, log: Path) -> None:
        """Copy ``tree`` to the other side, replacing the one before. Raises InfraError when that fails."""
        if not self.prefix:
            return
        there = shlex.quote(self.folder)
        line = f"rm -rf {there} && mkdir -p {there} && tar -xf - -C {there}"
        pipe = f"tar -cf - --exclude=./.git . | {self.prefix} {shlex.quote(line)}"
        ended = self._tried(Command(("/bin/sh", "-c", pipe), tree, self.environment), log)
        if ended.status:
            text = log.read_text(encoding="utf-8", errors="replace").strip()[-200:]
            raise InfraError(f"the tree could not be copied through {self.prefix!r}: {text}")

    def run(self, line: str, tree: Path, stdout: Path, stderr: Path) -> Ended:
        """Run ``line`` in ``tree``. Raises InfraError when the other side cannot be reached."""
        if self.prefix:
            line = f"{self.prefix} {shlex.quote(f'cd {shlex.quote(self.folder)} && {line}')}"
        command = Command(("/bin/sh", "-c", line), tree, self.environment, self.timeout_s, self.output_limit)
        return self._tried(command, stdout, stderr)

    def _tried(self, command: Command, stdout: Path, stderr: Path | None = None) -> Ended:
        for attempt in range(1, ATTEMPTS + 1):
            ended = process.run(command, stdout, stderr)
            if not self.prefix or ended.status != UNREACHABLE:
                return ended
            if attempt < ATTEMPTS:
                time.sleep(PAUSE_S * attempt)
        text = (stderr or stdout).read_text(encoding="utf-8", errors="replace").strip()[-200:]
        raise InfraError(f"{self.prefix!r} failed {ATTEMPTS} times (exit status {UNREACHABLE}): {text}")
