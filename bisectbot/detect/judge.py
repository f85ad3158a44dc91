"""Which boundaries are steps: each must stand out from what this series' own noise does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisectbot.detect.heads import Floats, Ints
from bisectbot.detect.noise import BOUNDS, Shape, Signal, shape

Flags = NDArray[np.bool_]

REACH = np.array([3.0, 6.0, 12.0, 25.0, 50.0, 100.0])  # heads to either side that are compared
STRIDE = REACH.astype(np.int64)
THRESHOLD = 4.3  # evidence (in standard deviations) that makes a step
NEW = 25  # heads: so short a level at the end of a series is looked at again with every head that comes
LOOKS = 0.1  # evidence that it must show beyond the others, for each look is another chance
LOCAL = 40  # heads to either side that tell the local noise
BEND = 2.0  # Huber's bound: residuals beyond so many standard deviations count as so many
SHORT = 12  # heads on one side below which the shape of the noise matters
FAR = 0.6  # of a segment's distance: heads that far out are taken for its like
FIRST = 3  # heads that a series must begin with to have had a level
SEVERAL = 8  # heads from which on distance counts: fewer may be outliers together
TRUST = 8.0  # heads that the noise of the whole stretch counts for beside the local one


SLOPE = 2.5  # a slope's square must exceed so many of its variances before any of it is believed
CLEAR = 10.0  # of its own standard deviations: so far off even a disturbed head tells
AGREE = 3.0  # standard deviations from the median of a few heads that make one of them doubtful
ALLOW = 1.5  # standard deviations by which a longer reach may show more than a shorter one
LIKE = 0.05  # of the step: heads that differ by less are alike, however quiet the other side is
# independent windows that every reach is given beforehand, and their inflation beyond 1: few heads tell little
DOUBT = np.array([10.0, 8.0, 5.0, 2.0, 1.0, 1.0])
USUAL = np.array([0.0, 0.1, 0.2, 0.4, 0.5, 0.6])  # a fifth of what real measurements of one and the same thing show
STEADY = 4e4  # the same for the growth of noise with reach: twice what one window of 12 heads tells
POWER = 1.5  # of the inflation: noise that is not white is not normal either, so more than its scale is asked


@dataclass(frozen=True)
class Fit:
    """A segmentation with its levels. ``bounds`` has 0 and n at its ends; levels have one entry per segment."""

    bounds: Ints
    level: Floats  # robust mean, in KPI units
    segment: Ints  # of every head
    residual: Floats  # standardised by the head's variance and the signal's scale, unbounded
    core: Floats  # standard deviation of the bulk of residuals per segment, shrunken
    pseudo: Floats  # bounded residuals whose mean is the level's error
    local: Floats  # their standard deviation per segment, shrunken


@dataclass(frozen=True)
class Noise:
    """The noise round a segmentation."""

    pair: float  # inflation of the variance of the mean of two neighbours
    inflation: Floats  # of the variance of differences, per REACH: memory, waves, drift
    shape: Shape

    def alone(self, heads: Floats) -> Floats:
        """Inflation of the variance of the mean of so many neighbours."""
        inflation: Floats = np.interp(
            heads, np.concatenate([[2.0], REACH]), np.concatenate([[self.pair], self.inflation])
        )
        return inflation

    def between(self, left: Floats, right: Floats) -> Floats:
        """Inflation of the variance of a difference: what moves between the two centres, or the short side's memory."""
        apart = (left + right) / 2
        moved = (np.interp(apart, REACH, self.inflation) - 1) * 2 / apart
        inflation: Floats = np.maximum(self.alone(np.minimum(left, right)), 1 + moved / (1 / left + 1 / right))
        return inflation


@dataclass(frozen=True)
class Verdict:
    """What is known of every inner boundary of a segmentation."""

    evidence: Floats  # in standard deviations: the boundary passes every test at this level
    z: Floats  # the plain difference of both sides
    short: Ints  # -1 or 1: on which side its shorter segment ends
    before: Floats  # levels at the boundary, of the heads in the reach that showed it best, in KPI units
    after: Floats
    doubt: Floats  # standard deviation of their difference


@dataclass(frozen=True)
class Judged:
    """The boundaries that stay."""

    fit: Fit
    verdict: Verdict


def fit(signal: Signal, bounds: Ints) -> Fit:
    """Levels by Huber's estimator, from the calmed means."""
    start, length = bounds[:-1], np.diff(bounds)
    segment = np.repeat(np.arange(len(length)), length)
    weight = 1 / signal.variance
    mass = np.add.reduceat(weight, start)
    origin = float(np.median(signal.value))
    value = (signal.value - origin) / signal.scale
    deviation = np.sqrt(signal.variance)
    level = _medians(value, segment, start, length)
    core = np.ones(len(start))
    for _ in range(3):
        residual = (value - level[segment]) / deviation
        core = _core(residual, start, length)
        limit = BEND * core[segment]
        bounded = _bounded(residual, limit)
        gain = max(float(np.mean(np.abs(residual) < limit)), 0.3)
        pseudo = bounded / gain
        level = level + np.add.reduceat(pseudo * deviation * weight, start) / mass
    residual = (value - level[segment]) / deviation
    limit = BEND * core[segment]
    pseudo = signal.sound * _bounded(residual, limit) / gain
    return Fit(bounds, origin + level * signal.scale, segment, residual, core, pseudo, _local(pseudo, segment, length))


def _medians(value: Floats, segment: Ints, start: Ints, length: Ints) -> Floats:
    ordered = value[np.lexsort((value, segment))]
    medians: Floats = (ordered[start + (length - 1) // 2] + ordered[start + length // 2]) / 2
    return medians


def _first_medians(rows: Floats, length: Ints) -> Floats:
    """The median of the first ``length`` values of every row."""
    ordered = np.sort(np.where(np.arange(rows.shape[1]) < length[:, None], rows, np.inf), axis=1)
    at = np.arange(len(rows))
    medians: Floats = (ordered[at, (length - 1) // 2] + ordered[at, length // 2]) / 2
    return medians


def _bounded(residual: Floats, limit: Floats) -> Floats:
    """Hampel's psi: in full up to the limit, bounded by it up to twice as far, nothing beyond four times."""
    bounded: Floats = np.clip(residual, -limit, limit) * np.clip(2 - np.abs(residual) / (2 * limit), 0.0, 1.0)
    return bounded


def _local(pseudo: Floats, segment: Ints, length: Ints) -> Floats:
    """Standard deviation per segment from differences of neighbours: drift and waves leave it alone.

    Drawn towards that of all: levels differ in noise, but few heads cannot tell.
    """
    square = np.diff(pseudo) ** 2 / 2
    inside = segment[1:] == segment[:-1]
    sums = np.bincount(segment[1:][inside], square[inside], len(length))
    whole = float(sums.sum()) / max(int(inside.sum()), 1)
    local: Floats = np.sqrt((TRUST * whole + sums) / (TRUST + np.maximum(length - 1, 0)) + 1e-12)
    return local


def _core(residual: Floats, start: Ints, length: Ints) -> Floats:
    """Standard deviation of the bulk: a quantile of all, scaled by what each segment's bounded residuals say."""
    n, k = len(residual), len(start)
    size = np.abs(residual)
    middle = int(0.683 * (n - 1))
    whole = float(np.partition(size, middle)[middle]) * np.sqrt(n / max(n - k, 0.3 * n))
    whole = max(whole, 0.5)
    # far outliers say nothing of the bulk
    bounded = np.where(size > 2 * BEND * whole, 1.0, np.minimum(size / whole, BEND) ** 2 / 0.92)
    core: Floats = whole * _shrunken(bounded, start, length)
    return core


def _shrunken(square: Floats, start: Ints, length: Ints) -> Floats:
    """Root mean square per segment, drawn towards that of all: levels differ in noise, but few heads cannot tell."""
    sums = np.add.reduceat(square, start)
    n = len(square)
    whole = float(sums.sum()) / max(n - len(start), 0.3 * n)
    shrunken: Floats = np.sqrt((TRUST * whole + sums) / (TRUST + np.maximum(length - 1, 0)) + 1e-12)
    return shrunken


def judge(signal: Signal, bounds: Ints, fixed: Ints, threshold: float = THRESHOLD) -> Judged:
    """Take away the weakest boundaries until every one that is left is a step by itself.

    Its evidence is at least ``threshold``, a little more at the newest heads.
    """
    bounds = np.concatenate([[0], bounds, [len(signal)]]).astype(np.int64)
    now = fit(signal, bounds)
    noise = measure(signal, now)
    while True:
        verdict = weigh(signal, now, noise)
        keep = np.isin(now.bounds[1:-1], fixed)
        least = np.full(len(keep), threshold)
        least[-1:] += LOOKS * _young(now.bounds)
        failing = (verdict.evidence < least) & ~keep
        if not failing.any():
            return Judged(now, verdict)
        gone = _weakest(failing, verdict, keep)
        inner = now.bounds[1:-1][~gone]
        now = fit(signal, np.concatenate([[0], inner, [len(signal)]]))
        noise = measure(signal, now)


def _young(bounds: Ints) -> bool:
    """Whether the newest level is short, though more than chance is asked of, and no longer than the one before."""
    last = np.diff(bounds)[-2:]
    return bool(FIRST < last[-1] <= min(NEW, last[0]))


def _weakest(failing: Flags, verdict: Verdict, keep: Flags) -> Flags:
    """Failing boundaries weaker than their neighbours; one that fails beside a short segment may give way to the
    segment's other, weaker boundary."""
    k = len(keep)
    other = np.arange(k) + verdict.short
    edge = failing & ((other < 0) | (other >= k))  # the few heads at an end of the series have no other boundary
    rank = np.where(keep, np.inf, np.where(edge, verdict.evidence, verdict.z))
    named = np.zeros(k, bool)
    for at in np.flatnonzero(failing).tolist():
        gives = int(other[at])
        named[gives if 0 <= gives < k and rank[gives] < rank[at] else at] = True
    worth = np.where(named, rank, np.inf)
    padded = np.concatenate([[np.inf], worth, [np.inf]])
    return named & (worth <= padded[:-2]) & (worth < padded[2:]) if k > 1 else named


def measure(signal: Signal, now: Fit) -> Noise:
    """What differences a series shows where no boundary is: its own noise at every reach.

    Reaches too long to be seen between boundaries take over what shorter ones show, as a random walk would grow.
    """
    places = np.arange(1, len(signal), 2)
    segment = now.segment[places]
    spread = now.local[segment]
    seen = _compare(
        _moments(signal, now),
        places,
        now.bounds[segment],
        now.bounds[segment + 1],
        jump=np.zeros(len(places)),
        noises=(spread, spread),
    )
    inside = seen.heads.min(axis=0) >= np.maximum(REACH / 2, 2)
    square = np.minimum(seen.t**2, 9.0) * inside
    independent = inside.sum(axis=0) / REACH  # windows of 2 REACH heads, every second place
    excess = square.sum(axis=0) / np.maximum(inside.sum(axis=0), 1) - 1
    information = REACH**4 * independent
    walk = float((excess * REACH**2 * independent).sum()) / (float(information.sum()) + STEADY)
    drawn = (DOUBT * USUAL + independent * excess) / (DOUBT + independent)
    growth = 1 + np.maximum(drawn, max(walk, 0.0) * REACH**2)
    inflation = np.maximum.accumulate(np.maximum(growth, 1.0))
    return Noise(_pair(now), inflation, shape(now.residual / now.core[now.segment]))


def _pair(now: Fit) -> float:
    """1 + the correlation of neighbours, as far as it is positive."""
    inside = now.segment[1:] == now.segment[:-1]
    product = float((now.pseudo[1:] * now.pseudo[:-1])[inside].sum())
    square = float((now.pseudo**2).sum()) * max(int(inside.sum()), 1) / len(now.pseudo)
    return 1 + max(product / max(square, 1e-12), 0.0) * len(now.pseudo) / (len(now.pseudo) + 10)


def weigh(signal: Signal, now: Fit, noise: Noise) -> Verdict:
    """The evidence of every inner boundary."""
    at = now.bounds[1:-1]
    jump = np.diff(now.level) / signal.scale
    seen = _compare(
        _moments(signal, now), at, now.bounds[:-2], now.bounds[2:], jump=jump, noises=(now.local[:-1], now.local[1:])
    )
    inflation = np.sqrt(noise.between(seen.heads[0], seen.heads[1]))
    every = _abrupt(seen, inflation) / inflation**POWER
    rows, best = np.arange(len(at)), every.argmax(axis=1)
    t = every[rows, best]
    freedom = TRUST / 2 + np.minimum(now.bounds[2:] - now.bounds[:-2] - 2, 2 * LOCAL)
    z = np.sqrt(freedom * np.log1p(t**2 / freedom))
    sides = np.diff(now.bounds)
    return Verdict(
        evidence=np.minimum(z, np.minimum(_alone(signal, now, noise, -1), _alone(signal, now, noise, 1))),
        z=z,
        short=np.where(sides[:-1] < sides[1:], -1, 1),
        before=now.level[:-1] + signal.scale * seen.before[rows, best],
        after=now.level[:-1] + signal.scale * seen.after[rows, best],
        doubt=signal.scale * (seen.doubt * inflation)[rows, best],
    )


def _abrupt(seen: Comparison, inflation: Floats) -> Floats:
    """|t| of every reach, of no more than the shorter reaches allow: a step is all there at once, a drift is not."""
    jump, margin = seen.after - seen.before, ALLOW * seen.doubt * inflation
    up = np.minimum(jump, np.minimum.accumulate(jump + margin, axis=1))
    down = np.minimum(-jump, np.minimum.accumulate(margin - jump, axis=1))
    t: Floats = np.nan_to_num(np.maximum(np.maximum(up, down), 0.0) / seen.doubt)
    return t


def _moments(signal: Signal, now: Fit) -> list[Floats]:
    weight = 1 / signal.variance
    pseudo = now.pseudo * np.sqrt(signal.variance)
    return _sums(weight, pseudo * weight, pseudo, np.arange(len(signal)) * pseudo)


@dataclass(frozen=True)
class Comparison:
    """Heads left and right of some places compared, a column per REACH; levels in units of scale, from the left fit."""

    t: Floats
    heads: Floats  # shape (2, places, reaches): how many on either side
    before: Floats
    after: Floats
    doubt: Floats


def _compare(
    sums: list[Floats], at: Ints, low: Ints, high: Ints, *, jump: Floats, noises: tuple[Floats, Floats]
) -> Comparison:
    """The heads right of ``at`` against those left of it, for every reach, a believed slope taken out."""
    mass, total, plain, moment = sums
    noise_left, noise_right = noises
    middle = at[:, None]
    left, right = np.maximum(middle - STRIDE, low[:, None]), np.minimum(middle + STRIDE, high[:, None])
    heads = np.stack([middle - left, right - middle]).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mass_left, mass_right = mass[middle] - mass[left], mass[right] - mass[middle]
        slope, doubt = _slope(plain, moment, left, middle, right)
        doubt = doubt * ((noise_left**2 + noise_right**2) / 2)[:, None]
        believed = np.maximum(slope**2 - SLOPE * doubt, 0.0)
        share = believed / (believed + doubt)
        before = (total[middle] - total[left]) / mass_left + share * slope * heads[0] / 2
        after = jump[:, None] + (total[right] - total[middle]) / mass_right - share * slope * heads[1] / 2
        variance = noise_left[:, None] ** 2 / mass_left + noise_right[:, None] ** 2 / mass_right
        doubt = np.sqrt(variance + share * doubt * (heads.sum(axis=0) / 2) ** 2)
        t: Floats = np.nan_to_num((after - before) / doubt)
    return Comparison(t, heads, before, after, doubt)


def _sums(*arrays: Floats) -> list[Floats]:
    return [np.concatenate([[0.0], np.cumsum(array)]) for array in arrays]


def _alone(signal: Signal, now: Fit, noise: Noise, side: int) -> Floats:
    """For a short segment on one side of each boundary: could it be noise of the level on the other side?"""
    at = now.bounds[1:-1]
    start, stop = (now.bounds[:-2], at) if side < 0 else (at, now.bounds[2:])
    length = stop - start
    result = np.full(len(at), np.inf)
    rows = np.flatnonzero(length <= SHORT)
    if not len(rows):
        return result
    offset = np.arange(SHORT)
    inside = offset < length[rows, None]
    head = np.where(inside, start[rows, None] + offset, 0)
    other = rows if side > 0 else rows + 1
    scale = signal.scale * now.core[other, None] * np.sqrt(signal.variance[head])
    residual = (signal.value[head] - now.level[other, None]) / scale
    sign = np.sign(now.level[rows + (1 if side > 0 else 0)] - now.level[other])
    toward = residual * sign[:, None]
    median = _first_medians(toward, length[rows])
    far = np.diff(now.bounds)[other].astype(float)
    unsure = median * (1 - np.sqrt(far / (far + length[rows])))  # of the other side's level
    middle = _first_medians(signal.value[head], length[rows])[:, None]
    unit = np.maximum(signal.scale * now.core[other, None], LIKE * np.abs(middle - now.level[other, None]))
    apart = np.abs(signal.value[head] - middle) / unit
    agree = np.clip(2 - apart / AGREE, 0.0, 1.0)  # heads that do not are no level
    sound = np.maximum(signal.sound[head], np.minimum((toward / CLEAR) ** 2, 1.0))
    worth = inside * sound * agree
    count = worth.sum(axis=1)
    bounded = np.clip((toward - unsure[:, None])[:, None, :], -BOUNDS[:, None], BOUNDS[:, None]) * worth[:, None, :]
    mean = bounded.sum(axis=2) / np.maximum(count, 1e-9)[:, None]
    count[(start[rows] == 0) & (length[rows] < FIRST) & (side < 0)] = 0.0
    heads = count / noise.alone(length[rows].astype(float))
    tail = (sign < 0).astype(np.int64)
    rarity = noise.shape.rarity(FAR * median, heads, tail)
    rarity[(median < BOUNDS[-1]) | (length[rows] < SEVERAL)] = 0.0
    result[rows] = np.maximum(noise.shape.deviation(mean, heads[:, None], tail), rarity)
    return result


def _slope(total: Floats, moment: Floats, left: Ints, middle: Ints, right: Ints) -> tuple[Floats, Floats]:
    """Common slope of the residuals on both sides of a boundary, and its variance for residuals of variance 1."""
    norm, product = np.zeros(left.shape), np.zeros(left.shape)
    for start, stop in ((left, middle), (middle, right)):
        length = (stop - start).astype(float)
        centre = (start + stop - 1) / 2
        norm += length * (length**2 - 1) / 12
        product += moment[stop] - moment[start] - centre * (total[stop] - total[start])
    norm = np.maximum(norm, 1e-9)
    return product / norm, 1 / norm
