"""A shell on another machine over ssh: scripts go in on stdin, so that nothing of them stands in a command line."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import InfraError

CONNECT_S = 10.0
LOST = 255
"""ssh's own exit status: the machine could not be reached, or was lost."""


class LostError(InfraError):
    """The machine cannot be reached over ssh."""


@dataclass(frozen=True)
class Shell:
    """``address`` is ``user@host``; ``key`` and ``known_hosts`` are files, ssh's own defaults if None.

    Every method raises LostError when the machine cannot be reached within the time limit (real seconds), InfraError
    when a script fails that must not.
    """

    name: str
    address: str
    port: int = 22
    key: Path | None = None
    known_hosts: Path | None = None

    def run(self, script: str, timeout_s: float = 60.0) -> str:
        """Run a script that must succeed; what it printed."""
        done = self._ssh(script.encode("utf-8", "surrogateescape"), "/bin/sh -s", timeout_s)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise InfraError(f"{self.name}: a script failed with status {done.returncode}: {' '.join(said)[:300]}")
        return done.stdout.decode("utf-8", "surrogateescape")

    def reachable(self, timeout_s: float = CONNECT_S) -> bool:
        try:
            self.run("true", timeout_s)
        except InfraError:
            return False
        return True

    def put(self, content: bytes, path: str, timeout_s: float = 600.0) -> None:
        """Write a file, whole or not at all."""
        line = f"cat > {quote(path + '.new')} && mv {quote(path + '.new')} {quote(path)}"
        if self._ssh(content, line, timeout_s).returncode != 0:
            raise InfraError(f"{self.name}: {path} cannot be written; is its disk full?")

    def get(self, path: str, limit: int, timeout_s: float = 600.0) -> bytes:
        """A file's first ``limit`` bytes, b"" if there is none."""
        return self._ssh(b"", f"head -c {limit} {quote(path)} 2>/dev/null; true", timeout_s).stdout

    def fetch(self, folder: str, timeout_s: float = 600.0) -> bytes:
        """A tar.gz of a folder."""
        return self._ssh(b"", f"tar -C {quote(folder)} -czf - . 2>/dev/null; true", timeout_s).stdout

    def _ssh(self, given: bytes, command: str, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        options = ["BatchMode=yes", f"ConnectTimeout={CONNECT_S:.0f}", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
        words = ["ssh", "-F", "none", "-p", str(self.port), *_options(options)]
        if self.key:
            words += ["-i", str(self.key), *_options(["IdentitiesOnly=yes"])]
        if self.known_hosts:
            words += _options([f"UserKnownHostsFile={self.known_hosts}", "StrictHostKeyChecking=yes"])
        try:
            done = subprocess.run(
                [*words, self.address, command], check=False, input=given, capture_output=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.name}: no answer over ssh within {timeout_s:g} s") from None
        if done.returncode == LOST:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise LostError(f"{self.name}: cannot be reached over ssh: {' '.join(said)[:200]}")
        return done


def quote(word: str) -> str:
    """A word for a shell."""
    return "'" + word.replace("'", "'\\''") + "'"


def _options(options: Sequence[str]) -> list[str]:
    return [word for option in options for word in ("-o", option)]
