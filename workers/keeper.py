"""The parent of one command: a small process that sees to it that nothing of the command stays behind.

Started by `workers.process` as a script of its own (standard library only), with a socket as stdin and stdout: the
order comes in as one line of JSON, the outcome goes back as one. When the socket closes, because the worker wants
the command stopped or because the worker died, everything that the command ever started is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 65536
STUBBORN_S = 10.0  # a killed process that is still there after this sits in the kernel; nothing can be done


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of the command become our children, however often they fork
    order = json.loads(sys.stdin.readline())
    try:
        outcome = Keeper(order).keep()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        kill_rest()
        outcome = {"error": str(error)}
    with contextlib.suppress(BrokenPipeError):  # the worker is gone
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Keeper:
    """One command from start to the last of its processes; ``order`` is what `workers.process.run` wrote."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.left_bytes: int = order["output_limit"]
        self.cut = ""
        self.selector = selectors.DefaultSelector()
        self.streams: dict[int, int] = {}  # a pipe → the file that it is copied to
        self.status: int | None = None
        self.user_s = self.system_s = 0.0

    def keep(self) -> dict[str, object]:
        wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end("stopped"))
        started = time.monotonic()
        deadline = started + self.order["timeout_s"]
        self.command = self.start()
        self.selector.register(wake[0], selectors.EVENT_READ)
        self.selector.register(0, selectors.EVENT_READ)
        while self.status is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self.end("timeout")
            for key, _ in self.selector.select(None if self.cut else max(0.0, remaining)):
                self.ready(key.fd, wake[0])
            self.reap()
        seconds = time.monotonic() - started
        left, stuck = kill_rest()
        self.drain()
        return {
            "status": self.status,
            "cut": self.cut,
            "seconds": seconds,
            "user_s": self.user_s,
            "system_s": self.system_s,
            "left": 0 if self.cut else left,
            "stuck": stuck,
        }

    def start(self) -> subprocess.Popen[bytes]:
        order = self.order
        keeper = os.getpid()

        def become() -> None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(127)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if order["cpus"]:
                os.sched_setaffinity(0, order["cpus"])

        command = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=order["environment"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if order["stderr"] else subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=become,  # noqa: PLW1509 - this process has one thread
        )
        assert command.stdout
        self.listen(command.stdout.fileno(), order["stdout"])
        if command.stderr:
            self.listen(command.stderr.fileno(), order["stderr"])
        return command

    def listen(self, pipe: int, file: str) -> None:
        os.set_blocking(pipe, False)
        self.streams[pipe] = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.selector.register(pipe, selectors.EVENT_READ)

    def ready(self, fd: int, wake: int) -> None:
        if fd == wake:
            os.read(wake, CHUNK)
        elif fd == 0:
            self.selector.unregister(0)  # nothing more is ever said: this is the end of the worker's interest
            self.end("stopped")
        elif fd in self.streams:
            self.copy(fd)

    def copy(self, pipe: int) -> bool:
        """Move what has been printed into its file, as far as the limit allows; False when there is no more."""
        try:
            chunk = os.read(pipe, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.selector.unregister(pipe)
            del self.streams[pipe]
            return False
        os.write(self.streams[pipe], chunk[: self.left_bytes])
        self.left_bytes -= len(chunk)
        if self.left_bytes < 0:
            self.left_bytes = 0
            self.end("output")
        return True

    def end(self, cut: str) -> None:
        """Kill everything, for the first reason that comes up."""
        if not self.cut:
            self.cut = cut
            kill(descendants())

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.command.pid:
                self.status = status
                self.user_s, self.system_s = usage.ru_utime, usage.ru_stime

    def drain(self) -> None:
        for pipe in list(self.streams):
            while pipe in self.streams and self.copy(pipe):
                pass


def descendants() -> list[int]:
    """Every living process below this one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_rest() -> tuple[int, bool]:
    """Kill until no child is left: how many there were, and whether one would not die."""
    first = descendants()
    kill(first)
    deadline = time.monotonic() + STUBBORN_S
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return len(first), False
        if pid == 0:
            kill(descendants())  # one may have forked before it died
            time.sleep(0.005)
    return len(first), True


if __name__ == "__main__":
    main()
