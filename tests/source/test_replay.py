from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bisectbot.source.git import Git
from bisectbot.source.history import commits, facts
from bisectbot.source.replay import Kind, Replay, replay
from bisectbot.source.rerere import Rerere
from tests.source.fastimport import FastImport
from tests.source.linux_next import Day, LinuxNext


def _check_line(git: Git, line: Replay) -> None:
    """The line is one, from good to bad's own tree, and tells every change once."""
    history = commits(git, line.good, line.shas[-1])
    assert history.shas == line.shas
    assert git.run("rev-parse", f"{line.shas[-1]}^{{tree}}") == git.run("rev-parse", f"{line.bad}^{{tree}}")
    told = Counter(change.key for step in line.steps for change in step.changes)
    told.update(change.key for change in line.idle)
    assert told == Counter(change.key for change in line.news.come + line.news.gone)
    assert git.resolve(line.ref) == line.shas[-1]


def _touched(git: Git, sha: str) -> set[str]:
    return set(git.run("diff-tree", "-r", "--name-only", f"{sha}^", sha).split())


def _week(path: Path) -> list[Day]:
    tree = LinuxNext(path, trees=("net", "drm", "fs"), quilts=("mm", "misc"), files=20, seed=11)
    days = [tree.day(new=4), tree.day(new=2), tree.day(new=1, amended=2, dropped=1)]
    return [*days, tree.day(new=1, pulled=["net", "mm"])]


def test_every_pair_of_days_has_a_line_of_single_changes(tmp_path: Path) -> None:
    days = _week(tmp_path / "next.git")
    git = Git(tmp_path / "next.git")
    for old, new in [(1, 2), (0, 3), (3, 1)]:
        line = replay(git, days[old].head, days[new].head)
        _check_line(git, line)
        *single, last = line.steps
        assert (last.kind, last.tree) == (Kind.REST, "")
        if new > old:  # backwards, lines of the shared list go that stand beside others
            assert last.changes == ()
        assert not [step for step in single if step.kind is Kind.REST]
        for step in single:
            assert len(step.changes) == (2 if step.kind is Kind.AMEND else 1)
            assert len(_touched(git, step.sha) - {"include/list.h"}) == 1
        assert len(line.steps) < line.news.commits + len(line.news.gone)


def test_a_conflict_that_the_merges_of_the_day_solved_is_solved_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = LinuxNext(tmp_path / "next.git", trees=("net", "drm", "fs"), quilts=(), files=20, seed=2)
    git = Git(tmp_path / "next.git")
    old = tree.day(new=1)
    new = tree.day(new=5)
    listed = {f"pick {patch.subject}" for patch in new.patches - old.patches if patch.lists}
    assert len(listed) == 3

    def alone(line: Replay) -> set[str]:
        _check_line(git, line)
        subjects = {info.subject for info in facts(git, [step.sha for step in line.steps])}
        return listed & subjects

    assert alone(replay(git, old.head, new.head)) == listed
    monkeypatch.setattr(Rerere, "solve", lambda *_: None)
    untrained = replay(git, old.head, new.head)
    assert len(alone(untrained)) < len(listed)
    assert [step.kind for step in untrained.steps].count(Kind.REST) >= 1


def test_added_lines_are_united_only_where_bad_holds_them_all(upstream: FastImport) -> None:
    """Old and new head add different lines at one place; the changed line that both have is no such case."""
    root = upstream.commit("root", files={"list": "a\n", "word": "0\n"})
    keep = upstream.commit("keep", [root], {"list": "a\nkept\n"}, date=5)
    tip = root
    for number, subject in enumerate(("one", "two")):
        tip = upstream.commit(subject, [tip], {"list": "a\n" + "".join(f"{n}\n" for n in range(number + 1))})
    tip = upstream.commit("three", [tip], {"word": "3\n"})
    tip = upstream.commit("word", [tip], {"word": "both\n"}, date=6)
    tip = upstream.commit("keep", [tip], {"list": "a\n0\n1\nkept\n"}, date=5)
    upstream.ref("refs/heads/new", tip)
    upstream.ref("refs/heads/old", upstream.commit("word", [keep], {"word": "both\n"}, date=6))
    upstream.write()
    git = Git(upstream.path)
    line = replay(git, "old", "new")
    _check_line(git, line)
    subjects = [info.subject for info in facts(git, [step.sha for step in line.steps])]
    assert {"pick one", "pick two"} <= set(subjects)
    assert "pick three" not in subjects


def test_the_same_two_heads_give_the_same_ids_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = _week(tmp_path / "next.git")
    Git(tmp_path).run("clone", "--quiet", "--mirror", str(tmp_path / "next.git"), "copy.git")
    first = replay(Git(tmp_path / "next.git"), days[0].head, days[2].head)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert replay(Git(tmp_path / "copy.git"), days[0].head, days[2].head) == first
    assert replay(Git(tmp_path / "next.git"), days[0].head, days[2].head) == first


def test_what_will_not_apply_alone_joins_its_neighbour(upstream: FastImport) -> None:
    """The first of two patches does not fit to what the older head has made of its line; the second takes it back."""
    root = upstream.commit("root", files={"a": "0\n", "b": "0\n"})
    first = upstream.commit("first", [root], {"a": "half\n"})
    second = upstream.commit("second", [first], {"a": "0\n", "b": "1\n"})
    for name, parent in (("old", root), ("new", second)):
        upstream.ref(f"refs/heads/{name}", upstream.commit("on both sides", [parent], {"a": "1\n"}, date=7))
    upstream.write()
    git = Git(upstream.path)
    line = replay(git, "old", "new")
    _check_line(git, line)
    assert [(step.kind, len(step.changes)) for step in line.steps] == [(Kind.PICK, 2)]


def test_patches_that_depend_on_each_other_are_reverted_from_the_last(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n", "z": "0\n"})
    tip = root
    for number in range(1, 6):
        tip = upstream.commit(f"patch {number}", [tip], {"a": f"{number}\n"})
    upstream.ref("refs/heads/old", tip)
    upstream.ref("refs/heads/new", upstream.commit("another", [root], {"z": "1\n"}))
    upstream.write()
    git = Git(upstream.path)
    line = replay(git, "old", "new")
    _check_line(git, line)
    subjects = [info.subject for info in facts(git, [step.sha for step in line.steps])]
    assert subjects == [f"revert patch {number}" for number in (5, 4, 3, 2, 1)] + ["pick another"]


def test_two_heads_with_the_same_content_make_no_line(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n"})
    for name, date in (("old", 1), ("new", 2)):
        upstream.ref(f"refs/heads/{name}", upstream.commit("patch", [root], {"a": "1\n"}, date=5, committed=date))
    upstream.write()
    line = replay(Git(upstream.path), "old", "new")
    assert (line.steps, line.shas) == ((), (upstream.sha(2),))


def _next(upstream: FastImport, name: str, heads: dict[str, int], files: dict[str, str]) -> None:
    """A head merged of several trees, with the file that says so."""
    upstream.write()
    listing = "".join(f"{tree}\t\t{upstream.sha(number)}\n" for tree, number in heads.items())
    first, *others = heads.values()
    merge = upstream.commit("Merge", [first, *others], files) if others else first
    upstream.ref(f"refs/heads/{name}", upstream.commit("Next", [merge], {"Next/SHA1s": listing}))
    upstream.write()


def test_what_a_tree_s_own_merge_brings_is_the_rest_of_that_tree(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n", "b": "0\n", "c": "0\n"})
    old = upstream.commit("old", [root], {"a": "1\n"})
    side = upstream.commit("side", [root], {"b": "1\n"})
    new = upstream.commit(
        "new", [upstream.commit("Merge side", [old, side], {"b": "1\n", "evil": "x\n"})], {"c": "1\n"}
    )
    _next(upstream, "old", {"origin": root, "tree": old}, {"a": "1\n"})
    _next(upstream, "new", {"origin": root, "tree": new}, {"a": "1\n", "b": "1\n", "c": "1\n", "evil": "x\n"})
    git = Git(upstream.path)
    line = replay(git, "old", "new")
    _check_line(git, line)
    subjects = [info.subject for info in facts(git, [step.sha for step in line.steps])]
    assert subjects[:3] == ["pick side", "pick new", "the rest of tree"]
    assert line.steps[2].tree == "tree"
    assert _touched(git, line.steps[2].sha) == {"evil"}


def test_trees_that_come_and_go(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": "0\n", "b": "0\n"})
    gone = upstream.commit("gone", [root], {"a": "1\n"})
    side = upstream.commit("come", [root], {"b": "1\n"})
    come = upstream.commit("Merge", [side, upstream.commit("more", [root], {"d": "1\n"})], {"d": "1\n", "evil": "x\n"})
    _next(upstream, "old", {"origin": root, "first": gone}, {"a": "1\n"})
    _next(upstream, "new", {"origin": root, "second": come}, {"b": "1\n", "d": "1\n", "evil": "x\n"})
    git = Git(upstream.path)
    line = replay(git, "old", "new")
    _check_line(git, line)
    assert {(step.tree, step.kind) for step in line.steps[:-1]} == {
        ("first", Kind.REVERT), ("second", Kind.PICK), ("second", Kind.REST),
    }  # fmt: skip


def test_binary_files_removals_and_renames_end_in_bad_s_tree(upstream: FastImport) -> None:
    text = "".join(f"{number}\n" for number in range(50))
    root = upstream.commit("root", files={"bin": b"\0\1\2", "gone": "x\n", "name": text, "mode": "m\n"})
    one = upstream.commit("edit", [root], {"bin": b"\0\1\3", "gone": "y\n", "name": text + "end\n"})
    two = upstream.commit("remove and rename", [root], {"bin": b"\0\1\4", "gone": None, "name": None, "named": text})
    upstream.ref("refs/heads/old", one)
    upstream.ref("refs/heads/new", two)
    upstream.write()
    _check_line(Git(upstream.path), replay(Git(upstream.path), "old", "new"))
