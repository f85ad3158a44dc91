"""A file of the host that holds counters, read before and after the run: costs the measured machine nothing."""

from __future__ import annotations

import time

from workers.hosts.base import Host


class FileMonitor:
    """Each look is a line ``time: SECONDS`` and the file's text, the layout in which LKP keeps such logs."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self._path = path

    def sample(self, host: Host) -> str:
        text = host.read(self._path)
        return f"time: {time.time():.3f}\n{text.rstrip()}\n" if text else ""
