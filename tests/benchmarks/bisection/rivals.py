"""The methods that people use today, on the same simulated host: lines of commits, one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from git_bayesect import Bisector
from scipy.stats import ks_2samp, mannwhitneyu

from bisectbot.bisect import Costs
from tests.benchmarks.bisection.families import FAMILIES, Host
from tests.benchmarks.bisection.histories import History


@dataclass
class Answer:
    """The commit named (None: no change) with the probability stated, and what it took."""

    named: int | None
    stated: float | None
    host_s: float
    builds: int
    boots: int


@dataclass
class Bench:
    """One host: `test` boots a commit freshly and runs it n times."""

    history: History
    family: str
    step: float
    rng: np.random.Generator
    costs: Costs = field(default_factory=Costs)
    host_s: float = 0.0
    boots: int = 0
    built: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.host = Host(FAMILIES[self.family], self.step, self.rng)

    def test(self, commit: int, n: int) -> list[float]:
        self.built.add(commit)
        self.boots += 1
        self.host_s += self.costs.boot_s + n * self.costs.run_s
        self.host.boot()
        level = self.history.level(commit)
        bad = level != self.history.level(self.history.good)
        values: list[float] = self.host.runs(level * self.step, bad, n, self.host_s).tolist()
        return values

    def answer(self, named: int | None, stated: float | None) -> Answer:
        return Answer(named, stated, self.host_s, len(self.built), self.boots)


def git_bisect(bench: Bench, runs: int) -> Answer:
    """Median of `runs` against the middle of both ends, believed for ever."""
    n = bench.history.bad
    middle = (np.median(bench.test(0, runs)) + np.median(bench.test(n, runs))) / 2
    good, bad = 0, n
    while bad - good > 1:
        c = (good + bad) // 2
        if np.median(bench.test(c, runs)) > middle:
            bad = c
        else:
            good = c
    return bench.answer(bad, None)


def bayesect(bench: Bench, confidence: float = 0.95, most: int = 400) -> Answer:
    """git_bayesect 1.2 with a threshold half-way between five runs of each end."""
    n = bench.history.bad
    middle = (np.median(bench.test(0, 5)) + np.median(bench.test(n, 5))) / 2
    bisector = Bisector([1.0] * (n + 1))  # index 0 is the newest
    for _ in range(most):
        distribution = bisector.distribution
        if distribution.max() >= confidence:
            break
        index = int(bisector.select())
        bisector.record(index, bool(bench.test(n - index, 1)[0] > middle))
    best = int(bisector.distribution.argmax())
    return bench.answer(n - best, float(bisector.distribution[best]))


def pinpoint(bench: Bench) -> Answer:
    """Compares neighbours by the smaller p of two tests; 10 to 160 runs, ten per boot."""
    n = bench.history.bad
    runs: dict[int, list[float]] = {c: bench.test(c, 10) for c in (0, n)}

    def different(a: int, b: int) -> bool:
        while True:
            x, y = runs[a], runs[b]
            p = min(float(mannwhitneyu(x, y).pvalue), float(ks_2samp(x, y).pvalue))
            if p <= 0.01:
                return True
            if p > 0.4 or min(len(x), len(y)) >= 160:
                return False
            for c in (a, b):
                runs[c] += bench.test(c, min(len(runs[c]), 10))

    if not different(0, n):
        return bench.answer(None, None)
    good, bad = 0, n
    while bad - good > 1:
        c = (good + bad) // 2
        runs[c] = bench.test(c, 10)
        if different(good, c):
            bad = c
        elif different(c, bad):
            good = c
        else:
            return bench.answer(None, None)
    return bench.answer(bad, None)


RIVALS: Sequence[tuple[str, Callable[[Bench], Answer]]] = (
    ("git bisect, 1 run", lambda b: git_bisect(b, 1)),
    ("git bisect, 3 runs", lambda b: git_bisect(b, 3)),
    ("git bisect, 5 runs", lambda b: git_bisect(b, 5)),
    ("git bisect, 10 runs", lambda b: git_bisect(b, 10)),
    ("git_bayesect 1.2", bayesect),
    ("Pinpoint-like", pinpoint),
)
