"""``bisectbot bisect`` on real repositories, with commands that are exact, noisy, flaky, broken, or interrupted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisectbot.cli import main

COMMITS, CULPRIT = 16, 9
NOISE = """
import random, sys
with open(sys.argv[1], "a+") as count:  # one letter a run: the next run's seed
    count.write("x")
    count.seek(0)
    seed = len(count.read())
print(float(open(sys.argv[2]).read()) + random.Random(seed).gauss(0, 1))
"""


class Repository:
    """Commits that each hold a file ``level`` (100, from the culprit on 95) and their number in ``n``."""

    def __init__(self, path: Path, shas: list[str]) -> None:
        self.path = path
        self.shas = shas

    @classmethod
    def new(cls, path: Path) -> Repository:
        path.mkdir()
        made = cls(path, [])
        made.git("init", "-q")
        made.shas = [made.commit(number) for number in range(COMMITS)]
        return made

    def git(self, *args: str) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, number: int) -> str:
        (self.path / "level").write_text("100\n" if number < CULPRIT else "95\n")
        (self.path / "n").write_text(f"{number}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"commit {number}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.new(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def repository(template: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    shutil.copytree(template.path, tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    return Repository(tmp_path / "repository", list(template.shas))


class Said:
    """One call of the command: its exit status and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["bisect", *arguments])
        self.status = ended.value.code
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> dict[str, Any]:
        assert self.out, self.err
        value: dict[str, Any] = json.loads(self.out)
        return value


Bisect = Callable[..., Said]


@pytest.fixture
def noisy(tmp_path: Path) -> str:
    """A command that prints the number in the file ``level`` with noise of 1."""
    (tmp_path / "noise.py").write_text(NOISE)
    return f"python3 {tmp_path}/noise.py {tmp_path}/count level"


@pytest.fixture
def bisect(repository: Repository, capsys: pytest.CaptureFixture[str]):
    def call(*arguments: str, bad: str | None = None) -> Said:
        return Said(capsys, repository.shas[0], bad or repository.shas[-1], *arguments)

    return call


def test_a_noisy_number(bisect: Bisect, noisy: str, repository: Repository):
    said = bisect("--build", "cp level built", "--run", noisy.replace("level", "built"), "--json")
    assert (said.status, said.json["state"], said.json["culprit"]) == (0, "culprit", repository.shas[CULPRIT])
    assert said.json["probability"] >= 0.99
    assert said.json["improvement"] is False
    assert -9 < said.json["effect"] < 0
    assert said.json["runs"] >= said.json["builds"] > 3
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("for-each-ref", "--format=%(refname)") == "refs/heads/master"
    assert repository.git("worktree", "list").count("\n") == 0


def test_for_people(bisect: Bisect, repository: Repository):
    said = bisect("--run", "cat level", "--lower-is-better")
    assert said.out.startswith(f'{repository.shas[CULPRIT][:12]} ("commit {CULPRIT}") made the change (')
    assert re.search(r"the number changes by -(4\.9|5)", said.out)
    assert "improvement" in said.out
    assert f"{COMMITS - 1} commits between good and bad" in said.err


def test_a_deterministic_command_is_run_once_a_commit(bisect: Bisect, repository: Repository):
    said = bisect("--run", "cat level", "--json")
    assert (said.json["culprit"], said.json["deterministic"]) == (repository.shas[CULPRIT], True)
    assert said.json["runs"] <= 12


def test_the_first_run_in_a_fresh_tree_does_not_count(bisect: Bisect, repository: Repository):
    run = "if test -e warm; then cat level; else touch warm; echo 200; fi"
    said = bisect("--run", run, "--json")
    assert (said.json["culprit"], said.json["deterministic"]) == (repository.shas[CULPRIT], True)
    assert "warm-up" in said.err
    assert -6 < said.json["effect"] < -4


def test_a_script_for_git_bisect_run(bisect: Bisect, repository: Repository):
    (repository.path / "test.sh").write_text("#!/bin/sh\nmake -s || exit 125\ntest $(cat level) = 100\n")
    (repository.path / "test.sh").chmod(0o755)
    (repository.path / ".git" / "info" / "exclude").write_text("test.sh\n")
    (repository.path / "Makefile").write_text("all:\n\ttest $$(cat n) != 4\n")
    repository.git("add", "Makefile")
    for number in range(COMMITS):
        repository.shas[number] = repository.commit(number)
    said = bisect("--run", "./test.sh", "--json")
    assert (said.status, said.json["culprit"]) == (0, repository.shas[CULPRIT])
    assert said.json["effect"] > 0.5


@pytest.mark.parametrize("number", [CULPRIT - 1, CULPRIT])
def test_what_does_not_build_is_named_with_its_neighbour(bisect: Bisect, repository: Repository, number: int):
    said = bisect("--build", f"test $(cat n) != {number} || (echo 'x.c:1: error: no' && exit 1)", "--run", "cat level")
    assert f"skipped {repository.shas[number][:10]}  does not build (exit status 1): x.c:1: error: no" in said.err
    assert said.status == 0
    other = CULPRIT if number == CULPRIT - 1 else CULPRIT + 1
    assert said.out.startswith("one of 2 commits made the change")
    assert {number, other} == {n for n in range(COMMITS) if repository.shas[n][:12] in said.out.split("tested")[0]}


def test_equal_ends_name_nobody(bisect: Bisect, noisy: str, repository: Repository):
    said = bisect("--run", "echo 7", "--json")
    assert (said.status, said.json["state"], said.json["culprit"]) == (1, "not_reproduced", None)
    unsure = bisect("--run", noisy.replace(" level", f" {repository.path}/level"), "--runs-max", "25", "--json")
    assert (unsure.status, unsure.json["culprit"]) == (1, None)
    assert unsure.json["state"] in {"not_reproduced", "gave_up"}


def test_runs_max(bisect: Bisect, noisy: str):
    said = bisect("--run", noisy, "--runs-max", "3", "--json")
    assert (said.status, said.json["state"]) == (1, "gave_up")
    assert said.json["runs"] <= 3


def test_a_kpi_by_pattern_and_several_numbers_a_run(bisect: Bisect, repository: Repository):
    run = "echo header; sed 's/.*/took & ms/' level level"
    said = bisect("--run", run, "--kpi", r"/took (\S+) ms/", "--json")
    assert said.json["culprit"] == repository.shas[CULPRIT]


def test_a_branch_that_was_merged(bisect: Bisect, repository: Repository):
    repository.git("checkout", "-q", "-b", "side", repository.shas[3])
    (repository.path / "other").write_text("slow\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "on the side")
    side = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-q", "master")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    run = "if test -e other; then echo 50; else echo 100; fi"
    assert bisect("--run", run, "--json", bad="master").json["culprit"] == side


def test_interrupted_it_goes_on_where_it_was(bisect: Bisect, noisy: str, repository: Repository, tmp_path: Path):
    count = tmp_path / "count"
    run = f"sleep 0.3; {noisy}"
    ends = [repository.shas[0], repository.shas[-1]]
    process = subprocess.Popen(
        [sys.executable, "-m", "bisectbot", "bisect", *ends, "--run", run],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has SIGINT ignored, and so would we.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    while not count.exists() or count.read_text().count("x") < 3:
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted after" in err
    known = err.count("  run ") + err.count("  warm-up ")
    log = repository.path / ".git" / "bisectbot" / "log.jsonl"
    log.write_bytes(log.read_bytes() + b'{"kind": "ra')  # as a killed writer leaves it
    said = bisect("--run", run, "--json")
    assert said.json["culprit"] == repository.shas[CULPRIT]
    assert f"going on: {known} run" in said.err
    assert said.err.count("  run ") + said.err.count("  warm-up ") == said.json["runs"] - known
    again = bisect("--run", run, "--json")
    assert (again.json, "decided already" in again.err) == (said.json, True)


def test_a_log_of_another_search_is_not_touched(bisect: Bisect, tmp_path: Path):
    log = tmp_path / "log"
    bisect("--run", "cat level", "--log", str(log))
    before = log.read_bytes()
    said = bisect("--run", "cat n", "--log", str(log))
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"bisectbot: {log} is the log of another search; give another --log")
    assert log.read_bytes() == before
    log.write_text("something else\n")
    assert "is no log of a search" in bisect("--run", "cat n", "--log", str(log)).err


def test_through_a_runner(bisect: Bisect, repository: Repository, tmp_path: Path):
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\ntest "$1" = box || exit 255\ncd / && exec sh -c "$2" 2>>{tmp_path}/remote\n')
    ssh.chmod(0o755)
    said = bisect("--build", "cp level built", "--run", "cat built", "--runner", f"{ssh} box", "--json")
    assert said.json["culprit"] == repository.shas[CULPRIT]
    for folder in Path("/tmp").glob(f"bisectbot-{os.getuid()}-*"):
        if (folder / "built").is_file() and (folder / "n").is_file():
            shutil.rmtree(folder)


def test_user_time_of_a_command_that_prints_nothing(bisect: Bisect, repository: Repository):
    run = 'python3 -c \'n = 3 if open("level").read() == "95\\n" else 1\nfor i in range(1500000 * n): pass\''
    said = bisect("--run", run, "--measure", "user", "--json")
    assert (said.json["culprit"], said.json["improvement"]) == (repository.shas[CULPRIT], False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["HEAD", "HEAD", "--run", "true"], "good and bad are the same commit"),
        (["HEAD", "HEAD~3", "--run", "true"], "give the older commit first"),
        (["--", "-x", "HEAD"], "Missing option '--run'"),
        (["HEAD~3", "nothing", "--run", "true"], "'nothing' names no commit"),
        (["HEAD~3", "HEAD", "--run", "true", "--kpi", "/x"], "/x: write /REGEX/"),
        (["HEAD~3", "HEAD", "--run", "true", "--kpi", "x", "--measure", "wall"], "--measure goes with neither"),
        (["HEAD~3", "--run", "true"], "bisect needs GOOD and BAD"),
        (["HEAD~3", "HEAD", "--run", "true", "--kpi", "ops"], "cannot be tested: no number for ops in the output"),
        (["HEAD~3", "HEAD", "--run", "true", "--build", "exit 3"], "cannot be tested: does not build (exit status 3)"),
    ],
)
def test_bad_input_is_one_line(
    repository: Repository, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    said = Said(capsys, *arguments)
    assert (said.status, said.out) == (2, "")
    assert message in said.err.splitlines()[-1]


def test_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    said = Said(capsys, "a", "b", "--run", "true")
    assert (said.status, said.err) == (2, f"bisectbot: {tmp_path} is in no git repository; go to one\n")


def test_a_command_that_aborts_can_be_gone_on_from(bisect: Bisect, repository: Repository):
    said = bisect("--run", "test $(cat n) != 15 || exit 130")
    assert said.status == 3
    assert "the command gave up on" in said.err


def test_the_commits_of_a_report(repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    mail = tmp_path / "mail"
    sha = repository.shas[CULPRIT]
    mail.write_text(
        "From: robot <robot@example.com>\nSubject: [x:master] [commit] " + sha[:10] + ": j.ops -5.0% regression\n\n"
        f'Hello,\n\nwe noticed a -5.0% regression of j.ops on:\n\n\ncommit: {sha} ("commit {CULPRIT}")\n'
    )
    said = Said(capsys, "--from-report", str(mail), "--run", "cat level", "--json")
    assert (said.json["culprit"], said.json["improvement"]) == (sha, False)
    assert "1 commit between good and bad" in said.err
