"""What a step is, and how it is told."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from bisectbot.jobs.kpi import Better, Kpi


class Origin(NamedTuple):
    """Where a run came from: a host's name and a boot of it. A bare ``(host, boot)`` tuple does as well."""

    host: str
    boot: str | int


class Direction(enum.StrEnum):
    """What a step means to people: a KPI's direction decides, stats without one are never judged."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, effect: float, kpi: Kpi | None) -> Direction:
        """The direction of a change by ``effect`` (KPI units, signed)."""
        if kpi is None or kpi.better is Better.NONE or effect == 0:
            return cls.UNKNOWN
        return cls.IMPROVEMENT if (effect > 0) == (kpi.better is Better.MORE) else cls.REGRESSION


@dataclass(frozen=True)
class Step:
    """A lasting change of level between two neighbouring heads.

    All levels and noises are in KPI units. ``noise_*`` is the standard deviation between heads (outliers
    clipped), so of one head's result, not of the level.
    """

    index: int  # the first head of the new level, the most probable one
    before: float
    after: float
    effect: float  # after - before
    effect_interval: tuple[float, float]  # 95 % of the effect
    percent: float | None  # effect in percent of |before|; None where before is zero
    probability: float  # that a lasting change lies within the interval
    interval: tuple[int, int]  # first and last head that may be the first of the new level (95 %), both included
    noise_before: float
    noise_after: float
    direction: Direction

    @property
    def culprit_range(self) -> tuple[int, int]:
        """The last head that is surely old and the first that is surely new: where a bisection begins."""
        return self.interval[0] - 1, self.interval[1]
