"""What is recorded beside a run, one collector a file. A new one: a file with a class like `Monitor`, and its line
here. A monitor's raw log is kept as the artifact of its name; `bisectbot.results.parsers` make numbers of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from workers.hosts.base import Host
from workers.monitors.files import FileMonitor

__all__ = ["MONITORS", "Monitor", "around"]


class Monitor(Protocol):
    """Looks at the host; must not disturb the run, and never fails it."""

    name: str

    def sample(self, host: Host) -> str:
        """One look, as it is appended to the raw log; "" if there is nothing to see on this host."""


MONITORS: tuple[Monitor, ...] = (
    FileMonitor("proc-vmstat", "/proc/vmstat"),
    FileMonitor("meminfo", "/proc/meminfo"),
)


class around:  # noqa: N801 - reads as the block that it opens
    """``with around(host, folder):`` looks before and after; the logs are then ``logs`` (name → file)."""

    def __init__(self, host: Host, folder: Path, monitors: Sequence[Monitor] = MONITORS) -> None:
        self.logs: dict[str, Path] = {}
        self._host = host
        self._folder = folder
        self._monitors = monitors

    def __enter__(self) -> Self:
        self._look()
        return self

    def __exit__(self, *failure: object) -> None:
        self._look()

    def _look(self) -> None:
        for monitor in self._monitors:
            sample = monitor.sample(self._host)
            if sample:
                file = self.logs.setdefault(monitor.name, self._folder / monitor.name)
                with file.open("a", encoding="utf-8") as log:
                    log.write(sample)
