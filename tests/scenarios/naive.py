"""The search that people write first: halving, believing every mean of so many runs. What the scenarios warn of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bisectbot.bisect import CommitGraph, Experiment, Verdict
from bisectbot.bisect.graph import Candidates
from bisectbot.bisect.terms import Commit, State


class Naive:
    """As `bisectbot.bisect.Search` to its caller. Ends are measured once, and taken to differ."""

    def __init__(self, graph: CommitGraph, good: Sequence[int], bad: int, *, runs: int = 1, **_: Any) -> None:
        self._candidates = Candidates(graph, good, bad)
        self._runs = runs
        self._ends = (good[0], bad)
        self._values: dict[Commit, float] = {}
        self._skipped: set[Commit] = set()

    def plan(self, **_: Any) -> list[Experiment]:
        for end in self._ends:
            if end not in self._values and end not in self._skipped:
                return [Experiment(end, self._runs)]
        left = self._left()
        if len(left) <= 1:
            return []
        counts = np.array([self._candidates.sees(int(self._candidates.commits[i]))[left].sum() for i in left])
        order = np.argsort(np.abs(2 * counts - len(left)), kind="stable")
        keys = [int(self._candidates.commits[left[place]]) for place in order]
        fresh = [key for key in keys if key not in self._values and key not in self._skipped]
        return [Experiment(fresh[0], self._runs)] if fresh else []

    def observe(self, commit: Commit, values: Iterable[float], **_: Any) -> None:
        self._values.setdefault(commit, float(np.mean(list(values))))

    def skip(self, commit: Commit, *_: Any, **__: Any) -> None:
        self._skipped.add(commit)

    def identical(self, commit: Commit, other: Commit) -> None:
        """It would not know what to do with it."""

    def verdict(self) -> Verdict:
        left = self._left()
        if self.plan():
            return Verdict(State.RUNNING, None, 0.0)
        suspects = tuple(int(self._candidates.commits[i]) for i in left)
        state = State.CULPRIT if len(left) == 1 else State.CULPRIT_SET
        return Verdict(state, suspects[0] if len(left) == 1 else None, 1.0, suspects=suspects)

    def _left(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        good, bad = (self._values.get(end, 0.0) for end in self._ends)
        middle = (good + bad) / 2
        alive = np.ones(len(self._candidates), dtype=bool)
        for commit, value in self._values.items():
            is_bad = (value < middle) == (bad < good)
            sees = self._candidates.sees(commit)
            narrowed = alive & (sees if is_bad else ~sees)
            alive = narrowed if narrowed.any() else alive
        return np.flatnonzero(alive)
