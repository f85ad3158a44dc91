"""What is noise in this stretch of a series: scale, memory, drift, and the shape of its residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisectbot.detect.heads import Floats, Heads, Ints

MAD = 0.6745  # median of |N(0, 1)|
CLIP = 3.0  # residuals beyond this many standard deviations count as this many
TRUST = 4.0  # degrees of freedom that the usual variance of runs counts for beside a head's own
ODD = 3.0  # a head whose runs vary so many times as much as usual counts less
WORTH = 1e4  # no head's runs count as more disturbed than that: sums of weights must not lose the head
TINY = 1e-12  # relative rounding noise of measured numbers


@dataclass(frozen=True)
class Signal:
    """One value per head, its variance relative to that of an average head, and the scale of the noise."""

    value: Floats  # location of every head
    calm: Floats  # the same, lone outliers pulled to their neighbours
    variance: Floats  # relative, about 1
    sound: Floats  # how far a head's runs agree as usual: 1, towards 0 where the machine was disturbed
    scale: float  # standard deviation between neighbouring heads of variance 1, from their differences
    resolution: float  # no scale is trusted below

    def __len__(self) -> int:
        return len(self.value)


def signal(heads: Heads) -> Signal:
    """Choose the estimator of location whose heads agree best with their neighbours, and weigh the heads."""
    column = 0
    if len(heads) > 2 and heads.count.max() > 2:
        jumps = np.sort(np.abs(np.diff(heads.places, axis=0)), axis=0)
        column = int(np.argmin(jumps[: max(1, int(0.95 * len(jumps)))].sum(axis=0)))
    value = heads.places[:, column]
    resolution = _resolution(value)
    jump = np.abs(np.diff(value))
    scale = max(_typical(jump) / np.sqrt(2), resolution)
    variance, sound = _relative_variance(heads, scale, heads.width if column else heads.spread)
    calm = _calm(value, 3.0 * scale)
    return Signal(value, calm, variance, sound, scale, resolution)


def _typical(jump: Floats) -> float:
    """Standard deviation from absolute values: the median's, or the trimmed mean square's where ties hide it."""
    if not len(jump):
        return 0.0
    ordered = np.sort(jump)
    median = float(ordered[len(ordered) // 2]) / MAD
    inner = ordered[: max(1, int(0.75 * len(ordered)))]
    return max(median, float(np.sqrt(np.mean(inner**2))) / 0.604)


def _resolution(value: Floats) -> float:
    """The noise that rounding alone makes: a third of the smallest difference of two values of whole counters."""
    floor = TINY * float(np.max(np.abs(value), initial=0.0)) + 1e-300
    gaps = np.diff(np.unique(value))
    gaps = gaps[gaps > 1e3 * floor]
    if not len(gaps):
        return floor
    step = float(gaps.min())
    whole = np.abs(gaps / step - np.rint(gaps / step)).max() < 1e-6
    return max(floor, step * 0.3 if whole else 0.0)


def _relative_variance(heads: Heads, scale: float, spread: Floats) -> tuple[Floats, Floats]:
    """tau² + sigma²/n per head: heads of more runs weigh more, if runs are what varies.

    Also how sound each head is: 1, less where its runs' ``spread`` is far more than usual, for the machine was
    disturbed.
    """
    many = heads.count > 1
    if not many.any():
        return np.ones(len(heads)), np.ones(len(heads))
    within = (float(np.sqrt(np.median(heads.spread[many]))) / scale) ** 2
    runs = within / heads.count
    between = max(1.0 - float(runs.mean()), 0.1)
    typical, freedom = float(np.median(spread[many])), heads.count - 1
    odd = (TRUST + freedom * spread / typical) / (TRUST + freedom) if typical > 0 else np.ones(len(heads))
    variance = between + runs * np.clip(odd / ODD, 1.0, WORTH)
    return variance / float(np.median(variance)), (between + runs) / variance


def _calm(value: Floats, margin: float) -> Floats:
    """Pull a head that stands out from both neighbours to the nearer one: a lone glitch must not shape the split."""
    if len(value) < 2:
        return value
    before = np.concatenate([value[1:2], value[:-1]])
    after = np.concatenate([value[1:], value[-2:-1]])
    return np.clip(value, np.minimum(before, after) - margin, np.maximum(before, after) + margin)


BOUNDS = np.array([1.5, 2.5, 4.5])  # a head counts as at most so many standard deviations
BINS = np.linspace(-4.5, 4.5, 73)
GLITCH = 0.25  # expected heads off in no known way among PRIOR heads
PRIOR = 10.0  # heads of Gaussian noise that are assumed before any was seen
GRID = np.concatenate([np.linspace(0.2, 4.0, 20), np.geomspace(4.5, 20.0, 8)])
_TILT = np.exp(GRID[None, :, None] * np.clip(BINS[None, None, :], -BOUNDS[:, None, None], BOUNDS[:, None, None]))
_NORMAL = np.exp(-(BINS**2) / 2) / np.exp(-(BINS**2) / 2).sum()


@dataclass(frozen=True)
class Shape:
    """How improbable a mean of m bounded residuals is, from the series' own residuals (Cramér's theorem).

    ``cumulant[side, bound]`` is log E exp(t·r) on GRID, of residuals (side 0) or their negatives (side 1).
    """

    cumulant: Floats
    mass: float  # how many residuals it rests on
    ordered: tuple[Floats, Floats]  # the residuals and their negatives, ascending

    def deviation(self, mean: Floats, heads: Floats, side: Ints) -> Floats:
        """A z that says how often this series' own residuals would make such a mean of ``heads`` of them.

        ``mean`` has a column per bound; the best one counts.
        """
        unseen = GLITCH / self.mass
        # sup over t of t·x - log((1 - unseen)·E exp(t·r) + unseen·exp(t·x)): never more than glitches would allow
        exponent = GRID * mean[:, :, None]
        rate = exponent - np.logaddexp(self.cumulant[side], np.log(unseen) + exponent)
        deviation: Floats = np.sqrt(2 * heads * np.maximum(rate.max(axis=2), 0.0)).max(axis=1)
        return deviation

    def rarity(self, distance: Floats, heads: Floats, side: Ints) -> Floats:
        """A z that says how rarely this many heads are all out as far, however far that is beyond the bounds."""
        beyond = [
            len(self.ordered[s]) - np.searchsorted(self.ordered[s], d) for s, d in zip(side, distance, strict=True)
        ]
        rarity: Floats = np.sqrt(2 * heads * -np.log((np.array(beyond) + GLITCH) / (self.mass + GLITCH)))
        return rarity


def shape(residuals: Floats) -> Shape:
    """The shape of standardised residuals."""
    place = np.clip(np.rint((residuals + 4.5) * 8), 0, len(BINS) - 1).astype(np.int64)
    count = np.bincount(place, minlength=len(BINS)) + PRIOR * _NORMAL
    mass = len(residuals) + PRIOR
    both = np.stack([count, count[::-1]])
    return Shape(np.log(np.einsum("bgk,sk->sbg", _TILT, both) / mass), mass, (np.sort(residuals), np.sort(-residuals)))
