"""The commit graph, and which commits could be the culprit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect.terms import Commit
from bisectbot.errors import UserError

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def members(commit: Commit) -> tuple[int, ...]:
    """The nodes that a commit or a merge of commits is made of."""
    return commit if isinstance(commit, tuple) else (commit,)


class CommitGraph:
    """A directed acyclic graph of commits 0 … n-1 in any order; `parents[c]` are the parents of c."""

    def __init__(self, parents: Sequence[Sequence[int]]) -> None:
        self.parents: Final = tuple(tuple(int(p) for p in ps) for ps in parents)
        n = len(self.parents)
        for child, ps in enumerate(self.parents):
            for parent in ps:
                if not 0 <= parent < n:
                    raise UserError(f"commit graph: commit {child} has parent {parent}, outside 0…{n - 1}")
        self.order: Final = self._topological()
        self._ancestors: dict[int, Bools] = {}

    @classmethod
    def linear(cls, n: int) -> CommitGraph:
        """Commits 0 … n-1, each the parent of the next."""
        return cls([[c - 1] if c else [] for c in range(n)])

    def __len__(self) -> int:
        return len(self.parents)

    def _topological(self) -> tuple[int, ...]:
        """Parents before children, otherwise by number."""
        children: list[list[int]] = [[] for _ in self.parents]
        waiting = [len(set(ps)) for ps in self.parents]
        for child, ps in enumerate(self.parents):
            for parent in set(ps):
                children[parent].append(child)
        ready = [c for c in range(len(self.parents) - 1, -1, -1) if not waiting[c]]
        order: list[int] = []
        while ready:
            commit = ready.pop()
            order.append(commit)
            for child in reversed(children[commit]):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(order) < len(self.parents):
            raise UserError("commit graph: there is a cycle; every commit needs its parents before it")
        return tuple(order)

    def contains(self, commit: Commit) -> Bools:
        """Mask over all commits: what `commit` contains, itself included."""
        parts = [self._of_one(c) for c in members(commit)]
        return parts[0] if len(parts) == 1 else np.logical_or.reduce(parts)

    def _of_one(self, commit: int) -> Bools:
        if not 0 <= commit < len(self):
            raise UserError(f"commit {commit} is not in the graph of {len(self)} commits")
        known = self._ancestors.get(commit)
        if known is None:
            known = np.zeros(len(self), dtype=np.bool_)
            stack = [commit]
            known[commit] = True
            while stack:
                for parent in self.parents[stack.pop()]:
                    if not known[parent]:
                        known[parent] = True
                        stack.append(parent)
            self._ancestors[commit] = known
        return known


class Candidates:
    """The commits that may have made the change between `good` and `bad`.

    `new` are those that bad has and no good has: the culprit of the ordinary case. `lost` are those that
    every good has and bad has not: one of them may be what bad is missing. A hypothesis is an index into
    `commits`, which is `new` followed by `lost`, parents before children.
    """

    def __init__(self, graph: CommitGraph, good: Sequence[int], bad: int) -> None:
        if not good:
            raise UserError("bisection: no good commit given")
        self.graph = graph
        self.good = tuple(good)
        self.bad = bad
        in_bad = graph.contains(bad)
        in_any = np.logical_or.reduce([graph.contains(g) for g in good])
        in_all = np.logical_and.reduce([graph.contains(g) for g in good])
        order = np.array(graph.order, dtype=np.int64)
        self.new: Ints = order[(in_bad & ~in_any)[order]]
        self.lost: Ints = order[(in_all & ~in_bad)[order]]
        if not len(self.new) and not len(self.lost):
            raise UserError(f"bisection: bad commit {bad} and good {list(good)} contain the same commits")
        self.commits: Ints = np.concatenate([self.new, self.lost])
        self.index = {int(c): i for i, c in enumerate(self.commits)}

    def __len__(self) -> int:
        return len(self.commits)

    def sees(self, commit: Commit) -> Bools:
        """Per hypothesis: is `commit` at the bad level if that hypothesis is the truth?"""
        has = self.graph.contains(commit)
        return np.concatenate([has[self.new], ~has[self.lost]])

    def key(self, hypothesis: int) -> Commit:
        """What to test in order to know whether the culprit is among a candidate's ancestors.

        A commit that lacks some of good is tested as its merge with good: alone it would also lack older
        changes that both ends contain, and their effect would be taken for the culprit's. A lost commit is
        given back to bad.
        """
        commit = int(self.commits[hypothesis])
        if hypothesis >= len(self.new):
            return (self.bad, commit)
        if commit == self.bad:
            return self.bad
        missing = tuple(g for g, has in zip(self.good, self._with_good, strict=True) if not has[commit])
        return (*missing, commit) if missing else commit

    def landmarks(self) -> list[Commit]:
        """Both ends, and where good has something that bad lacks, bad with all of it given back."""
        ends: list[Commit] = [self.good[0], self.bad]
        return [*ends, (*self.good, self.bad)] if len(self.lost) else ends

    def before(self, hypothesis: int) -> list[Commit]:
        """What to test to know that a candidate's parents are still on the other side."""
        commit = int(self.commits[hypothesis])
        found: list[Commit] = []
        for parent in self.graph.parents[commit]:
            index = self.index.get(parent)
            if index is not None:
                found.append(self.key(index))
            elif hypothesis < len(self.new):
                found.append(self.good[0])
        if hypothesis >= len(self.new) and not found:
            found.append(self.bad)
        return list(dict.fromkeys(found)) or [self.good[0]]

    @cached_property
    def _with_good(self) -> list[list[bool]]:
        """Per good commit: which commits contain it."""
        found = []
        for g in self.good:
            has = [False] * len(self.graph)
            has[g] = True
            for commit in self.graph.order:
                if not has[commit]:
                    has[commit] = any(has[p] for p in self.graph.parents[commit])
            found.append(has)
        return found

    @cached_property
    def chain(self) -> bool:
        """Is the new part a line, each commit the only parent of the next?"""
        return (
            all([p for p in self.graph.parents[int(b)] if p in self.index] == [int(a)] for a, b in pairwise(self.new))
            and len(self.lost) == 0
        )

    @cached_property
    def reach(self) -> NDArray[np.uint8]:
        """Bit matrix: row t, column c: does candidate t contain candidate c? (within new, and within lost)"""
        n = len(self)
        rows = np.zeros((n, (n + 7) // 8), dtype=np.uint8)
        for i, commit in enumerate(self.commits):
            row = rows[i]
            for parent in self.graph.parents[int(commit)]:
                j = self.index.get(parent)
                if j is not None:
                    np.bitwise_or(row, rows[j], out=row)
            row[i >> 3] |= 128 >> (i & 7)
        return rows
