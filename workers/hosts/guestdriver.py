"""A virtual machine as a driver of labgrid's: switching it on starts QEMU, its two serial ports are pipes to us.

Pipes, since a byte is a byte in them: a socket's buffer is full after some hundred bytes that were sent one by one, and
a guest that has to wait for it no longer takes the same time twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
from typing import Any

import attr
import pexpect
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.protocol import ConsoleProtocol, PowerProtocol

from workers.process import OWNER

PIPE = 2**20  # bytes


@target_factory.reg_driver
@attr.s(eq=False)
class GuestDriver(Driver, PowerProtocol, ConsoleProtocol):  # type: ignore[misc] # labgrid has no types
    """``argv`` is QEMU's command line without the serial ports; ``owner`` marks the process, which dies with the thread
    that switched it on. The first port is the console, the second the channel on which the guest hands back results.
    """

    argv: list[str] = attr.ib()
    owner: str = attr.ib(default="")
    cpus: list[int] = attr.ib(factory=list)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.process: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []

    def on(self) -> None:
        self.off()
        pipes = [os.pipe() for _ in ("console", "channel")]
        serial = []
        for number, (_, theirs) in enumerate(pipes):
            with contextlib.suppress(OSError):  # less will do
                fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, PIPE)
            serial += ["-chardev", f"file,id=s{number},path=/proc/self/fd/{theirs}", "-serial", f"chardev:s{number}"]
        pinned = ["taskset", "-c", ",".join(map(str, self.cpus))] if self.cpus else []
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *pinned, *self.argv, *serial],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", os.defpath), OWNER: self.owner},
            start_new_session=True,
            pass_fds=[theirs for _, theirs in pipes],
        )
        for ours, theirs in pipes:
            os.close(theirs)
            self._ports.append(ours)

    def off(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            if self.process.stderr:
                self.process.stderr.close()
            self.process = None
        while self._ports:
            os.close(self._ports.pop())

    def cycle(self) -> None:
        self.on()

    def on_deactivate(self) -> None:
        self.off()

    def read(self, size: int = 65536, timeout: float = 0.0) -> bytes:
        """The console's bytes. Raises pexpect.TIMEOUT when there are none."""
        return self._receive(0, size, timeout)

    def write(self, data: bytes) -> int:
        raise NotImplementedError("a guest hears nothing: what it is to do, it is given before it starts")

    def receive(self, timeout: float) -> bytes | None:
        """The channel's bytes, b"" if none came within ``timeout`` seconds, None when QEMU has closed it."""
        try:
            return self._receive(1, 2**20, timeout) or None
        except pexpect.TIMEOUT:
            return b""

    def complaint(self) -> str:
        """What a QEMU that has ended said last. Only after its end."""
        stream: Any = self.process.stderr if self.process else None
        text = stream.read().decode("utf-8", "replace") if stream else ""
        return " ".join(text.split())[-300:]

    def _receive(self, port: int, size: int, timeout: float) -> bytes:
        if not self._ports:
            raise pexpect.TIMEOUT("switched off")
        if not select.select([self._ports[port]], [], [], timeout)[0]:
            raise pexpect.TIMEOUT("nothing")
        return os.read(self._ports[port], size)
