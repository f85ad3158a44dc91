"""Which boundaries are steps: each must stand out from what this series' own noise does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisectbot.detect.heads import Floats, Ints
from bisectbot.detect.noise import CLIP, Noise, Signal, memory, shape, slope_variance

Flags = NDArray[np.bool_]

REACH = np.array([3, 6, 12, 25, 50, 1 << 40])  # heads to either side that are compared; the last one: all
THRESHOLD = 4.3  # evidence (in standard deviations) that makes a step
LOCAL = 40  # heads to either side that tell the local noise
TRUST = 8.0  # heads that the noise of the whole stretch counts for beside the local one


@dataclass(frozen=True)
class Fit:
    """A segmentation with its levels. ``bounds`` has 0 and n at its ends; levels have one entry per segment."""

    bounds: Ints
    level: Floats  # robust mean, in KPI units
    segment: Ints  # of every head
    residual: Floats  # standardised by scale and the head's variance, unbounded
    local: Floats  # standard deviation of residuals per segment, shrunken


@dataclass(frozen=True)
class Judged:
    """The boundaries that stay, with the evidence for each in standard deviations."""

    fit: Fit
    noise: Noise
    evidence: Floats


def fit(signal: Signal, bounds: Ints) -> Fit:
    """Levels by Huber's estimator, three rounds from the calmed mean."""
    start, length = bounds[:-1], np.diff(bounds)
    segment = np.repeat(np.arange(len(length)), length)
    weight = 1 / signal.variance
    mass = np.add.reduceat(weight, start)
    origin = float(np.median(signal.value))
    value = (signal.value - origin) / signal.scale
    deviation = np.sqrt(signal.variance)
    level = np.add.reduceat(weight * (signal.calm - origin) / signal.scale, start) / mass
    spread = np.ones(len(start))
    for _ in range(3):
        residual = (value - level[segment]) / deviation
        bounded = np.clip(residual, -CLIP * spread[segment], CLIP * spread[segment])
        level = level + np.add.reduceat(bounded * deviation * weight, start) / mass
        spread = _spread(bounded, start, length)
    residual = (value - level[segment]) / deviation
    return Fit(bounds, origin + level * signal.scale, segment, residual, spread)


def _spread(bounded: Floats, start: Ints, length: Ints) -> Floats:
    """Noise per segment, drawn towards that of all: levels differ in noise, but few heads cannot tell."""
    squares = np.add.reduceat(bounded**2, start)
    freedom = max(float(len(bounded) - len(start)), 1.0)
    whole = max(float(squares.sum()) / freedom, 0.25) if len(bounded) < 30 else float(squares.sum()) / freedom
    return np.sqrt((TRUST * whole + squares) / (TRUST + np.maximum(length - 1, 0)) + 1e-12)


def judge(signal: Signal, bounds: Ints, fixed: Ints) -> Judged:
    """Take away the weakest boundaries until every one that is left is a step by itself."""
    bounds = np.concatenate([[0], bounds, [len(signal)]]).astype(np.int64)
    now = fit(signal, bounds)
    noise = measure(now)
    while True:
        evidence, z, short = weigh(signal, now, noise)
        keep = np.isin(now.bounds[1:-1], fixed)
        failing = (evidence < THRESHOLD) & ~keep
        if not failing.any():
            return Judged(now, noise, evidence)
        gone = _weakest(failing, z, short, keep)
        inner = now.bounds[1:-1][~gone]
        now = fit(signal, np.concatenate([[0], inner, [len(signal)]]))
        noise = measure(now)


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


def measure(now: Fit) -> Noise:
    """The noise left by a segmentation."""
    spread = now.local[now.segment]
    residual = now.residual / spread
    return Noise(
        memory(residual, now.segment), slope_variance(np.clip(residual, -CLIP, CLIP), now.bounds), shape(residual)
    )


def weigh(signal: Signal, now: Fit, noise: Noise) -> tuple[Floats, Floats, Ints]:
    """Evidence of every inner boundary, its plain z, and on which side (-1, 0) its shorter segment's other end is."""
    at = now.bounds[1:-1]
    if not len(at):
        return np.empty(0), np.empty(0), np.empty(0, np.int64)
    deviation = np.sqrt(signal.variance)
    spread = now.local[now.segment]
    bounded = np.clip(now.residual, -CLIP * spread, CLIP * spread) * deviation
    weight = 1 / signal.variance
    mass = np.concatenate([[0.0], np.cumsum(weight)])
    total = np.concatenate([[0.0], np.cumsum(bounded * weight)])
    jump = np.diff(now.level) / signal.scale
    left = np.maximum(at[:, None] - REACH, now.bounds[:-2, None])
    right = np.minimum(at[:, None] + REACH, now.bounds[2:, None])
    middle = at[:, None]
    heads = np.stack([middle - left, right - middle]).astype(float)
    before, after = mass[middle] - mass[left], mass[right] - mass[middle]
    shift = jump[:, None] + (total[right] - total[middle]) / after - (total[middle] - total[left]) / before
    noise_left = now.local[:-1, None] ** 2 * noise.inflation(heads[0]) / before
    noise_right = now.local[1:, None] ** 2 * noise.inflation(heads[1]) / after
    drift = noise.slope2 * (heads.sum(axis=0) / 2) ** 2
    t = shift / np.sqrt(noise_left + noise_right + drift)
    best = np.argmax(np.abs(t), axis=1)
    rows = np.arange(len(at))
    t = t[rows, best]
    freedom = TRUST / 2 + np.minimum(now.bounds[2:] - now.bounds[:-2] - 2, 2 * LOCAL)
    z = np.sign(t) * np.sqrt(freedom * np.log1p(t**2 / freedom))
    reach = heads[:, rows, best]
    independent = reach / noise.inflation(reach)
    by_right = noise.shape.deviation(z, independent[1])
    by_left = noise.shape.deviation(-z, independent[0])
    evidence = np.minimum(np.abs(z), np.minimum(by_left, by_right))
    short = np.where(reach[0] < reach[1], -1, 1)
    return evidence, np.abs(z), short
