"""The service as real processes: broker, web, scheduler and Celery workers, with simulated hosts and a fast clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bisectbot.clock import SCALE_VARIABLE
from bisectbot.config import load
from bisectbot.demo.run import Sink, free_port
from bisectbot.serve import Tree
from bisectbot.service.commands import submit_bisection
from bisectbot.service.context import Context, open_context
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from tests.support.lab import BRANCH, TREE, Upstream, write_config

SCALE = 20.0
"""Farm seconds per second."""


class Farm:
    """A service that runs in a folder. ``until`` waits; the processes can be killed, frozen and found by name."""

    def __init__(self, folder: Path, database_url: str, levels: list[float], sigma: float = 1.0) -> None:
        os.environ[SCALE_VARIABLE] = str(SCALE)
        self.upstream = Upstream(folder / "upstream.git")
        self.shas = self.upstream.line(list(levels))
        self.upstream.push(self.shas[-1])
        self.sink = Sink()
        self.sink.start()
        path = write_config(folder, self.upstream.path, database_url, _changes(self.sink.port))
        noise = {"sigma": sigma}
        model: dict[str, Any] = {"rules": [{"file": "level"}], "noise": noise, "boot": "2s", "run": "6s"}
        (folder / "model.yaml").write_text(yaml.safe_dump(model))
        self.context: Context = open_context(load(path))
        self.context.database.upgrade()
        self.tree = Tree(self.context.config, path)
        self.tree.start()

    def submit(self, good: int, bad: int) -> str:
        """Ask for a bisection between two commits of the line, once the tree has been fetched; its id."""
        self.until(lambda: any(tree.heads for tree in status.overview(self.context).trees), "the first head")
        asked = BisectArguments(TREE, BRANCH, self.shas[good], self.shas[bad])
        submit_bisection(self.context, "tester", asked)
        self.until(lambda: bool(status.overview(self.context).bisections), "the bisection")
        return status.overview(self.context).bisections[-1].id

    def until(self, condition: Callable[[], bool], what: str, limit: float = 150.0) -> None:
        """Wait, restarting what dies, as the real tree does."""
        deadline = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come within {limit} s; see {self.tree.logs}"
            self.tree.look()
            time.sleep(0.05)

    def rest(self, seconds: float) -> None:
        """Let farm seconds pass."""
        deadline = time.monotonic() + seconds / SCALE
        while time.monotonic() < deadline:
            self.tree.look()
            time.sleep(0.05)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        self.until(lambda: name in self.tree.pids(), f"{name}, restarted")
        os.kill(self.tree.pids()[name], number)

    def one_more_result(self) -> None:
        """Wait until a run has come back that had not before."""
        before = self.results()
        self.until(lambda: self.results() > before, "the next result")

    def results(self) -> int:
        return status.runs_done(self.context)

    def end(self) -> None:
        self.tree.end()
        self.sink.stop()
        self.context.database.dispose()
        self.context.hints.close()
        del os.environ[SCALE_VARIABLE]


def _changes(smtp_port: int) -> dict[str, Any]:
    port = free_port()
    return {
        "tick": "2s",
        "server": {"listen": f"127.0.0.1:{port}", "url": f"http://127.0.0.1:{port}"},
        "mail": {"smtp": {"host": "127.0.0.1", "port": smtp_port}},
        "trees": {TREE: {"interval": "20s"}},
        "jobs": {"bench": {"runs": 1, "timeout": "60s"}},
        "costs": {"build": "5s", "boot": "2s", "run": "6s", "boot_failure": "2s", "builders": 1},
    }


@contextmanager
def farm(folder: Path, database_url: str, levels: list[float]) -> Iterator[Farm]:
    """A farm that is stopped at the end, whatever happens."""
    running: Farm | None = None
    try:
        running = Farm(folder, database_url, levels)
        yield running
    finally:
        if running is not None:
            running.end()
