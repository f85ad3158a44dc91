"""A tree like linux-next, rebuilt every day, at any size.

Mainline moves by its own commits and by pulling trees. Each tree owns a folder; its patches edit places far
enough apart to apply in any order. A plain tree only grows; a quilt tree is rebased onto mainline every day, and
its patches are added, amended and dropped. Each day's `next` starts at mainline and merges the trees one by one:
the trees that add a line to the shared list conflict there, and the merge resolves it; one merge carries a
fix-up. The last commit adds the ``Next/`` files. Yesterday's next is no ancestor of today's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

from tests.source.fastimport import NOON, FastImport

PLACES = 12  # in each file, 9 lines apart: no two patches share context
FILES = 4  # in each tree's folder
SHARED = "include/list.h"
DAY = 86400
START = date(2026, 3, 2)  # the day before the first


@dataclass(frozen=True)
class Patch:
    """One edit; its identity is everything but ``version``, which an amended patch counts up."""

    tree: str
    number: int
    version: int = 1
    lists: bool = False  # also adds a line to the shared list

    @property
    def subject(self) -> str:
        return f"{self.tree}: patch {self.number}" + (" (listed)" if self.lists else "")

    @property
    def change(self) -> tuple[str, int]:
        """What tells one change from another: the subject, and which version of it."""
        return self.subject, self.version


@dataclass
class _Tree:
    name: str
    quilt: bool
    order: list[Patch] = field(default_factory=list)  # not yet in mainline
    commits: dict[Patch, int] = field(default_factory=dict)  # of a plain tree, once and for all
    tip: int = 0
    started: frozenset[Patch] = frozenset()  # what mainline held when the plain tree last forked from it


@dataclass(frozen=True)
class Day:
    """One day's next and what it is made of."""

    date: date
    head: str
    mainline: str
    trees: dict[str, str]
    patches: frozenset[Patch]  # everything that next holds

    @property
    def tag(self) -> str:
        return f"next-{self.date:%Y%m%d}"

    @property
    def changes(self) -> set[tuple[str, int]]:
        return {patch.change for patch in self.patches}


class LinuxNext:
    """The repository at ``path``; every call of `day` moves mainline and trees and builds a next.

    ``base``: commits of mainline before the first day. Refs: heads/mainline, heads/master (next), the day's tag.
    """

    def __init__(
        self, path: Path, *, trees: Sequence[str] = ("net", "drm", "fs"), quilts: Sequence[str] = ("mm",),
        base: int = 20, files: int = FILES, seed: int = 0,
    ) -> None:  # fmt: skip
        self.repo = FastImport(path)
        self._rng = random.Random(seed)
        self._trees = {name: _Tree(name, name in quilts) for name in [*trees, *quilts]}
        self._files = files
        self._date = START
        self._merged: frozenset[Patch] = frozenset()
        self._count = 0
        self._tip = self._root(base)
        for tree in self._trees.values():
            tree.tip = self._tip

    def day(self, *, new: int = 1, pulled: Sequence[str] = (), dropped: int = 0, amended: int = 0) -> Day:
        """One day: mainline gains a commit and pulls the trees named; every tree gains ``new`` patches.

        Of each quilt tree ``dropped`` patches are dropped and ``amended`` changed, drawn by the seed.
        """
        self._date += timedelta(days=1)
        self._count += 1
        self._tip = self._commit(f"kernel: day {self._count}", [self._tip], {"kernel/day": f"{self._count}\n"})
        for name in pulled:
            self._pull(self._trees[name])
        for tree in self._trees.values():
            self._grow(tree, new, dropped, amended)
        heads = {tree.name: tree.tip for tree in self._trees.values()}
        self.repo.ref("refs/heads/mainline", self._tip)
        self.repo.write()
        return self._build(heads)

    def _root(self, base: int) -> int:
        files = {f"{name}/f{number}": self._content(frozenset(), name, number)
                 for name in self._trees for number in range(self._files)}  # fmt: skip
        files |= {SHARED: self._list(frozenset()), "kernel/day": "0\n", "kernel/glue": "none\n"}
        tip = self._commit("root", [], files)
        done = 1
        while done < base:  # like mainline: short branches, merged along the first parent
            fork, length = tip, min(self._rng.randint(1, 9), max(1, base - done - 1))
            for step in range(length):
                done += 1
                fork = self._commit(f"old: commit {done}", [fork], {f"old/{done % 97}/{done % 89}": f"{done} {step}\n"})
            done += 1
            tip = self._commit(f"Merge old {done}", [tip, fork], {f"old/{done % 97}/{done % 83}": f"{done}\n"})
        return tip

    def _pull(self, tree: _Tree) -> None:
        taken = frozenset(tree.order)
        self._merged |= taken
        if tree.quilt:
            tip = self._tip
            for number, patch in enumerate(tree.order):  # applied by mainline, in order: new ids, same changes
                held = self._merged - taken | frozenset(tree.order[: number + 1])
                tip = self._apply(patch, tip, held)
            self._tip = tip
        else:
            self._tip = self._commit(
                f"Merge tag '{tree.name}'", [self._tip, tree.tip], self._overlay(taken, self._merged)
            )
            tree.tip, tree.started = self._tip, self._merged
        tree.order, tree.commits = [], {}

    def _grow(self, tree: _Tree, new: int, dropped: int, amended: int) -> None:
        if tree.quilt:
            for _ in range(min(dropped, len(tree.order))):
                tree.order.pop(self._rng.randrange(len(tree.order)))
            for place in self._rng.sample(range(len(tree.order)), min(amended, len(tree.order))):
                tree.order[place] = replace(tree.order[place], version=tree.order[place].version + 1)
        for _ in range(new):
            self._count += 1
            patch = Patch(tree.name, self._count, lists=self._count % 5 == 0 and not tree.quilt)
            tree.order.insert(self._rng.randint(0, len(tree.order)) if tree.quilt else len(tree.order), patch)
        if tree.quilt:
            tree.tip, tree.started, tree.commits = self._tip, self._merged, {}
        for number, patch in enumerate(tree.order):
            if patch not in tree.commits:
                held = tree.started | frozenset(tree.order[: number + 1])
                tree.tip = tree.commits[patch] = self._apply(patch, tree.tip, held)

    def _apply(self, patch: Patch, parent: int, held: frozenset[Patch]) -> int:
        files = self._overlay({patch}, held)
        author = f"{patch.tree.title()} Dev {patch.number % 7} <dev{patch.number % 7}@{patch.tree}.example>"
        return self._commit(patch.subject, [parent], files, author=author, date=NOON + 60 * patch.number)

    def _build(self, heads: dict[str, int]) -> Day:
        shas = {name: self.repo.sha(number) for name, number in heads.items()}
        head, held, merged = self._tip, self._merged, []
        for name, number in heads.items():
            tree = self._trees[name]
            if not tree.order:
                continue
            held |= frozenset(tree.order) | tree.started
            files = self._overlay(frozenset(tree.order), held)
            if name == next(iter(self._trees)):
                files["kernel/glue"] = f"fix-up for {name}, {len(tree.order)} patches\n"
            head = self._commit(f"Merge branch 'for-next' of {name}", [head, number], files)
            merged.append(name)
        origin = {"origin": self.repo.sha(self._tip), **shas}
        listing = "".join(f"{name}\t\t{sha}\n" for name, sha in origin.items())
        trees = "".join(f"{name}\t\tgit\thttps://example.org/{name}.git#for-next\n" for name in origin)
        head = self._commit(
            f"Add linux-next specific files for {self._date:%Y%m%d}",
            [head],
            {
                "Next/SHA1s": f"Name\t\tSHA1\n----\t\t----\n{listing}",
                "Next/Trees": f"Trees included into this release:\n\nName\t\tType\tURL\n----\t\t----\t---\n{trees}",
                "Next/merge.log": "".join(f"Merging {name}/for-next\n" for name in merged),
                "localversion-next": f"-next-{self._date:%Y%m%d}\n",
            },
        )
        day = Day(self._date, "", origin["origin"], shas, held)
        self.repo.ref("refs/heads/master", head)
        self.repo.ref(f"refs/tags/{day.tag}", head)
        self.repo.write()
        return replace(day, head=self.repo.sha(head))

    def _overlay(self, touched: frozenset[Patch] | set[Patch], held: frozenset[Patch]) -> dict[str, str | bytes | None]:
        """The files that ``touched`` patches edit, as they are with all ``held`` patches applied."""
        places = {(patch.tree, patch.number % self._files) for patch in touched}
        files: dict[str, str | bytes | None] = {
            f"{name}/f{number}": self._content(held, name, number) for name, number in sorted(places)
        }
        if any(patch.lists for patch in touched):
            files[SHARED] = self._list(held)
        return files

    def _content(self, held: frozenset[Patch], name: str, file: int) -> str:
        lines = [f"{name} {file} line {number}" for number in range(9 * PLACES)]
        for patch in sorted(held, key=lambda one: one.number):
            if patch.tree == name and patch.number % self._files == file:
                place = 9 * (patch.number // self._files % PLACES) + 4
                lines[place] = f"{patch.subject} v{patch.version}"
        return "\n".join(lines) + "\n"

    def _list(self, held: frozenset[Patch]) -> str:
        listed = sorted((patch for patch in held if patch.lists), key=lambda one: one.number)
        return "".join(["/* list */\n", *(f"{patch.tree} {patch.number}\n" for patch in listed)])

    def _commit(
        self, subject: str, parents: list[int], files: dict[str, str | bytes | None] | dict[str, str], *,
        author: str = "Linus <linus@example.org>", date: int | None = None,
    ) -> int:  # fmt: skip
        now = NOON + DAY * (self._date - START).days + self._count
        return self.repo.commit(subject, parents, dict(files), author=author, date=date or now, committed=now)
