"""The interval that a verdict gives for the change, held against the truth in the simulated laboratory."""

from __future__ import annotations

import statistics

import pytest

from bisectbot.bisect import Search, State
from tests.benchmarks.bisection.lab import Lab
from tests.benchmarks.bisection.suite import Cell, claim


@pytest.mark.parametrize(("family", "step"), [("gauss", 10.0), ("gauss", 4.0), ("bootvar", 4.0)])
def test_it_holds_the_true_change_as_often_as_it_says(family: str, step: float) -> None:
    cell = Cell("line", 10, family, step)
    held, widths = [], []
    for seed in range(20):
        rng = cell.rng(seed + 1000)
        history = cell.history(rng)
        search = Search(history.graph, good=[history.good], bad=history.bad, effect=claim(step, rng), seed=seed)
        verdict = Lab(history, family, step, rng).bisect(search, limit_h=100).verdict
        assert verdict.state is State.CULPRIT
        assert verdict.interval is not None
        low, high = verdict.interval
        widths.append(high - low)
        held.append(low <= step <= high)
    assert statistics.median(widths) < step, "an interval that holds everything says nothing"
    assert sum(held) >= 17  # of 95 %, fewer come in one of sixty trials
