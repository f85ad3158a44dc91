"""A worker and the real server over HTTP: runs that outlast their lease, a server whose disk is full."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests
from sqlalchemy import select

from bisectbot.clock import SCALE_VARIABLE
from bisectbot.demo.run import free_port
from bisectbot.jobs.assignment import BuildAssignment, RunClaim
from bisectbot.results.delivery import BuildDelivery, Outcome
from bisectbot.service.claims import HostHeldError, claim_run
from bisectbot.service.reap import reap
from bisectbot.store.tables import Artifact, Run, RunState, Sample
from tests.service.conftest import MakeLab
from tests.support.lab import GROUP, HOST, Lab
from workers import hosts
from workers.archive import pack
from workers.running import take_run
from workers.station import Station

SECRET = "the-workers-own-secret"
SERVER = """
import resource, sys
from pathlib import Path
import uvicorn
from bisectbot.config import load
from bisectbot.service.context import open_context
from bisectbot.web.app import create_app
path, port, largest = sys.argv[1:]
if int(largest):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
uvicorn.run(create_app(open_context(load(Path(path)))), host="127.0.0.1", port=int(port), log_level="info")
"""


class Pair:
    """A server process and, in this process, a worker for a host of this machine with one run to do."""

    def __init__(self, lab: Lab, command_line: str) -> None:
        self.lab, self.line = lab, command_line
        self.log = lab.folder / "server.log"
        lab.upstream.push(lab.upstream.line([42.0])[0])
        lab.tick()
        lab.config.token_path.write_text(SECRET)
        lab.built = self._built  # type: ignore[method-assign]
        assert lab.build()
        lab.tick()
        self.station = Station.of(lab.config, HOST, lab.context.clock)
        place = hosts.Place(HOST, self.station.folder, self.station.clock)
        self.host = hosts.attach(place, lab.config.hosts[HOST])

    def _built(self, given: BuildAssignment) -> BuildDelivery:
        tree = self.lab.folder / "tree"
        tree.mkdir()
        (tree / "level").write_text("42\n")
        signature = pack(tree, ["level"], self.lab.folder / "archive")
        artifact = self.lab.context.artifacts.put([(self.lab.folder / "archive").read_bytes()])
        return BuildDelivery(given.build, given.token, Outcome.DONE, artifact=artifact, signature=signature)

    @contextmanager
    def server(self, largest_file: int = 0) -> Iterator[list[str]]:
        """Its command line, for as long as it answers; no file that it writes may be larger, if not 0."""
        url = self.lab.config.server.url
        config = self.lab.folder / "bisectbot.yaml"
        argv = [sys.executable, "-c", SERVER, str(config), url.rpartition(":")[2], str(largest_file)]
        environment = {SCALE_VARIABLE: str(self.lab.context.clock.scale), "PYTHONPATH": ":".join(sys.path)}
        with self.log.open("ab") as log:
            process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 120
            while not self._answers(url):
                assert process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.1)
            yield argv
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def _answers(self, url: str) -> bool:
        try:
            return requests.get(f"{url}/health", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def runs(self) -> list[Run]:
        with self.lab.context.database.read() as session:
            return list(session.execute(select(Run).order_by(Run.id)).scalars())


@pytest.fixture
def pair(make: MakeLab, request: pytest.FixtureRequest) -> Pair:
    """``request.param``: the job's command."""
    port = free_port()
    changes = {
        "server": {"listen": f"127.0.0.1:{port}", "url": f"http://127.0.0.1:{port}"},
        "jobs": {"bench": {"command": request.param, "runs": 1}},
        "hosts": {HOST: {"group": GROUP, "driver": "local"}},
    }
    return Pair(make(changes, scale=30.0), request.param)


@pytest.mark.parametrize("pair", ["sleep 8; cat level"], indirect=True)
def test_a_job_longer_than_its_lease_stays_its_worker_s(pair: Pair):
    """A lease is 3 s here; meanwhile the reaper works, and another worker asks for the same host."""
    context, refused = pair.lab.context, 0
    with pair.server():
        worker = threading.Thread(target=take_run, args=(pair.station, pair.host))
        worker.start()
        while worker.is_alive():
            if pair.runs()[0].state is RunState.RUNNING:
                reap(context)
                with suppress(HostHeldError):
                    assert claim_run(context, RunClaim(HOST, "another worker")) is None
                refused += 1
            worker.join(0.5)
    (run,) = pair.runs()
    assert refused >= 2
    assert (run.state, run.token, run.attempts) == (RunState.DONE, 1, 1)
    assert run.seconds > 2 * 90.0


@pytest.mark.parametrize("pair", ["yes | head -c 12000000 >&2; cat level"], indirect=True)
def test_a_server_with_a_full_disk_gets_the_result_when_there_is_room(pair: Pair):
    spool, client = pair.station.spool, pair.station.client()
    with pair.server(largest_file=8_000_000) as argv:
        assert take_run(pair.station, pair.host).endswith("done")
        assert len(spool.entries()) == 1
        assert spool.deliver(client) == 1
        assert pair.runs()[0].state.open
    said = pair.log.read_text()
    assert re.search(r"request failed.*does not fit into .*File too large", said)
    assert "Traceback" not in said
    with pair.server():
        assert spool.deliver(client) == 0
    (run,) = pair.runs()
    assert run.state is RunState.DONE
    with pair.lab.context.database.read() as session:
        assert session.execute(select(Sample.value)).scalars().all() == [42.0]
        kept = {row.name: row.size for row in session.execute(select(Artifact)).scalars()}
    assert kept["stderr"] == 12_000_000
    assert SECRET not in pair.log.read_text() + " ".join(argv)
    assert not [file for file in _files(pair.lab.folder) if SECRET.encode() in file.read_bytes()]


def _files(folder: Path) -> list[Path]:
    """Everything that server and worker have written but the secret itself."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name != "worker.token"]
