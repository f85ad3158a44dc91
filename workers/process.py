"""Running one command so that it ends: limits on time and output, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bisectbot.errors import InfraError, UserError

OWNER = "BISECTBOT_OWNER"
"""Environment variable that every process of ours carries, so that a later worker finds what an earlier one left."""

_KEEPER = Path(__file__).with_name("keeper.py")


class Cut(enum.StrEnum):
    """Why a command was ended before it ended itself."""

    NONE = ""
    TIMEOUT = "timeout"
    OUTPUT = "output"
    STOPPED = "stopped"
    CRASHED = "crashed"
    """The kernel that it ran on died."""


@dataclass(frozen=True)
class Command:
    """A program and its surroundings. ``timeout_s`` is in real seconds, ``output_limit`` in bytes for both streams
    together; ``cpus`` are the ones it may use, all if empty."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0
    output_limit: int = 16 * 2**20
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended. ``status`` is as a shell says it (128 + signal), times are real seconds, CPU times those of
    the command and all children that it waited for; ``left`` counts processes that it left behind (they were killed).
    ``why`` says more about ``cut``.
    """

    status: int
    seconds: float
    user_s: float = 0.0
    system_s: float = 0.0
    cut: Cut = Cut.NONE
    left: int = 0
    why: str = ""


class Stop:
    """A wish to stop that can be waited for together with other things: readable once it is set."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.reason = ""

    def set(self, reason: str) -> None:
        """From any thread; the first reason stays."""
        if not self.reason:
            self.reason = reason
            os.write(self._write, b"x")

    def __bool__(self) -> bool:
        return bool(self.reason)

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, but no longer than ``seconds`` real ones; whether it is."""
        return bool(select.select([self._read], [], [], max(0.0, seconds))[0])

    def fileno(self) -> int:
        return self._read

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


def clean_environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """What a measured or built program sees: the same on every machine, whoever started the worker."""
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    fixed = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "SHELL": "/bin/sh"}
    return {"PATH": path, "HOME": str(home), "TMPDIR": str(home), **fixed, **extra}


def run(
    command: Command,
    stdout: Path,
    stderr: Path | None = None,
    *,
    owner: str = "",
    stop: Stop | None = None,
    hold: Sequence[int] = (),
) -> Ended:
    """Run ``command`` to its end; its output goes to ``stdout`` and ``stderr`` (both to ``stdout`` if there is none).

    It runs in a session of its own and dies with this process. ``stop`` ends it early, ``hold`` are file descriptors
    of locks that stay open until its last process is gone, ``owner`` is what `kill_owned` finds it by.
    Raises InfraError when it cannot be started or its processes cannot be killed.
    """
    order = {
        "argv": command.argv,
        "cwd": str(command.cwd),
        "environment": {**command.environment, **({OWNER: owner} if owner else {})},
        "timeout_s": command.timeout_s,
        "output_limit": command.output_limit,
        "cpus": command.cpus,
        "stdout": str(stdout),
        "stderr": str(stderr) if stderr else "",
    }
    ours, theirs = socket.socketpair()
    with ours, theirs:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER)],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            cwd="/",
            env={OWNER: owner, "PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
            pass_fds=tuple(hold),
        )
        theirs.close()
        try:
            ours.sendall(json.dumps(order).encode() + b"\n")
            answer = _answer(ours, stop)
        except BrokenPipeError:
            answer = b""
        finally:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # ends what still runs, if we leave early (Ctrl-C)
            keeper.wait()
    if not answer:
        raise InfraError(f"{command.argv[-1]!r:.80}: its keeper was killed")
    said = json.loads(answer)
    if "error" in said:
        raise InfraError(f"{command.argv[-1]!r:.80}: {said['error']}")
    if said["stuck"]:
        raise InfraError(f"{command.argv[-1]!r:.80}: a process of it cannot be killed")
    code = os.waitstatus_to_exitcode(said["status"])
    status = code if code >= 0 else 128 - code
    return Ended(status, said["seconds"], said["user_s"], said["system_s"], Cut(said["cut"]), said["left"])


def _answer(ours: socket.socket, stop: Stop | None) -> bytes:
    waiting: list[socket.socket | Stop] = [ours] if stop is None else [ours, stop]
    answer = b""
    while not answer.endswith(b"\n"):
        for ready in select.select(waiting, [], [])[0]:
            if ready is ours:
                chunk = ours.recv(65536)
                if not chunk:
                    return b""
                answer += chunk
            else:
                waiting.remove(ready)
                ours.shutdown(socket.SHUT_WR)
    return answer


def check_cpus(cpus: Sequence[int], where: str) -> None:
    """Raises UserError when this process may not use one of ``cpus``; ``where`` is the setting that names them."""
    before = os.sched_getaffinity(0)
    usable = set()
    for cpu in sorted(set(cpus)):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cpu})  # the only real test: this process may be kept off a CPU that a run may use
            usable.add(cpu)
    os.sched_setaffinity(0, before)
    wrong = sorted(set(cpus) - usable)
    if wrong:
        raise UserError(f"{where}: CPU {wrong[0]} cannot be used on this machine, which has {os.cpu_count()}")


def kill_owned(owner: str) -> int:
    """Kill every process of this machine that carries ``owner`` in its environment; how many there were."""
    killed: set[int] = set()
    while found := set(_owned(owner)) - killed:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
    return len(killed)


def _owned(owner: str) -> Iterator[int]:
    mark = f"{OWNER}={owner}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone, or another user's
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
