"""Run matrices made so that a comparison prints given rows: their means, deviations, changes and order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from bisectbot.results.matrix import RunMatrix
from bisectbot.results.table import Cell, Row

RUNS = 20


def matrices(rows: Sequence[Row], runs: dict[str, tuple[Sequence[int], Sequence[int]]]) -> tuple[RunMatrix, RunMatrix]:
    """Make the base's and the other's runs. ``runs`` gives the runs of stats whose values are known."""
    base: dict[str, tuple[float, ...]] = {}
    other: dict[str, tuple[float, ...]] = {}
    last: dict[str, float] = {}
    for row in rows:
        if row.name in runs:
            base[row.name], other[row.name] = (tuple(map(float, side)) for side in runs[row.name])
            continue
        first, second = row.cells
        kind = row.name.rsplit(".cycles-pp.", 1)[0]
        least = last.get(kind, -math.inf) if row.points and row.name.startswith("perf-profile") else -math.inf
        low, high = _means(first, second, row.points, least)
        last[kind] = high - low
        outwards = 1 if high > low else -1
        base[row.name] = _values(low, first.spread, -outwards)
        other[row.name] = _values(high, second.spread, outwards)
    return RunMatrix(RUNS, base), RunMatrix(RUNS, other)


def _means(first: Cell, second: Cell, points: bool, least: float) -> tuple[float, float]:
    """Find means that print as these cells do, change included, and whose difference is above ``least``."""
    assert first.mean is not None
    assert second.mean is not None
    assert second.change is not None
    found = [
        (high - low, low, high)
        for low, high in itertools.product(_candidates(first.mean), _candidates(second.mean))
        if abs((high - low if points else 100 * (high - low) / low) - second.change) < 0.0499 and high - low > least
    ]
    _, low, high = min(found)
    return low, high


def _candidates(printed: float) -> Iterator[float]:
    """Give numbers that print as ``printed``: cut from 1000 on, two decimals below, four digits above 1e8."""
    if abs(printed) < 1000:
        yield from (printed + step * 0.00049 for step in range(-10, 11))
    elif abs(printed) > 1e8:
        digit = 10 ** (math.floor(math.log10(abs(printed))) - 3)
        yield from (printed + step * 0.049 * digit for step in range(-10, 11))
    else:
        yield from (math.copysign(abs(printed) + 0.02 + step * 0.09, printed) for step in range(11))


def _values(mean: float, spread: int | None, outwards: int) -> tuple[float, ...]:
    """Give runs with this mean and, by one outlier away from the other side, this deviation in per cent."""
    if spread is None:
        return (mean,) * RUNS
    deviation = abs(mean) * (spread + 0.5) / 100
    step = deviation / math.sqrt(RUNS - 1)
    return (*(mean - outwards * step,) * (RUNS - 1), mean + outwards * step * (RUNS - 1))
