"""Results on disk: whole or not at all, and one bad entry never holds up the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.errors import InfraError
from bisectbot.results.delivery import BuildDelivery, Outcome, RunDelivery
from tests.workers.server import TOKEN, Server
from workers.client import Client, HeldError
from workers.spool import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def client(server: Server):
    made = Client(server.url, TOKEN)
    yield made
    made.close()


def result(run: int) -> RunDelivery:
    return RunDelivery(run, 1, Outcome.DONE, samples=(("ops", float(run)),))


def test_artifacts_travel_with_their_delivery(spool: Spool, client: Client, server: Server, tmp_path: Path):
    (tmp_path / "log").write_text("the log")
    (tmp_path / "tar").write_text("the archive")
    spool.put(result(1), {})
    spool.put(BuildDelivery(2, 1, Outcome.DONE), {"build.log": tmp_path / "log", "archive": tmp_path / "tar"})
    assert not (tmp_path / "log").exists()
    assert spool.deliver(client) == 0
    run, build = server.delivered
    assert (run, isinstance(build, BuildDelivery)) == (result(1), True)
    assert isinstance(build, BuildDelivery)
    assert server.artifacts[build.artifact] == b"the archive"
    assert server.text(build, "build.log") == "the log"
    assert list(spool.folder.glob("[!.]*")) == []


def test_what_cannot_be_delivered_waits(spool: Spool, client: Client, server: Server):
    server.sick = True
    spool.put(result(1), {})
    spool.put(result(2), {})
    assert spool.deliver(client) == 2
    server.sick = False
    assert Spool(spool.folder).deliver(client) == 0
    assert server.delivered == [result(1), result(2)]


def test_damaged_entries_are_set_aside(spool: Spool, client: Client, server: Server, tmp_path: Path):
    for run in range(5):
        (tmp_path / "stdout").write_text(f"out {run}")
        spool.put(result(run), {"stdout": tmp_path / "stdout"})
    (spool.folder / "run-0-1" / "delivery.json").write_bytes(b"\x00" * 40)
    (spool.folder / "run-1-1" / "delivery.json").unlink()
    next(file for file in (spool.folder / "run-2-1").iterdir() if len(file.name) == 64).write_text("bit rot")
    (spool.folder / "what-is-this").mkdir()
    (spool.folder / "run-3-1").rename(spool.folder / "mystery-3-1")
    assert spool.deliver(client) == 0
    assert [delivery.run for delivery in server.delivered if isinstance(delivery, RunDelivery)] == [4]
    aside = sorted(entry.name for entry in (spool.folder / "damaged").iterdir())
    assert aside == ["mystery-3-1", "run-0-1", "run-1-1", "run-2-1", "what-is-this"]


def test_a_refused_result_is_dropped(spool: Spool, client: Client, server: Server):
    server.refused.add(1)
    spool.put(result(1), {})
    assert spool.deliver(client) == 0
    assert server.delivered == []


def test_half_written_entries_are_swept_not_sent(spool: Spool, client: Client, server: Server):
    (spool.folder / ".new-abc").mkdir()
    (spool.folder / ".new-abc" / "delivery.json").write_text("{")
    assert spool.deliver(client) == 0
    spool.sweep()
    assert list(spool.folder.glob(".new-*")) == []


def test_a_full_disk_is_an_infra_error(spool: Spool, tmp_path: Path):
    with pytest.raises(InfraError, match="does not take a result"):
        spool.put(result(1), {"stdout": tmp_path / "missing"})
    assert spool.entries() == []


def test_the_client_s_errors_say_what_to_do(server: Server, client: Client, tmp_path: Path):
    stranger = Client(server.url, "wrong")
    with pytest.raises(InfraError, match=r"does not know our token; check server.token_file"):
        stranger.deliver(result(1))
    stranger.close()
    with pytest.raises(InfraError, match=r"status 404"):
        client.get_artifact("0" * 64, tmp_path / "x")
    server.down()
    with pytest.raises(InfraError, match=r"cannot be reached: Conn"):
        client.deliver(result(1))
    assert issubclass(HeldError, InfraError)
