"""The run matrix: every stat of every run of one build under one job, the type that comparison works on.

    RunMatrix.runs      how many runs (columns)
    RunMatrix.stats     full stat name -> one value per run, in run order; None where that run has no value
    RunMatrix.sources   where each run was read from (LKP's stats_source); empty when unknown

    MatrixSet.axes      the axes that all columns share, key -> value
    MatrixSet.matrices  commit (or tag) -> RunMatrix, in column order: the first is the base

A value is an int or a finite float exactly as read, in the stat's own unit: that LKP wrote `1` and not `1.0`
decides some of its rules, so numbers are never converted.

What is missing stays missing: None. LKP counts it as 0; ``zero_filled()`` gives that matrix and is the one
door to LKP's exact behaviour. A matrix.json written by LKP has lost the difference already, except in rows
shorter than the matrix is wide: their absent tail is None here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bisectbot.errors import UserError

Number: TypeAlias = int | float
Row: TypeAlias = tuple[Number | None, ...]

INCOMPLETE = "last_state.is_incomplete_run"
SOURCES = "stats_source"


@dataclass(frozen=True, slots=True)
class RunMatrix:
    """Stats by runs; see the module's docstring for the shape. Every row has exactly ``runs`` values."""

    runs: int
    stats: Mapping[str, Row]
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, row in self.stats.items():
            if len(row) != self.runs:
                raise ValueError(f"{name}: {len(row)} values for {self.runs} runs")
        if self.sources and len(self.sources) != self.runs:
            raise ValueError(f"{len(self.sources)} sources for {self.runs} runs")

    @classmethod
    def from_runs(cls, runs: Iterable[Mapping[str, Number]], sources: Sequence[str] = ()) -> RunMatrix:
        """One column per run from each run's {stat: value}; rows in order of first appearance."""
        columns = list(runs)
        names = dict.fromkeys(name for column in columns for name in column)
        stats = {name: tuple(column.get(name) for column in columns) for name in names}
        return cls(len(columns), stats, tuple(sources))

    @classmethod
    def from_json(cls, data: object, where: str = "matrix") -> RunMatrix:
        """Read the decoded JSON of a matrix.json, ours or LKP's; ``where`` names it in errors.

        The width is that of ``stats_source``, else the longest row's. Shorter rows and ``null`` give None.
        Rows whose last value is text carry no numbers for anybody and are left out. Raises UserError.
        """
        if not isinstance(data, dict):
            raise UserError(f"{where}: expected an object of stat: [values], found {type(data).__name__}")
        for name, row in data.items():
            if not isinstance(row, list):
                raise UserError(f"{where}: {name}: expected a list with one value per run, found {row!r:.60}")
        sources = tuple(str(source) for source in data.get(SOURCES, ()))
        rows = {name: row for name, row in data.items() if name != SOURCES and not _is_text(row)}
        runs = len(sources) or max(map(len, rows.values()), default=0)
        return cls(runs, {name: _row(row, runs, f"{where}: {name}") for name, row in rows.items()}, sources)

    def to_json(self) -> dict[str, list[Number | None] | list[str]]:
        """Give what ``from_json`` reads back to an equal matrix; ``null`` marks a missing value."""
        data: dict[str, list[Number | None] | list[str]] = {name: list(row) for name, row in self.stats.items()}
        if self.sources:
            data[SOURCES] = list(self.sources)
        return data

    @property
    def incomplete(self) -> tuple[int, ...]:
        """Columns of the runs that did not finish (``last_state.is_incomplete_run`` is 1)."""
        return tuple(run for run, value in enumerate(self.stats.get(INCOMPLETE, ())) if value == 1)

    def select(self, runs: Sequence[int]) -> RunMatrix:
        """Keep these columns, in this order; every row is kept, even one that has no value left."""
        stats = {name: tuple([row[run] for run in runs]) for name, row in self.stats.items()}
        return RunMatrix(len(runs), stats, tuple(self.sources[run] for run in runs) if self.sources else ())

    def zero_filled(self) -> RunMatrix:
        """As LKP sees it: every missing value counts as the integer 0."""
        stats = {
            name: tuple([0 if value is None else value for value in row]) if None in row else row
            for name, row in self.stats.items()
        }
        return RunMatrix(self.runs, stats, self.sources)


@dataclass(frozen=True, slots=True)
class MatrixSet:
    """What one comparison table compares: matrices of several commits under the same axes, base first."""

    matrices: Mapping[str, RunMatrix]
    axes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: object, where: str = "case") -> MatrixSet:
        """Read ``{"axes": {key: value}, "matrices": {commit: {stat: [values]}}}``. Raises UserError."""
        if not isinstance(data, dict) or not isinstance(data.get("matrices"), dict):
            raise UserError(f'{where}: expected {{"axes": …, "matrices": {{commit: {{stat: [values]}}}}}}')
        axes = data.get("axes", {})
        if not isinstance(axes, dict):
            raise UserError(f"{where}: axes: expected an object of key: value, found {axes!r:.60}")
        matrices = {
            commit: RunMatrix.from_json(stats, f"{where}: {commit}") for commit, stats in data["matrices"].items()
        }
        return cls(matrices, {key: str(value) for key, value in axes.items()})

    @classmethod
    def loads(cls, text: str | bytes, where: str = "case") -> MatrixSet:
        """Read the same from JSON text. Raises UserError, with line and column when it is no JSON."""
        return cls.from_json(decode(text, where), where)

    def to_json(self) -> dict[str, object]:
        """Give what ``from_json`` reads back to an equal set."""
        matrices = {commit: matrix.to_json() for commit, matrix in self.matrices.items()}
        return {"axes": dict(self.axes), "matrices": matrices}


def decode(text: str | bytes, where: str) -> object:
    """Decode JSON text. Raises UserError with ``where``, line and column."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from None


def _is_text(row: Sequence[object]) -> bool:
    return bool(row) and isinstance(row[-1], str)


def _row(values: Sequence[object], runs: int, where: str) -> Row:
    if len(values) > runs:
        raise UserError(f"{where}: {len(values)} values, but {SOURCES} lists {runs} runs")
    row = tuple([value if value is None else _number(value, where) for value in values])
    return row + (None,) * (runs - len(row))


def _number(value: object, where: str) -> Number:
    if type(value) is int or (type(value) is float and math.isfinite(value)):  # True is an int to isinstance
        return value
    raise UserError(f"{where}: expected a number or null, found {value!r:.60}")
