"""Two or three builds measured side by side: what a person is told who asked for it.

A boot is the unit where there are several: runs of one boot err together. The difference of two means has a 95 %
interval after Welch (t distribution, degrees of freedom after Welch and Satterthwaite).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
ALIKE = 2.0
"""% within which two means are called the same, unless the KPI's least effect is larger."""


@dataclass(frozen=True)
class Column:
    """A build: runs of it as (boot, value)."""

    title: str
    sha: str
    runs: tuple[tuple[str, float], ...]

    @property
    def mean(self) -> float:
        """Mean of the boots' means."""
        return float(np.mean(self.units))

    @property
    def units(self) -> list[float]:
        """What counts as independent: the boots' means, or the runs where fewer than two boots were made."""
        boots: dict[str, list[float]] = {}
        for boot, value in self.runs:
            boots.setdefault(boot, []).append(value)
        return [sum(v) / len(v) for v in boots.values()] if len(boots) > 1 else [value for _, value in self.runs]

    @property
    def half_width(self) -> float | None:
        """Half of the mean's 95 % interval; None with fewer than two units."""
        units = self.units
        if len(units) < 2:
            return None
        error = float(np.std(units, ddof=1)) / math.sqrt(len(units))
        return error * float(stats.t.ppf((1 + LEVEL) / 2, len(units) - 1))


class Outcome(enum.StrEnum):
    """What came out: of two builds the first three, of a patch the others and UNSURE."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"
    FIXED = "fixed"
    PARTLY = "partly"
    NO_EFFECT = "no effect"
    WORSE = "worse"


@dataclass(frozen=True)
class Difference:
    """``other`` minus ``base``, in % of base's mean, with its 95 % interval."""

    percent: float
    low: float
    high: float

    @property
    def real(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.percent:+.1f} % ({self.low:+.1f} to {self.high:+.1f})"


@dataclass(frozen=True)
class Judgement:
    """The outcome and the sentence that says it."""

    outcome: Outcome
    sentence: str


def difference(base: Column, other: Column) -> Difference:
    """How ``other`` differs from ``base``; an infinite interval where two units a side are missing."""
    a, b = np.array(base.units), np.array(other.units)
    scale = 100.0 / abs(base.mean) if base.mean else math.inf
    delta = float(b.mean() - a.mean())
    if len(a) < 2 or len(b) < 2 or not math.isfinite(scale):
        return Difference(delta * scale if math.isfinite(scale) else 0.0, -math.inf, math.inf)
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if va + vb == 0:
        return Difference(delta * scale, delta * scale, delta * scale)
    part = va / (va + vb)
    freedom = 1 / (part**2 / (len(a) - 1) + (1 - part) ** 2 / (len(b) - 1))
    half = math.sqrt(va + vb) * float(stats.t.ppf((1 + LEVEL) / 2, freedom))
    return Difference(delta * scale, (delta - half) * scale, (delta + half) * scale)


def compared(one: Column, other: Column, least: float | None = None) -> Judgement:
    """Whether two builds are the same, different, or not told apart yet. ``least``: % that matters."""
    change = difference(one, other)
    alike = max(ALIKE, least or 0.0)
    if change.real:
        return Judgement(Outcome.DIFFERENT, f"{other.title} is different: {change} of {one.title}")
    if change.low > -alike and change.high < alike:
        return Judgement(Outcome.SAME, f"the two are the same within {max(-change.low, change.high):.1f} %")
    return Judgement(Outcome.UNSURE, f"unsure: {change}; more runs would tell")


def patch_judged(columns: Sequence[Column]) -> Judgement:
    """Whether a patch brings the parent's level back; ``columns`` are parent, culprit, culprit with patch."""
    parent, culprit, patched = columns
    change, moved, rest = difference(parent, culprit), difference(culprit, patched), difference(parent, patched)
    if not change.real:
        return Judgement(
            Outcome.UNSURE, f"the change itself does not show here ({change}), so the patch cannot be judged"
        )
    share = (patched.mean - culprit.mean) / (parent.mean - culprit.mean)
    if not moved.real:
        return Judgement(Outcome.NO_EFFECT, f"the patch makes no difference that shows: {moved} of the culprit's level")
    if share < 0:
        return Judgement(Outcome.WORSE, f"the patch widens the change: {moved} of the culprit's level")
    missing = rest.low if change.percent < 0 else -rest.high  # at worst, of the parent's level; < 0: something stays
    if share > 1 or (not rest.real and -missing < abs(change.percent) / 2):
        return Judgement(Outcome.FIXED, f"the patch brings the parent's level back ({share:.0%} of the change)")
    if not rest.real:
        return Judgement(
            Outcome.PARTLY, f"the patch undoes about {share:.0%} of the change; more runs would tell better"
        )
    return Judgement(Outcome.PARTLY, f"the patch undoes {share:.0%} of the change; {rest} of the parent's level stays")
