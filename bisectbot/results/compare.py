"""From run matrices to the comparison table: which stats changed, and the averages that are shown.

A stat is chosen by the medians and ranges of its runs and shown by their means. ``exact`` reproduces LKP to the
byte: a missing value counts as 0, a base of zero as 1e-100, reproduction divides by the runs of the column before.
Without it these three are mended and nothing else differs (README.md beside this file lists the rows).
"""

from __future__ import annotations

import enum
import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from bisectbot.results import stat_names
from bisectbot.results.matrix import MatrixSet, Number, RunMatrix
from bisectbot.results.table import Cell, Column, FailCell, FailRow, Row, Table
from bisectbot.results.thresholds import is_small

FEWEST_RUNS = 3  # on one side at least; failures are told from one run on
LEAST_SPREAD = 2  # per cent; a deviation up to this is left blank

Values: TypeAlias = list[Number]

_LOGS = frozenset({"dmesg", "kmsg", "last_state", "stderr"})
_LOGS_OF_INCOMPLETE = _LOGS - {"kmsg"}  # whose ids count in runs that did not end, too
_FAILING = (".fail", ".error", ".warn")
_INVISIBLE = 1e-100  # what LKP divides by in place of zero


class Order(enum.StrEnum):
    """Benchmarks' rows first (LKP until May 2023 and from February 2026), or all groups by their size."""

    TESTS = "tests"
    GROUPS = "groups"


def compare(
    matrices: MatrixSet,
    *,
    exact: bool = False,
    order: Order = Order.TESTS,
    texts: Mapping[str, str] | None = None,
    always: Iterable[str] = (),
) -> Table:
    """Compare every column of a set with its first: the table of all stats that changed in any of them.

    ``texts`` says what the list above the table shows for a column, in place of its key. ``always`` names stats that
    are shown if the base has them, however few their runs: those that somebody proved to have changed.
    """
    shown = texts or {}
    columns = [_Column(matrix, exact) for matrix in matrices.matrices.values()]
    host = matrices.axes.get("tbox_group", "")
    changed = list(dict.fromkeys(name for other in columns[1:] for name in _changed(columns[0], other, host)))
    changed += [name for name in always if columns[0].has(name) and name not in changed]
    groups = Counter(map(stat_names.program, changed))

    def key(row: Row | FailRow) -> tuple[int, str, list[float], str]:
        return _sort_key(row, groups, order)

    failures = [name for name in changed if stat_names.is_failure(name)]
    averages = [name for name in changed if not stat_names.is_failure(name)]
    return Table(
        columns=tuple(Column(key, shown.get(key, key)) for key in matrices.matrices),
        axes=tuple(sorted(matrices.axes.items(), key=lambda axis: f"{axis[0]}={axis[1]}")),
        fails=tuple(sorted((_fail_row(name, columns, exact) for name in failures), key=key)),
        rows=tuple(sorted((_row(name, columns, exact) for name in averages), key=key)),
    )


class _Column:
    """One column's runs: all of them for failures, the complete ones for everything else."""

    def __init__(self, matrix: RunMatrix, exact: bool) -> None:
        incomplete = set(matrix.incomplete)
        self.all = matrix
        self.complete = matrix.select([r for r in range(matrix.runs) if r not in incomplete]) if incomplete else matrix
        self.programs = {stat_names.program(name) for name in matrix.stats}
        self.exact = exact

    def has(self, name: str) -> bool:
        return name in self.all.stats

    def values(self, name: str, runs: RunMatrix | None = None) -> Values:
        """Give a stat's values in the complete runs, or in those given, without what is missing."""
        matrix = runs or self.complete
        row = matrix.stats.get(name) or (None,) * matrix.runs
        if None not in row:
            return list(row)  # type: ignore[arg-type]  # just checked
        if self.exact or stat_names.is_failure(name):
            return [0 if value is None else value for value in row]
        if name.startswith("perf-profile."):
            row = tuple([0 if value is None and run in self._profiled else value for run, value in enumerate(row)])
        return [value for value in row if value is not None]

    @functools.cached_property
    def _profiled(self) -> set[int]:
        """Find the complete runs with a profile: in those, a function that is missing was below 0.05 %."""
        profiles = [values for name, values in self.complete.stats.items() if name.startswith("perf-profile.")]
        return {run for values in profiles for run, value in enumerate(values) if value is not None}


def _changed(base: _Column, other: _Column, host: str) -> Iterator[str]:
    """Name the stats in which two columns differ, in no particular order; some may come twice."""
    names = [name for name in dict.fromkeys([*other.all.stats, *base.all.stats]) if not stat_names.is_denied(name)]
    if base.all is not base.complete or other.all is not other.complete:
        for name in names:
            if stat_names.program(name) in _LOGS_OF_INCOMPLETE and _fails_differently(
                name, base, other, base.all, other.all
            ):
                yield name
    enough = max(base.complete.runs, other.complete.runs) >= FEWEST_RUNS and not host.startswith("vh-")
    for name in names:
        if stat_names.is_failure(name):
            if _fails_differently(name, base, other, base.complete, other.complete):
                yield name
        elif enough and _comparable(name, base, host) and _differs(name, base.values(name), other.values(name)):
            yield name


def _fails_differently(name: str, base: _Column, other: _Column, was: RunMatrix, now: RunMatrix) -> bool:
    if stat_names.program(name) not in _LOGS and not _has_sibling(name, base):
        return False
    return max(base.values(name, was), default=0) != max(other.values(name, now), default=0)


def _has_sibling(name: str, base: _Column) -> bool:
    """Say whether the base ran the test too: a failure needs its pass there, a pass one of its failures."""
    stem, dot, result = name.rpartition(".")
    if dot + result in _FAILING:
        return base.has(f"{stem}.pass")
    return result != "pass" or any(base.has(stem + failing) for failing in _FAILING)


def _comparable(name: str, base: _Column, host: str) -> bool:
    owner = stat_names.program(name)
    if host.startswith("vm-") and owner in stat_names.MEMORY:
        return False
    # A profile leaves out what is below its threshold: what the base lacks was next to nothing there.
    return base.has(name) or (owner in {"perf-profile", "lock_stat"} and owner in base.programs)


def _differs(name: str, was: Values, now: Values) -> bool:
    """Say whether each side's median lies outside the other's range, and the change is worth telling."""
    was, now = _trimmed(was, len(was)), _trimmed(now, len(was))
    if not (was and now):
        return False
    was_middle, now_middle = was[len(was) // 2], now[len(now) // 2]
    fell = was[0] > now_middle and was_middle > now[-1]
    rose = now[0] > was_middle and now_middle > was[-1]
    if not (fell or rose):
        return False
    low, high = (now_middle, was_middle) if fell else (was_middle, now_middle)
    return not is_small(name, low, high, max(was[-1], now[-1]))


def _trimmed(values: Values, base_runs: int) -> Values:
    """Sort; drop leading values of -1 (not measured), and from 32 runs on a few outliers at both ends."""
    ordered = sorted(values)
    if ordered and ordered[0] == -1:
        ordered = ordered[ordered.count(-1) :]
    trim = min(len(ordered) >> 5, 1 if base_runs <= FEWEST_RUNS else 3)
    return ordered[trim : len(ordered) - trim] if trim else ordered


def _row(name: str, columns: Sequence[_Column], exact: bool) -> Row:
    points = stat_names.is_points(name)
    values = [column.values(name) for column in columns]
    base = _mean(values[0])
    cells = []
    for index, runs in enumerate(values):
        mean = _mean(runs)
        change = None if index == 0 or mean is None or base is None else _change(base, mean, points, exact)
        cells.append(Cell(mean, _spread(runs, mean), change))
    return Row(name, tuple(cells), points)


def _change(base: float, mean: float, points: bool, exact: bool) -> float | None:
    if points:
        return mean - base
    if base != 0:
        return 100 * (mean - base) / base
    if exact:
        return 100 * (mean - _INVISIBLE) / _INVISIBLE
    return None if mean else 0.0


def _mean(values: Values) -> float | None:
    return math.fsum(values) / len(values) if values else None  # fsum: the same digits in every order and Python


def _spread(values: Values, mean: float | None) -> int | None:
    """Give the population's standard deviation in per cent of the mean, cut to an integer; None if not shown."""
    if mean is None or len(values) < 2:
        return None
    differences = [value - mean for value in values]
    deviation = math.sqrt(math.fsum([difference * difference for difference in differences]) / len(values))
    percent = 100 * deviation / mean if mean else deviation
    return int(percent) if percent > LEAST_SPREAD else None


def _fail_row(name: str, columns: Sequence[_Column], exact: bool) -> FailRow:
    fails = [sum(column.values(name, column.all)) for column in columns]
    runs = [column.all.runs for column in columns]
    base = fails[0] / runs[0] if runs[0] else 0.0
    cells = [FailCell(fails[0], runs[0])]
    for index in range(1, len(columns)):
        divisor = runs[index - 1] if exact else runs[index]
        rate = fails[index] / divisor if divisor else 0.0
        cells.append(FailCell(fails[index], runs[index], 100 * (rate - base)))
    return FailRow(name, tuple(cells))


def _sort_key(row: Row | FailRow, groups: Mapping[str, int], order: Order) -> tuple[int, str, list[float], str]:
    """Sort by size of the group, then by name; within one kind of profile, by change."""
    group = groups[stat_names.program(row.name)] - (10_000 if isinstance(row, FailRow) else 0)
    if order is Order.TESTS and stat_names.is_benchmark(row.name):
        group = 0
    profile = row.name.startswith("perf-profile.")
    name = ".".join(row.name.split(".", 2)[:2]) if profile else row.name
    return group, name, _changes(row.cells), row.name


def _changes(cells: Iterable[Cell | FailCell]) -> list[float]:
    return [-math.inf if cell.change is None else cell.change for cell in cells]
