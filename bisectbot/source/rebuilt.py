"""What is really new between two heads of a branch that is rebuilt, as linux-next is every day.

By commit ids nearly everything is new: merges always, rebased patches too. By changes little is: where the branch
says in ``Next/SHA1s`` which heads it was made of, only trees whose head moved are looked at; of their commits,
and of all commits where there is no such file, those count whose change the other head does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from bisectbot.source.git import Git, GitError, is_sha
from bisectbot.source.history import Change, CommitInfo, changes, facts

_TAG = re.compile(r"next-(\d{4})(\d{2})(\d{2})")
SHA1S = "Next/SHA1s"


def tag_date(tag: str) -> date | None:
    """The day of a tag ``next-YYYYMMDD``; None for any other name."""
    match = _TAG.fullmatch(tag)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def component_heads(git: Git, head: str) -> dict[str, str]:
    """The heads that this head was merged from, in merge order: tree → 40 digits. Empty: it does not say."""
    try:
        text = git.run("cat-file", "blob", f"{head}:{SHA1S}")
    except GitError as failure:
        if "does not exist" in failure.stderr or "Not a valid object name" in failure.stderr:
            return {}
        raise
    rows = (line.split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and is_sha(row[1])}


@dataclass(frozen=True)
class Edit:
    """A change that one head holds and the other does not, or holds otherwise."""

    new: Change | None  # as the newer head holds it; None: it is gone
    old: Change | None  # as the older head holds it; None: it has come. Both: amended, same author and subject


@dataclass(frozen=True)
class Moved:
    """A tree whose head moved, with what that changed: amended and gone first, then come, each in commit order.

    ``name`` is "" for a branch without ``Next/SHA1s``, which is then one tree. ``merges`` are its new merges.
    """

    name: str
    old: str | None
    new: str | None
    edits: tuple[Edit, ...]
    merges: tuple[str, ...] = ()


@dataclass(frozen=True)
class News:
    """The difference of two heads, in changes. ``glue``: new commits that belong to no tree and are no culprits:

    the merges of the rebuild, their fix-ups, the commit that adds the ``Next/`` files.
    """

    good: str
    bad: str
    trees: tuple[Moved, ...]
    glue: tuple[str, ...]
    commits: int  # new by commit id, for comparison

    @property
    def come(self) -> list[Change]:
        """The changes that only the newer head holds; the amended ones included."""
        return [edit.new for tree in self.trees for edit in tree.edits if edit.new is not None]

    @property
    def gone(self) -> list[Change]:
        """The changes that only the older head holds; the amended ones included."""
        return [edit.old for tree in self.trees for edit in tree.edits if edit.old is not None]


def news(git: Git, good: str, bad: str) -> News:
    """What ``bad`` holds that ``good`` does not, and the other way round.

    Raises UserError for a bad revision, InfraError as git does.
    """
    good, bad = git.resolve(good), git.resolve(bad)
    fresh = git.run("rev-list", "--topo-order", "--reverse", bad, f"^{good}").split()
    stale = git.run("rev-list", "--topo-order", "--reverse", good, f"^{bad}").split()
    old_heads, new_heads = component_heads(git, good), component_heads(git, bad)
    if old_heads and new_heads:
        come = _shared_out(git, fresh, new_heads)
        gone = _shared_out(git, stale, old_heads)
    else:
        old_heads, new_heads = {"": good}, {"": bad}
        come, gone = {"": fresh}, {"": stale}
    sides = _Sides(git, [sha for row in come.values() for sha in row], [sha for row in gone.values() for sha in row])
    trees = []
    for name in [*new_heads, *(name for name in old_heads if name not in new_heads)]:
        old, new = old_heads.get(name), new_heads.get(name)
        if old != new:
            edits, merges = sides.edits(come.get(name, []), gone.get(name, []))
            trees.append(Moved(name, old, new, edits, merges))
    owned = {sha for row in come.values() for sha in row}
    glue = tuple(sha for sha in fresh if sha not in owned)
    return News(good, bad, tuple(trees), glue, len(fresh))


def _shared_out(git: Git, only: list[str], heads: Mapping[str, str]) -> dict[str, list[str]]:
    """Each commit of ``only`` (parents first) to the first tree, in merge order, whose head reaches it."""
    if not only:
        return {}
    left = set(only)
    parents = _parents(git, only)
    rows = {}
    for name, head in heads.items():
        todo, mine = [head], set()
        while todo:
            sha = todo.pop()
            if sha in left:
                left.remove(sha)
                mine.add(sha)
                todo += parents[sha]
        if mine:
            rows[name] = [sha for sha in only if sha in mine]
    return rows


def _parents(git: Git, shas: list[str]) -> dict[str, list[str]]:
    out = git.run("rev-list", "--no-walk=unsorted", "--parents", "--stdin", input="\n".join(shas) + "\n")
    return {words[0]: words[1:] for words in (line.split() for line in out.splitlines())}


class _Sides:
    """The changes of both sides, and what of each the other side lacks."""

    def __init__(self, git: Git, come: list[str], gone: list[str]) -> None:
        self._infos = {info.sha: info for info in facts(git, come + gone)}
        self._changes = {change.sha: change for change in changes(git, list(self._infos.values()))}
        new, old = self._keys(come), self._keys(gone)
        self._lacking = (new | old) - (new & old)
        left: dict[tuple[str, str], list[str]] = {}
        for sha in filter(self._counts, gone):
            left.setdefault(_name(self._infos[sha]), []).append(sha)
        self._former: dict[str, str] = {}  # new version → old one, which may have been in another tree
        for sha in filter(self._counts, come):
            if versions := left.get(_name(self._infos[sha])):
                self._former[sha] = versions.pop(0)
        self._amended = set(self._former.values())

    def edits(self, come: Iterable[str], gone: Iterable[str]) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
        """The edits of one tree, and its new merges."""
        amended, arrived = [], []
        for sha in filter(self._counts, come):
            change = self._changes[sha]
            if sha in self._former:
                amended.append(Edit(change, self._changes[self._former[sha]]))
            else:
                arrived.append(Edit(change, None))
        left = [Edit(None, self._changes[sha]) for sha in gone if self._counts(sha) and sha not in self._amended]
        merges = tuple(sha for sha in come if self._infos[sha].is_merge)
        return (*amended, *reversed(left), *arrived), merges

    def _keys(self, shas: list[str]) -> set[str]:
        return {self._changes[sha].key for sha in shas}

    def _counts(self, sha: str) -> bool:
        """Whether the commit is a change that only one side holds; one that changes nothing is none."""
        change = self._changes[sha]
        return change.patch_id is not None and change.key in self._lacking


def _name(info: CommitInfo) -> tuple[str, str]:
    return info.author_mail, info.subject
