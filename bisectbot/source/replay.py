"""The replay line: from one day's next to another's in single changes, each on top of all that came before.

A commit in the middle of a tree's own branch lacks older, unrelated changes that both days hold; measured as it
is, it misleads. The replay line begins at the good head and ends at bad's own tree. In between, tree by tree in
merge order, every change that is gone is reverted, every one that was amended is replaced, and every one that
has come is picked: synthetic commits, each of which differs from its neighbour by that change alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from bisectbot.source.git import Git
from bisectbot.source.history import Change, facts
from bisectbot.source.rebuilt import Edit, Moved, News, component_heads, news
from bisectbot.source.rerere import Rerere, merge

LINES = "refs/bisectbot/replay/"


class Kind(Enum):
    PICK = "pick"  # a change that has come
    REVERT = "revert"  # one that is gone
    AMEND = "amend"  # one that both days hold, but differently
    REST = "rest"  # what did not apply alone, of a tree or (tree "") of the whole day


@dataclass(frozen=True)
class Step:
    """One synthetic commit. ``changes`` are what it brings or takes; several are one candidate, as a group."""

    sha: str
    kind: Kind
    tree: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Replay:
    """The line: ``good``, then the steps, oldest first; ``idle`` are changes that made no difference to the tree."""

    good: str
    bad: str
    ref: str
    steps: tuple[Step, ...]
    idle: tuple[Change, ...]
    news: News

    @property
    def shas(self) -> tuple[str, ...]:
        """The commits of the line, good's own first: the nodes of a linear graph."""
        return (self.good, *(step.sha for step in self.steps))


def replay(git: Git, good: str, bad: str) -> Replay:
    """Make the line from ``good`` to ``bad`` and keep it under refs/bisectbot/replay/.

    Its commits have fixed author and dates: the same two heads give the same ids, on every machine. When good
    holds already all that bad does, there are no steps. Raises UserError for a bad revision.
    """
    found = news(git, good, bad)
    good, bad = found.good, found.bad
    date = facts(git, [bad])[0].commit_date
    with tempfile.TemporaryDirectory(prefix="bisectbot-replay-") as folder:
        line = _Line(git, good, date, Rerere(git, _days(git, good, bad), Path(folder)), _patches(git, found))
        carried: list[Edit] = []
        for tree in found.trees:
            left = line.walk(tree)
            if left or tree.merges:
                carried += line.rest(git, tree, left)
        line.finish(git.run("rev-parse", f"{bad}^{{tree}}"), carried, found.glue)
    ref = f"{LINES}{good}-{bad}"
    git.run("update-ref", ref, line.tip)
    return Replay(good, bad, ref, tuple(line.steps), tuple(line.idle), found)


def _days(git: Git, good: str, bad: str) -> list[tuple[str, str]]:
    """Each day's line of merges: its head, and where that line starts."""
    days = []
    for head, other in ((good, bad), (bad, good)):
        origin = next(iter(component_heads(git, head).values()), other)
        days.append((head, origin))
    return days


@dataclass(frozen=True)
class _Patch:
    """A commit as its subject, its parent, and the trees that it leads from and to."""

    subject: str
    parent: str | None
    before: str
    after: str


def _patches(git: Git, found: News) -> dict[str, _Patch]:
    infos = facts(git, [change.sha for change in found.come + found.gone])
    parents = sorted({info.parents[0] for info in infos if info.parents})
    trees = {info.sha: info.tree for info in facts(git, parents)}
    empty = git.run("mktree", input="")
    return {
        info.sha: _Patch(
            subject=info.subject,
            parent=info.parents[0] if info.parents else None,
            before=trees[info.parents[0]] if info.parents else empty,
            after=info.tree,
        )
        for info in infos
    }


@dataclass
class _Line:
    """The line as far as it goes."""

    git: Git
    tip: str
    date: int
    rerere: Rerere
    patches: dict[str, _Patch]
    steps: list[Step] = field(default_factory=list)
    idle: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        who = {"NAME": "bisectbot", "EMAIL": "bisectbot@localhost", "DATE": f"@{self.date} +0000"}
        env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        self._writer = Git(self.git.path, env=env)
        self._tree = self._tree_of(self.tip)

    def walk(self, tree: Moved) -> list[Edit]:
        """Apply the tree's edits one by one; one that conflicts waits for those it may depend on, or joins the next.

        Returns what could not be applied.
        """
        waiting: list[tuple[Edit, frozenset[str]]] = []
        for edit in tree.edits:
            before = self._tree
            conflict = self._apply([edit], tree.name)
            if conflict is None:
                self._retry(waiting, before, tree.name)
                continue
            group = [one for one, _ in waiting] + [edit]
            if waiting and self._adjoin(group) and self._apply(group, tree.name) is None:
                waiting = []
            else:
                waiting.append((edit, conflict))
        return [edit for edit, _ in waiting]

    def rest(self, git: Git, tree: Moved, left: Sequence[Edit]) -> Sequence[Edit]:
        """Bring in what the tree's own head holds beyond the applied edits; returns what remains."""
        if tree.name == "":
            return left
        counterpart = tree.old or tree.new
        ends = [
            end or git.run("merge-base", counterpart or "", self.steps[0].sha if self.steps else self.tip)
            for end in (tree.old, tree.new)
        ]
        result, _ = self._three_way(self._tree_of(ends[0]), self._tree_of(ends[1]))
        if result is None:
            return left
        self._advance(result, Kind.REST, tree.name, _held(left), f"the rest of {tree.name}")
        return []

    def finish(self, tree: str, carried: Sequence[Edit], glue: Sequence[str]) -> None:
        """The last step: whatever is still missing of bad's own tree."""
        text = f"the rest of the day, and {len(glue)} commits of the rebuild itself"
        self._advance(tree, Kind.REST, "", _held(carried), text)

    def _retry(self, waiting: list[tuple[Edit, frozenset[str]]], before: str, tree: str) -> None:
        """After a step, try again what waits and conflicted in a file that the step touched."""
        if not waiting or before == self._tree:
            return
        touched = frozenset(self.git.run("diff-tree", "-r", "--name-only", "-z", before, self._tree).split("\0"))
        for place, (edit, paths) in enumerate(waiting):
            if not paths.isdisjoint(touched):
                before = self._tree
                if self._apply([edit], tree) is None:
                    del waiting[place]
                    self._retry(waiting, before, tree)
                    return

    def _adjoin(self, group: Sequence[Edit]) -> bool:
        """Whether the edits are commits that follow each other on their branch: one diff tells them all."""
        shas = [edit.new.sha for edit in group if edit.new and not edit.old]
        return len(shas) == len(group) and [self.patches[sha].parent for sha in shas[1:]] == shas[:-1]

    def _apply(self, group: Sequence[Edit], tree: str) -> frozenset[str] | None:
        """Add a step for one edit, or for picks that adjoin; returns the files in conflict, or None when it is done."""
        edit, last = group[0], group[-1]
        old = self.patches[edit.old.sha] if edit.old else None
        new = self.patches[edit.new.sha] if edit.new else None
        end = self.patches[last.new.sha] if last.new else None
        if old is None:
            assert new is not None
            assert end is not None
            kind, base, theirs, subject = Kind.PICK, new.before, end.after, end.subject
        elif new is None:
            kind, base, theirs, subject = Kind.REVERT, old.after, old.before, old.subject
        else:  # from the old version, moved to where the new one stands, to the new one
            moved, conflict = self._three_way(old.before, old.after, ours=new.before)
            if moved is None:
                return conflict
            kind, base, theirs, subject = Kind.AMEND, moved, new.after, new.subject
        result, conflict = self._three_way(base, theirs)
        if result is None:
            return conflict
        self._advance(result, kind, tree, _held(group), f"{kind.value} {subject}")
        return None

    def _advance(self, tree: str, kind: Kind, name: str, changes: tuple[Change, ...], subject: str) -> None:
        if tree == self._tree:
            self.idle += changes
            return
        rows = "".join(f"Change: {change.key} {change.sha}\n" for change in changes)
        message = f"{subject}\n\nReplay: {kind.value}\nTree: {name}\n{rows}"
        self.tip = self._writer.run("commit-tree", tree, "-p", self.tip, input=message)
        self._tree = tree
        self.steps.append(Step(self.tip, kind, name, changes))

    def _three_way(self, base: str, theirs: str, *, ours: str | None = None) -> tuple[str | None, frozenset[str]]:
        """What turns ``base`` into ``theirs`` done to ``ours``, all trees: the new tree, or the files in conflict."""
        root = self._writer.run("commit-tree", base, "-m", "base")
        sides = [
            self._writer.run("commit-tree", tree, "-p", root, "-m", word)
            for tree, word in ((ours or self._tree, "ours"), (theirs, "theirs"))
        ]
        merged = merge(self.git, *sides)
        if not merged.conflicts:
            return merged.tree, frozenset()
        return self.rerere.solve(merged), merged.paths

    def _tree_of(self, sha: str) -> str:
        return self.git.run("rev-parse", f"{sha}^{{tree}}")


def _held(edits: Iterable[Edit]) -> tuple[Change, ...]:
    return tuple(change for edit in edits for change in (edit.old, edit.new) if change is not None)
