"""Simulated histories with a known truth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bisectbot.bisect import Commit, CommitGraph


@dataclass(frozen=True)
class History:
    """A graph between good and bad, and what its commits do.

    `changes` maps a commit to the steps (in units of the step) that it makes; `culprits` are those that a
    bisection should name. `broken` commits do not build or boot.
    """

    graph: CommitGraph
    good: int
    bad: int
    changes: dict[int, float] = field(default_factory=dict)
    culprits: tuple[int, ...] = ()
    lost: bool = False
    broken: frozenset[int] = frozenset()

    def level(self, commit: Commit) -> float:
        has = self.graph.contains(commit)
        return sum(step for c, step in self.changes.items() if has[c])

    @property
    def candidates(self) -> int:
        return int((self.graph.contains(self.bad) & ~self.graph.contains(self.good)).sum())


def line(n: int, rng: np.random.Generator) -> History:
    culprit = int(rng.integers(1, n + 1))
    return History(CommitGraph.linear(n + 1), 0, n, {culprit: 1.0}, (culprit,))


def unchanged(n: int) -> History:
    return History(CommitGraph.linear(n + 1), 0, n)


def two_culprits(n: int, rng: np.random.Generator) -> History:
    """Two changes in the same direction, 65 % and 35 % of the step or nearly equal."""
    first, second = sorted(int(c) for c in rng.choice(np.arange(1, n + 1), 2, replace=False))
    share = float(rng.choice([0.35, 0.5, 0.65]))
    return History(CommitGraph.linear(n + 1), 0, n, {first: share, second: 1 - share}, (first, second))


def skips(n: int, rng: np.random.Generator) -> History:
    """A block of untestable commits, half of the time around the culprit, and 3 % single ones."""
    culprit = int(rng.integers(1, n + 1))
    length = min(int(rng.integers(3, 16)), n // 3)
    start = culprit - int(rng.integers(0, length)) if rng.random() < 0.5 else int(rng.integers(1, n - length))
    block = set(range(max(start, 1), min(start + length, n)))
    single = {int(c) for c in rng.choice(np.arange(1, n), max(n * 3 // 100, 1), replace=False)}
    return History(CommitGraph.linear(n + 1), 0, n, {culprit: 1.0}, (culprit,), broken=frozenset(block | single))


def merged(n: int, rng: np.random.Generator) -> History:
    """A trunk with topic branches, branches of branches, and their merges; commit 0 is good."""
    parents: list[list[int]] = [[]]

    def commit(*ps: int) -> int:
        parents.append(list(ps))
        return len(parents) - 1

    def branch(start: int, depth: int) -> int:
        tip = start
        own = [start]
        for _ in range(1 + int(rng.geometric(0.12))):
            if depth < 3 and rng.random() < 0.15:
                tip = commit(tip, branch(int(rng.choice(own[-10:])), depth + 1))
            else:
                tip = commit(tip)
            own.append(tip)
        return tip

    trunk = [0]
    while len(parents) <= n - 2:
        fork = int(rng.choice(trunk[-20:]))
        topic = branch(fork, 0)
        trunk.append(commit(trunk[-1], topic))
    while len(parents) <= n:
        trunk.append(commit(trunk[-1]))
    culprit = int(rng.integers(1, len(parents)))
    bad = trunk[-1]
    return History(CommitGraph(parents), 0, bad, {culprit: 1.0}, (culprit,))


def rebuilt(n: int, rng: np.random.Generator, *, lost: bool = False) -> History:
    """linux-next of two days: branches start at an old base and lack an older change of 0.8 of the step.

    Both days contain that change; yesterday's merges are not in today's. With `lost`, the change is one
    that yesterday had and today has not.
    """
    parents: list[list[int]] = [[]]

    def commit(*ps: int) -> int:
        parents.append(list(ps))
        return len(parents) - 1

    older = commit(0)
    shared = older
    for _ in range(5):
        shared = commit(shared)
    gone = 0
    good = shared
    for _ in range(12):  # branches that were rebased or dropped, merged yesterday
        tip = 0
        for _ in range(int(rng.integers(1, 9))):
            tip = commit(tip)
        good = commit(good, tip)
    yesterday = [c for c in range(shared + 1, len(parents)) if len(parents[c]) == 1]
    gone = int(rng.choice(yesterday))
    first = len(parents)
    today = shared
    while len(parents) < n + first - 1:
        tip = 0
        for _ in range(int(rng.geometric(0.05))):
            tip = commit(tip)
        today = commit(today, tip)
    sign = float(rng.choice([-1.0, 1.0]))
    changes = {older: 0.8 * sign}
    if lost:
        changes[gone] = -1.0
        culprit = gone
    else:
        culprit = int(rng.integers(first, len(parents)))
        changes[culprit] = 1.0
    return History(CommitGraph(parents), good, today, changes, (culprit,), lost=lost)
