"""What a model of the runs tells: how likely each hypothesis is, and what it expects to see next."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Belief(Protocol):
    """Rows are hypotheses; each expects a good level (side 0) and a bad level (side 1)."""

    @property
    def log_evidence(self) -> Floats:
        """Per row."""

    def two(self, one: Bools, both: Bools) -> Floats | None:
        """Log evidence of pairs of changes: boots with only the first, and with both, each (pairs, N)."""

    def keep_two(self, pairs: Ints) -> None:
        """Which of those pairs become rows after all others, the likeliest first."""

    def first_share(self) -> float:
        """Of the likeliest pair: the part of the whole step that the first of both makes."""

    def expected(self, runs: int, session: int | None = None) -> Floats:
        """Probability of each outcome of `runs` runs: (rows, 3 sides, outcomes); sides as in `Side`.

        In a fresh boot, or continuing observation number `session`.
        """

    def step(self) -> tuple[Floats, Floats]:
        """Bad minus good in KPI units per row: mean and standard deviation."""

    def small(self) -> Floats:
        """Probability per row that the step is negligible against the claim, or without one, less than one run's

        deviation, below which no search pays.
        """

    def clarity(self) -> float:
        """The step in deviations of one run."""
