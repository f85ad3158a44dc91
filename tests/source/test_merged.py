from __future__ import annotations

import pytest

from bisectbot.errors import Untestable
from bisectbot.source.git import Git
from bisectbot.source.merged import is_ours, merged
from tests.source.fastimport import FastImport


def test_a_merge_contains_what_each_side_has(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n", "b": "0\n", "c": "0\n"})
    sides = [upstream.commit(name, [root], {name: "1\n"}) for name in "abc"]
    tip = upstream.commit("tip", [sides[0]], {"a": "2\n"})
    for name, number in zip("abct", [*sides, tip], strict=True):
        upstream.ref(f"refs/heads/{name}", number)
    upstream.write()
    git = Git(upstream.path)
    sha = merged(git, ["t", "b", "c", "a"])
    assert [git.run("cat-file", "blob", f"{sha}:{name}") for name in "abc"] == ["2", "1", "1"]
    assert merged(git, ["t", "b", "c"]) == sha
    assert merged(git, ["a", "t"]) == upstream.sha(tip)
    assert merged(git, ["t"]) == upstream.sha(tip)
    assert is_ours(git, sha)
    assert not is_ours(git, upstream.sha(tip))
    git.run("gc", "--prune=now", "--quiet")
    assert git.has(sha)


def test_a_conflict_is_untestable_unless_history_solved_it(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n"})
    left, right = (upstream.commit(name, [root], {"a": f"{name}\n"}) for name in ("left", "right"))
    more = upstream.commit("more", [left], {"b": "1\n"})
    solved = upstream.commit("solved", [left, right], {"a": "both\n"})
    upstream.write()
    git = Git(upstream.path)
    ends = [upstream.sha(more), upstream.sha(right)]
    with pytest.raises(Untestable, match="conflict in a"):
        merged(git, ends)
    sha = merged(git, ends, history=(upstream.sha(solved), upstream.sha(root)))
    assert git.run("cat-file", "blob", f"{sha}:a") == "both"


def test_projects_without_a_common_commit_are_merged(upstream: FastImport) -> None:
    one, other = upstream.commit("one", files={"a": "1\n"}), upstream.commit("other", files={"b": "1\n"})
    upstream.write()
    git = Git(upstream.path)
    sha = merged(git, [upstream.sha(one), upstream.sha(other)])
    assert git.run("ls-tree", "--name-only", sha).split() == ["a", "b"]
