from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from bisectbot.source.git import Git
from bisectbot.source.history import facts
from bisectbot.source.rebuilt import component_heads, news, tag_date
from tests.source.fastimport import FastImport
from tests.source.linux_next import Day, LinuxNext


def _subjects(git: Git, shas: list[str]) -> set[str]:
    return {info.subject for info in facts(git, shas)}


def _check(git: Git, old: Day, new: Day, days: int) -> None:
    """``days``: how many commits mainline made of its own in between; they come, or go when old is the later day."""
    found = news(git, old.head, new.head)
    for changes, expected, kernel in (
        (found.come, new.changes - old.changes, max(days, 0)),
        (found.gone, old.changes - new.changes, max(-days, 0)),
    ):
        subjects = _subjects(git, [change.sha for change in changes])
        own = {subject for subject in subjects if subject.startswith("kernel:")}
        assert subjects - own == {subject for subject, _ in expected}
        assert len(own) == kernel
    assert not set(found.glue) & {change.sha for change in found.come}
    assert any(subject.startswith("Add linux-next") for subject in _subjects(git, list(found.glue)))
    assert any(subject.startswith("Merge branch") for subject in _subjects(git, list(found.glue)))


def test_only_changes_that_are_new_are_new(tmp_path: Path) -> None:
    tree = LinuxNext(tmp_path / "next.git", files=20, seed=3)
    git = Git(tmp_path / "next.git")
    days = [tree.day(new=6)]
    days.append(tree.day(new=2))
    days.append(tree.day(new=2, pulled=["net"]))
    days.append(tree.day(new=1, dropped=2, amended=2))
    days.append(tree.day(new=1, pulled=["mm", "fs"]))
    days.append(tree.day(new=1, dropped=1))
    assert not git.ok("merge-base", "--is-ancestor", days[0].head, days[1].head)
    for place, old in enumerate(days):
        for distance, new in enumerate(days[place + 1 :], 1):
            _check(git, old, new, distance)
            _check(git, new, old, -distance)


def test_an_amended_patch_is_one_edit(tmp_path: Path) -> None:
    tree = LinuxNext(tmp_path / "next.git", seed=5)
    git = Git(tmp_path / "next.git")
    old = tree.day(new=4)
    new = tree.day(new=0, amended=2)
    edits = [edit for moved in news(git, old.head, new.head).trees for edit in moved.edits if edit.old]
    assert len(edits) == 2
    for edit in edits:
        assert edit.new is not None
        assert edit.old is not None
        assert _subjects(git, [edit.new.sha]) == _subjects(git, [edit.old.sha])
        assert edit.new.key != edit.old.key


def test_a_rebased_branch_without_a_list_of_heads(upstream: FastImport) -> None:
    root = upstream.commit("root", files={f"f{number}": "0\n" for number in range(9)})
    base = upstream.commit("base", [root], {"f8": "1\n"})

    def series(parent: int, *numbers: int) -> int:
        for number in numbers:
            parent = upstream.commit(f"patch {number}", [parent], {f"f{number}": "1\n"}, date=number)
        return parent

    old, new = series(root, 1, 2, 3), series(base, 1, 3, 4)
    upstream.write()
    git = Git(upstream.path)
    found = news(git, upstream.sha(old), upstream.sha(new))
    assert _subjects(git, [change.sha for change in found.come]) == {"base", "patch 4"}
    assert _subjects(git, [change.sha for change in found.gone]) == {"patch 2"}
    assert found.commits == 4
    assert found.glue == ()
    assert component_heads(git, upstream.sha(new)) == {}


def test_a_tree_that_comes_and_one_that_goes(tmp_path: Path) -> None:
    few = LinuxNext(tmp_path / "next.git", trees=("net",), quilts=("mm",), seed=1)
    day = few.day(new=2)
    git = Git(tmp_path / "next.git")
    heads = component_heads(git, day.head)
    assert list(heads) == ["origin", "net", "mm"]
    assert heads["net"] == day.trees["net"]


@pytest.mark.parametrize(
    ("tag", "day"),
    [("next-20260301", date(2026, 3, 1)), ("next-20261301", None), ("next-2026030", None), ("v6.1", None),
     ("next-20260301-fix", None), ("xnext-20260301", None)],
)  # fmt: skip
def test_tags_are_days(tag: str, day: date | None) -> None:
    assert tag_date(tag) == day
