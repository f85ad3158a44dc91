"""Does a machine still measure what it did? One pinned program, measured every day: an alarm when its level moves.

Pure. A cumulative sum on self-starting scores (Hawkins, "Self-starting CUSUM charts for location and scale", The
Statistician 36, 1987): each day is compared with all days before it, so no baseline has to be known in advance and the
rate of false alarms is the same from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

ALLOWANCE, LIMIT = 0.5, 5.0
"""In standard deviations of a day: shifts of one of them are sought; a false alarm comes every 465 days on average."""
CLIP = 3.0  # of a score: one wild day is no drift
PASS = 4.0
FEWEST = 4  # days before any may alarm
MOST = 1e100  # beyond it, squares are no numbers any more
FLOOR = 1e-6  # of the level: instruction counts have no noise at all


@dataclass(frozen=True)
class Drift:
    """The level moved. ``since`` is the first day of the new level as far as the sum tells, ``alarm`` the day on which
    it was certain, ``percent`` how far the days since are from those before."""

    since: int
    alarm: int
    percent: float


def drift(days: Sequence[Sequence[float]]) -> Drift | None:
    """The first drift in ``days``, each the runs of one boot of the pinned program, in KPI units, or None.

    z_n = Φ⁻¹(F_{t, n-2}(√((n-1)/n) · (x_n - mean) / sd)) with mean and sd of the days before; the sums
    max(0, S ± z - 0.5) alarm above 5. Days that are not finite numbers are left out.
    """
    values = _values(days)
    up = down = 0.0
    up_since = down_since = 0
    for n in range(2, len(values)):
        score = _score(np.asarray(values[:n]), values[n])
        up_since = up_since if up > 0 else n
        down_since = down_since if down > 0 else n
        up, down = max(0.0, up + score - ALLOWANCE), max(0.0, down - score - ALLOWANCE)
        if n + 1 >= FEWEST and max(up, down) > LIMIT:
            since = up_since if up > down else down_since
            before, after = float(np.mean(values[:since])), float(np.mean(values[since : n + 1]))
            return Drift(since, n, 100.0 * (after - before) / abs(before) if before else math.nan)
    return None


def passes(before: Sequence[Sequence[float]], day: Sequence[float]) -> bool:
    """Whether a day's runs are what the days ``before`` let expect: within four standard deviations of their median.

    From five days on, spread is the median absolute deviation (times 1.4826): the trouble itself, which began before
    anybody noticed, is among those days and must not be what later ones are held against.
    """
    values, today = np.asarray(_values(before)), _values([day])
    if not today or len(values) < 2:
        return bool(today)
    centre = float(np.median(values))
    robust = 1.4826 * float(np.median(np.abs(values - centre)))
    spread = max(robust if len(values) >= 5 else float(np.std(values, ddof=1)), FLOOR * abs(centre), 1e-300)
    return abs(today[0] - centre) < PASS * spread * math.sqrt(1.0 + 1.0 / len(values))


def _values(days: Sequence[Sequence[float]]) -> list[float]:
    """The median of each day that has one."""
    return [float(np.median(runs)) for runs in days if len(runs) and all(abs(value) < MOST for value in runs)]


def _score(before: np.ndarray[tuple[int], np.dtype[np.float64]], value: float) -> float:
    """How far a new value is from those before, as a standard normal number, clipped."""
    n = len(before) + 1
    mean = float(np.mean(before))
    spread = max(float(np.std(before, ddof=1)), FLOOR * abs(mean), 1e-300)
    t = math.sqrt((n - 1) / n) * (value - mean) / spread
    tail = float(special.stdtr(n - 2, -abs(t)))
    return math.copysign(min(CLIP, float(-special.ndtri(tail))), t)
