"""A build worker, from a commit in a git repository to an archive on the server."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.jobs.assignment import BuildAssignment, BuildRecipe
from bisectbot.results.delivery import BuildDelivery, Outcome
from bisectbot.source.git import PUBLISHED
from tests.workers.conftest import Farm
from tests.workers.server import Server
from workers.archive import unpack

COMPILE = "cp source.c program && chmod +x program"  # as far as a builder can tell


class Repository:
    """A repository like the server's mirror, with each commit published for builders."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", str(path), at=path.parent)

    def git(self, *args: str, at: Path | None = None) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", *args]
        return subprocess.run(
            command, cwd=at or self.path, env=environment, check=True, capture_output=True
        ).stdout.decode()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.path / name.replace("_", ".")).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        sha = self.git("rev-parse", "HEAD").strip()
        self.git("update-ref", PUBLISHED + sha, sha)
        return sha


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


class Builds:
    """Sends builds to a build worker and tells what came of them."""

    def __init__(self, farm: Farm, server: Server, url: str) -> None:
        self.farm, self.server, self.url = farm, server, url
        self.count = 0
        farm.start("build")

    def do(self, commit: str, command: str = COMPILE, **more: object) -> BuildDelivery:
        self.count += 1
        recipe = replace(BuildRecipe("b", "command", command, ("program",)), **more)  # type: ignore[arg-type]
        ref = PUBLISHED + commit
        self.server.builds.append(BuildAssignment(self.count, 1, 6.0, commit, self.url, ref, recipe))
        self.farm.look_build(self.count)
        self.farm.until(lambda: len(self.server.delivered) == self.count, "the build is delivered")
        delivery = self.server.delivered[-1]
        assert isinstance(delivery, BuildDelivery)
        return delivery

    def files(self, delivery: BuildDelivery, folder: Path) -> dict[str, str]:
        (folder / "archive").write_bytes(self.server.artifacts[delivery.artifact])
        unpack(folder / "archive", folder / delivery.artifact)
        inside = folder / delivery.artifact
        return {str(f.relative_to(inside)): f.read_text() for f in inside.rglob("*") if f.is_file()}


@pytest.fixture
def builds(farm: Farm, server: Server, repository: Repository) -> Builds:
    return Builds(farm, server, str(repository.path))


def test_a_build_is_packed_and_equal_code_has_an_equal_signature(
    builds: Builds, repository: Repository, tmp_path: Path
):
    one = builds.do(repository.commit(source_c="one"), f"echo compiling; {COMPILE}")
    assert (one.outcome, one.message) == (Outcome.DONE, "")
    assert builds.files(one, tmp_path) == {"program": "one"}
    assert os.access(tmp_path / one.artifact / "program", os.X_OK)
    assert builds.server.text(one, "build.log") == "compiling\n"
    same = builds.do(repository.commit(readme="only words"))
    other = builds.do(repository.commit(source_c="two"))
    assert (same.artifact, same.signature) == (one.artifact, one.signature)
    assert other.signature != one.signature
    assert builds.server.puts == 2 + 2  # archives and logs, each once


def test_without_outputs_all_that_is_new_is_kept(builds: Builds, repository: Repository, tmp_path: Path):
    commit = repository.commit(source_c="one", gitignore="program\n")
    command = f"{COMPILE}; mkdir -p out; echo x > out/log; echo changed > source.c; test ! -e leftover; touch leftover"
    for _ in range(2):  # the second finds nothing of the first
        built = builds.do(commit, command, outputs=())
        assert built.outcome is Outcome.DONE
    assert builds.files(built, tmp_path) == {
        "program": "one",
        "out/log": "x\n",
        "source.c": "changed\n",
        "leftover": "",
    }


def test_what_does_not_build_is_untestable_and_the_machine_s_faults_are_not(builds: Builds, repository: Repository):
    commit = repository.commit(source_c="one")
    rows = {
        "echo noise; echo 'source.c:3: error: what?'; echo more; exit 2": (
            Outcome.UNTESTABLE,
            "does not build (exit status 2): source.c:3: error: what?",
        ),
        "exit 1": (Outcome.UNTESTABLE, "does not build (exit status 1): it printed nothing"),
        "true": (Outcome.UNTESTABLE, "the build left none of its outputs: program"),
        "sleep 1000": (Outcome.UNTESTABLE, "does not build: no end after 0.3 s"),
        "echo 'ld: No space left on device'; exit 1": (
            Outcome.INFRA,
            "the build failed on this machine: No space left on device",
        ),
        "kill -KILL $$": (Outcome.INFRA, "the build was killed, probably for want of memory"),
    }
    for command, (outcome, message) in rows.items():
        delivery = builds.do(commit, command, timeout_s=3.0)
        assert (delivery.outcome, delivery.message, delivery.artifact) == (outcome, message, "")


def test_a_commit_that_cannot_be_fetched_says_nothing_about_it(builds: Builds, repository: Repository):
    repository.commit(source_c="one")
    missing = builds.do("f" * 40)
    assert missing.outcome is Outcome.INFRA
    builds.url = "ext::sh -c true"
    assert builds.do("e" * 40).outcome is Outcome.INFRA
    builds.url = str(repository.path)
    assert builds.do(repository.commit(source_c="two")).outcome is Outcome.DONE


def test_builds_wait_for_runs_and_runs_for_builds(builds: Builds, repository: Repository, farm: Farm, server: Server):
    span = f"{sys.executable} -c 'import time; a = time.monotonic(); time.sleep(0.4); print(a, time.monotonic())'"
    commit = repository.commit(source_c="one")
    farm.start()
    recipe = BuildRecipe("b", "command", f"{span}; {COMPILE}", ("program",))
    for number in (1, 2):
        server.builds.append(BuildAssignment(number, 1, 60.0, commit, str(repository.path), PUBLISHED + commit, recipe))
        farm.look_build(number)
        farm.send(farm.assignment(f"{span}; echo ops: 1", run=number))
    farm.until(lambda: len(server.delivered) == 4, "all is delivered")
    spans = []
    for delivery in server.delivered:
        name = "build.log" if isinstance(delivery, BuildDelivery) else "stdout"
        began, ended = server.text(delivery, name).split("\n", 1)[0].split()
        spans.append((float(began), float(ended)))
    spans.sort()
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
