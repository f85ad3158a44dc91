"""Which boundaries are steps: each must stand out from what this series' own noise does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisectbot.detect.heads import Floats, Ints
from bisectbot.detect.noise import BOUNDS, Shape, Signal, shape

Flags = NDArray[np.bool_]

REACH = np.array([3, 6, 12, 25, 50, 100])  # heads to either side that are compared; the last one: all
THRESHOLD = 4.3  # evidence (in standard deviations) that makes a step
LOCAL = 40  # heads to either side that tell the local noise
BEND = 2.0  # Huber's bound: residuals beyond so many standard deviations count as so many
SHORT = 12  # heads on one side below which the shape of the noise matters
TRUST = 8.0  # heads that the noise of the whole stretch counts for beside the local one


SLOPE = 2.5
DOUBT = 1.0
WALK = 0.0
POWER = 1.2


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

    inflation: Floats  # of the standard deviation of differences, per REACH: memory, waves, drift
    shape: Shape


@dataclass(frozen=True)
class Judged:
    """The boundaries that stay, with the evidence for each in standard deviations."""

    fit: Fit
    noise: Noise
    evidence: Floats


def fit(signal: Signal, bounds: Ints) -> Fit:
    """Levels by Huber's estimator, from the calmed means."""
    start, length = bounds[:-1], np.diff(bounds)
    segment = np.repeat(np.arange(len(length)), length)
    weight = 1 / signal.variance
    mass = np.add.reduceat(weight, start)
    origin = float(np.median(signal.value))
    value = (signal.value - origin) / signal.scale
    deviation = np.sqrt(signal.variance)
    level = np.add.reduceat(weight * (signal.calm - origin) / signal.scale, start) / mass
    core = np.ones(len(start))
    for _ in range(3):
        residual = (value - level[segment]) / deviation
        core = _core(residual, start, length)
        limit = BEND * core[segment]
        bounded = np.clip(residual, -limit, limit)
        gain = max(float(np.mean(np.abs(residual) < limit)), 0.3)
        pseudo = bounded / gain
        level = level + np.add.reduceat(pseudo * deviation * weight, start) / mass
    residual = (value - level[segment]) / deviation
    limit = BEND * core[segment]
    pseudo = np.clip(residual, -limit, limit) / gain
    return Fit(bounds, origin + level * signal.scale, segment, residual, core, pseudo, _local(pseudo, segment, length))


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
    whole = float(np.quantile(size, 0.683)) * np.sqrt(n / max(n - k, 0.3 * n))
    whole = max(whole, 0.5)
    bounded = np.minimum(size / whole, BEND) ** 2 / 0.92
    core: Floats = whole * _shrunken(bounded, start, length)
    return core


def _shrunken(square: Floats, start: Ints, length: Ints) -> Floats:
    """Root mean square per segment, drawn towards that of all: levels differ in noise, but few heads cannot tell."""
    sums = np.add.reduceat(square, start)
    n = len(square)
    whole = float(sums.sum()) / max(n - len(start), 0.3 * n)
    shrunken: Floats = np.sqrt((TRUST * whole + sums) / (TRUST + np.maximum(length - 1, 0)) + 1e-12)
    return shrunken


def judge(signal: Signal, bounds: Ints, fixed: Ints) -> Judged:
    """Take away the weakest boundaries until every one that is left is a step by itself."""
    bounds = np.concatenate([[0], bounds, [len(signal)]]).astype(np.int64)
    now = fit(signal, bounds)
    noise = measure(signal, now)
    while True:
        evidence, z, short = weigh(signal, now, noise)
        keep = np.isin(now.bounds[1:-1], fixed)
        failing = (evidence < THRESHOLD) & ~keep
        if not failing.any():
            return Judged(now, noise, evidence)
        gone = _weakest(failing, z, short, keep)
        inner = now.bounds[1:-1][~gone]
        now = fit(signal, np.concatenate([[0], inner, [len(signal)]]))
        noise = measure(signal, now)


def _weakest(failing: Flags, z: Floats, short: Ints, keep: Flags) -> Flags:
    """Failing boundaries weaker than their neighbours; one that fails beside a short segment may give way to the
    segment's other, weaker boundary."""
    k = len(z)
    rank = np.where(keep, np.inf, z)
    named = np.zeros(k, bool)
    for at in np.flatnonzero(failing).tolist():
        other = at + int(short[at])
        named[other if 0 <= other < k and rank[other] < rank[at] else at] = True
    worth = np.where(named, rank, np.inf)
    padded = np.concatenate([[np.inf], worth, [np.inf]])
    return named & (worth <= padded[:-2]) & (worth < padded[2:]) if k > 1 else named


def measure(signal: Signal, now: Fit) -> Noise:
    """The noise left by a segmentation."""
    edges = now.bounds
    inner = np.arange(len(signal))
    low, high = edges[now.segment], edges[now.segment + 1]
    sums = _moments(signal, now)
    spread = now.local[now.segment]
    t, heads = _compare(sums, inner, low, high, jump=np.zeros(len(inner)), noises=(spread, spread))
    least = np.minimum(heads[0], heads[1])
    wanted = (least >= np.maximum(np.minimum(REACH, 100) * 0.5, 2.0)) & (inner != low)[:, None]
    count = wanted.sum(axis=0) / (2.0 * np.minimum(REACH, 100))
    mean = (np.minimum(t**2, 9.0) * wanted).sum(axis=0) / np.maximum(wanted.sum(axis=0), 1)
    raised = (DOUBT + count * mean) / (DOUBT + count)
    information = REACH**4.0 * count / 2
    walk = float(((mean - 1) * REACH**2.0 * count / 2).sum()) / max(float(information.sum()), 1e-9)
    walk -= WALK / np.sqrt(max(float(information.sum()), 1e-9))
    raised = np.maximum(raised, 1 + max(walk, 0.0) * REACH**2.0)
    inflation = np.sqrt(np.maximum.accumulate(raised))
    return Noise(inflation, shape(now.residual / now.core[now.segment]))


def weigh(signal: Signal, now: Fit, noise: Noise) -> tuple[Floats, Floats, Ints]:
    """Evidence of every inner boundary, its plain z, and on which side (-1, 1) its shorter segment's other end is."""
    at = now.bounds[1:-1]
    if not len(at):
        return np.empty(0), np.empty(0), np.empty(0, np.int64)
    jump = np.diff(now.level) / signal.scale
    t, heads = _compare(
        _moments(signal, now), at, now.bounds[:-2], now.bounds[2:], jump=jump, noises=(now.local[:-1], now.local[1:])
    )
    reach = np.sqrt(heads[0] * heads[1])
    t = (np.abs(t) / np.interp(reach, REACH, noise.inflation) ** POWER).max(axis=1)
    freedom = TRUST / 2 + np.minimum(now.bounds[2:] - now.bounds[:-2] - 2, 2 * LOCAL)
    z = np.sqrt(freedom * np.log1p(t**2 / freedom))
    evidence = np.minimum(z, np.minimum(_alone(signal, now, noise, -1), _alone(signal, now, noise, 1)))
    sides = np.diff(now.bounds)
    return evidence, z, np.where(sides[:-1] < sides[1:], -1, 1)


def _moments(signal: Signal, now: Fit) -> list[Floats]:
    weight = 1 / signal.variance
    pseudo = now.pseudo * np.sqrt(signal.variance)
    return _sums(weight, pseudo * weight, pseudo, np.arange(len(signal)) * pseudo)


def _compare(
    sums: list[Floats], at: Ints, low: Ints, high: Ints, *, jump: Floats, noises: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """t of the difference between the heads right and left of ``at``, for every reach, a believed slope taken out."""
    mass, total, plain, moment = sums
    noise_left, noise_right = noises
    middle = at[:, None]
    left, right = np.maximum(middle - REACH, low[:, None]), np.minimum(middle + REACH, high[:, None])
    heads = np.stack([middle - left, right - middle]).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = mass[middle] - mass[left], mass[right] - mass[middle]
        shift = jump[:, None] + (total[right] - total[middle]) / after - (total[middle] - total[left]) / before
        lever = heads.sum(axis=0) / 2
        slope, doubt = _slope(plain, moment, left, middle, right)
        doubt = doubt * ((noise_left**2 + noise_right**2) / 2)[:, None]
        believed = np.maximum(slope**2 - SLOPE * doubt, 0.0)
        share = believed / (believed + doubt)
        shift = shift - share * slope * lever
        variance = noise_left[:, None] ** 2 / before + noise_right[:, None] ** 2 / after
        t: Floats = np.nan_to_num(shift / np.sqrt(variance + share * doubt * lever**2))
    return t, heads


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
    bounded = np.clip(toward[:, None, :], -BOUNDS[:, None], BOUNDS[:, None]) * inside[:, None, :]
    mean = bounded.sum(axis=2) / length[rows, None]
    far = np.diff(now.bounds)[other].astype(float)
    mean = mean * np.sqrt(far / (far + length[rows]))[:, None]
    heads = length[rows] / np.interp(length[rows], REACH[:-1], noise.inflation[:-1]) ** 2
    result[rows] = noise.shape.deviation(mean, heads[:, None], (sign < 0).astype(np.int64))
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
