"""What is noise in this stretch of a series: scale, memory, drift, and the shape of its residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisectbot.detect.heads import Floats, Heads, Ints

MAD = 0.6745  # median of |N(0, 1)|
CLIP = 3.0  # residuals beyond this many standard deviations count as this many
TINY = 1e-12  # relative rounding noise of measured numbers


@dataclass(frozen=True)
class Signal:
    """One value per head, its variance relative to that of an average head, and the scale of the noise."""

    value: Floats  # location of every head
    calm: Floats  # the same, lone outliers pulled to their neighbours
    variance: Floats  # relative, about 1
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
    variance = _relative_variance(heads, scale)
    calm = _calm(value, 3.0 * scale)
    return Signal(value, calm, variance, scale, resolution)


def _typical(jump: Floats) -> float:
    """Standard deviation from absolute values: the median's, or the trimmed mean square's where ties hide it."""
    if not len(jump):
        return 0.0
    ordered = np.sort(jump)
    median = float(ordered[len(ordered) // 2]) / MAD
    inner = ordered[: max(1, int(0.9 * len(ordered)))]
    return max(median, float(np.sqrt(np.mean(inner**2))))


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


def _relative_variance(heads: Heads, scale: float) -> Floats:
    """tau² + sigma²/n per head in units of ``scale``²: heads of more runs weigh more, if runs are what varies."""
    many = heads.count > 1
    if heads.count.min() == heads.count.max() or not many.any():
        return np.ones(len(heads))
    within = float(np.median(heads.spread[many]))
    runs = within / heads.count
    between = max(scale**2 - float(runs.mean()), 0.1 * scale**2)
    variance = between + runs
    return variance / float(np.median(variance))


def _calm(value: Floats, margin: float) -> Floats:
    """Pull a head that stands out from both neighbours to the nearer one: a lone glitch must not shape the split."""
    if len(value) < 2:
        return value
    before = np.concatenate([value[1:2], value[:-1]])
    after = np.concatenate([value[1:], value[-2:-1]])
    return np.clip(value, np.minimum(before, after) - margin, np.maximum(before, after) + margin)


@dataclass(frozen=True)
class Noise:
    """The noise round a segmentation, in units of Signal.scale."""

    memory: float  # lag-one correlation of residuals
    slope2: float  # variance of the local slope, per head²
    shape: Shape

    def inflation(self, heads: Floats) -> Floats:
        """Variance of a mean of so many neighbouring heads, relative to that of independent ones (AR(1))."""
        rho = self.memory
        if rho == 0:
            return np.ones_like(heads)
        ratio: Floats = (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**heads) / (heads * (1 - rho) ** 2)
        return ratio


@dataclass(frozen=True)
class Shape:
    """How improbable a mean of m residuals is: log moment generating function on a grid (Cramér)."""

    grid: Floats
    cumulant: Floats  # of the series' own residuals and a Gaussian prior, on ±grid: shape (2, grid)
    mass: float  # how many residuals it rests on

    def deviation(self, z: Floats, heads: Floats) -> Floats:
        """A z that says how often this series' own residuals would make a mean of ``heads`` so far off."""
        x = np.abs(z) / np.sqrt(heads)
        side = (z < 0).astype(int)
        unseen = GLITCH / self.mass
        # sup over t of t·x - log((1 - unseen)·E exp(t·r) + unseen·exp(t·x)): never below what glitches do
        exponent = np.minimum(self.grid * x[:, None], 600.0)
        known = self.cumulant[side]
        rate = exponent - np.logaddexp(known, np.log(unseen) + exponent)
        deviation: Floats = np.sqrt(2 * heads * np.maximum(rate.max(axis=1), 0.0))
        return deviation


GLITCH = 0.3  # expected heads off in no known way among PRIOR heads
PRIOR = 10.0  # heads of Gaussian noise that are assumed before any was seen
GRID = np.concatenate([np.linspace(0.25, 6.0, 24), np.geomspace(7.0, 60.0, 8)])


def shape(residuals: Floats) -> Shape:
    """The shape of standardised residuals."""
    bounded = np.clip(residuals, -12.0, 12.0)
    product = np.outer(GRID, bounded)
    gauss = PRIOR * np.exp(np.minimum(GRID**2 / 2, 600.0))
    mass = len(bounded) + PRIOR
    up = np.log((np.exp(np.minimum(product, 600.0)).sum(axis=1) + gauss) / mass)
    down = np.log((np.exp(np.minimum(-product, 600.0)).sum(axis=1) + gauss) / mass)
    return Shape(GRID, np.stack([up, down]), mass)


def memory(residuals: Floats, segment: Ints) -> float:
    """Lag-one correlation within segments, for the positive part only; bias of short stretches corrected."""
    n = len(residuals)
    same = segment[1:] == segment[:-1]
    pairs = int(same.sum())
    if pairs < 8:
        return 0.0
    bounded = np.clip(residuals, -CLIP, CLIP)
    total = float(np.sum(bounded**2)) / n
    if total <= 0:
        return 0.0
    rho = float(np.sum(bounded[1:] * bounded[:-1] * same)) / pairs / total
    segments = int(segment[-1]) + 1
    rho += segments / n * (1 + max(rho, 0.0))  # each fitted mean takes away about 1/length
    return float(np.clip(rho - 1.0 / np.sqrt(pairs), 0.0, 0.9))


def slope_variance(value: Floats, starts: Ints, chunk: int = 24) -> float:
    """Empirical Bayes variance of the local slope, from ordinary least squares on pieces of segments."""
    slopes, variances = [], []
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        pieces = max(1, round((stop - start) / chunk))
        for left in np.linspace(start, stop, pieces + 1).astype(int)[:-1].tolist():
            length = (stop - start) // pieces
            if length < 8:
                continue
            time = np.arange(length) - (length - 1) / 2
            norm = float(time @ time)
            slopes.append(float(time @ value[left : left + length]) / norm)
            variances.append(1 / norm)
    if not slopes:
        return 0.0
    found, expected = np.array(slopes), np.array(variances)
    weight = expected**-2
    excess = float(np.sum(weight * (found**2 - expected)) / np.sum(weight))
    doubt = float(np.sqrt(2 * np.sum((weight * expected) ** 2)) / np.sum(weight))
    return max(0.0, excess - doubt)
