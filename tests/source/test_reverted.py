"""A commit taken back on top of a later one, and put there again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.errors import Untestable
from bisectbot.source.git import Git
from bisectbot.source.merged import is_ours
from bisectbot.source.reverted import reapplied, reverted
from tests.source.fastimport import FastImport


@pytest.fixture
def repo(tmp_path: Path) -> FastImport:
    """Commit 2 changes a, 3 changes b, 4 changes b again, 5 and 6 are merged by 7."""
    repo = FastImport(tmp_path / "r.git")
    root = repo.commit("root", [], {"a": "1\n", "b": "1\n"})
    two = repo.commit("a", [root], {"a": "2\n"})
    three = repo.commit("b", [two], {"b": "2\n"})
    four = repo.commit("b again", [three], {"b": "3\n"})
    five = repo.commit("side", [four], {"c": "1\n"})
    six = repo.commit("main", [four], {"d": "1\n"})
    repo.commit("Merge", [six, five], {"c": "1\n"})
    repo.ref("refs/heads/master", 7)
    repo.write()
    return repo


def test_what_is_taken_back_is_gone_and_comes_again(repo: FastImport) -> None:
    git, bad = Git(repo.path), repo.sha(7)
    without = reverted(git, repo.sha(2), bad)
    assert git.run("show", f"{without}:a") == "1"
    assert git.run("show", f"{without}:d") == "1"
    again = reapplied(git, repo.sha(2), without)
    assert git.run("rev-parse", f"{again}^{{tree}}") == git.run("rev-parse", f"{bad}^{{tree}}")
    assert reverted(git, repo.sha(2), bad) == without  # reproducible
    assert is_ours(git, without)
    assert is_ours(git, again)


@pytest.mark.parametrize(("culprit", "word"), [(3, "came later, in b"), (7, "a merge cannot"), (1, "a root cannot")])
def test_what_cannot_be_taken_back_is_said(repo: FastImport, culprit: int, word: str) -> None:
    with pytest.raises(Untestable, match=word):
        reverted(Git(repo.path), repo.sha(culprit), repo.sha(7))


def test_what_is_not_there_cannot_be_taken_back(repo: FastImport) -> None:
    with pytest.raises(Untestable, match="is left there"):
        reverted(Git(repo.path), repo.sha(2), repo.sha(1))
