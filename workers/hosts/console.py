"""Listening to a console: everything is heard, a bounded part is kept."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bisectbot.errors import InfraError
from workers.hosts.watch import BootWatch, Death

HEAD, TAIL = 4 * 2**20, 2**20
"""Bytes of a console that are kept: from the beginning and from the end."""
PAUSE_S, REOPEN_S = 0.02, 2.0


class Listener:
    """Reads a console in a thread, keeps its log and feeds a watch.

    ``read`` waits a moment for bytes and returns b"" if none came; while it raises InfraError, that is `gone`. A guest
    that prints without end costs processor time, but neither memory nor disk.
    """

    def __init__(self, read: Callable[[], bytes], watch: BootWatch, file: Path) -> None:
        self.watch = watch
        self.file = file
        self.gone: InfraError | None = None
        self._read = read
        self._over = threading.Event()
        self._turn = threading.RLock()
        self._head = 0
        self._tail: deque[bytes] = deque()
        self._tail_bytes = self._left_out = 0
        self._thread = threading.Thread(target=self._listen, name="console", daemon=True)
        self._log = file.open("wb")
        self._thread.start()

    def death(self) -> Death | None:
        """What the boot died of, if it has by now."""
        with self._turn:
            self.watch.tick(time.monotonic())
            return self.watch.death

    def tell(self, what: Callable[[BootWatch], object]) -> None:
        """Do something to the watch while nothing else does."""
        with self._turn:
            what(self.watch)

    def close(self) -> None:
        """Stop listening; the log is whole."""
        self._over.set()
        self._thread.join(10.0)
        with self._turn:
            if self._log.closed:
                return
            if self._left_out:
                self._log.write(b"\n[... %d bytes left out ...]\n" % self._left_out)
            for piece in self._tail:
                self._log.write(piece)
            self._log.close()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                data = self._read()
            except InfraError as error:  # a console that breaks off is opened again; meanwhile the boot goes on unheard
                self.gone = error
                self._over.wait(REOPEN_S)
                continue
            self.gone = None
            if not data:
                self._over.wait(PAUSE_S)
            with self._turn:
                self.watch.feed(data, time.monotonic())
                self._keep(data)

    def _keep(self, data: bytes) -> None:
        if self._log.closed:
            return
        head = data[: max(0, HEAD - self._head)]
        self._log.write(head)
        self._log.flush()
        self._head += len(head)
        if rest := data[len(head) :]:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
        while self._tail_bytes > TAIL and len(self._tail) > 1:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self._left_out += gone
