"""The demo's example history is what its description says, whatever the seed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisectbot.demo.history import EFFECT, make
from bisectbot.source.git import Git


def builds(git: Git, sha: str, folder: Path) -> bool:
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=git.run_bytes("archive", sha), check=True)
    return subprocess.run(["make", "-s", "bench"], cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("seed", range(5))
def test_some_forty_commits_with_everything_that_a_bisection_meets(tmp_path: Path, seed: int) -> None:
    made = make(tmp_path / "up.git", seed)
    git = Git(tmp_path / "up.git")
    assert 32 <= made.commits <= 48
    assert EFFECT[0] - 0.01 < made.effect < EFFECT[1] + 0.01
    log = git.run("log", "--format=%H %P", made.heads[-1]).splitlines()
    assert len(log) == made.commits
    assert sum(len(line.split()) > 2 for line in log) >= 2  # merges
    assert made.culprit not in made.heads[:8]
    touching = git.run("log", "--format=%s", "-L", "/^uint32_t store_get(const/,/^}/:store.c", "-s", made.heads[-1])
    assert len(touching.splitlines()) >= 4  # the culprit and at least three innocents change the same function
    assert not builds(git, made.unbuildable, tmp_path / "broken")
    assert builds(git, made.culprit, tmp_path / "slow") or made.unbuildable in git.run("rev-list", made.culprit)
    changed = git.run("diff-tree", "-r", "--name-only", "--no-commit-id", made.inert).split()
    assert not {"store.c", "bench.c", "store.h", "Makefile"} & set(changed)


def test_the_same_seed_makes_the_same_commits_and_another_one_others(tmp_path: Path) -> None:
    first, again, other = (make(tmp_path / name, seed) for name, seed in (("a", 7), ("b", 7), ("c", 8)))
    assert first == again
    assert first.culprit != other.culprit
