"""How well two levels explain the boots, for many hypotheses at once.

A hypothesis puts each boot at the good level o or at the bad level o + δ; noise is one of the kinds of
`noise`. Likelihoods are tables over a grid of levels, so strays, heavy tails and boots are exact, and the
levels are integrated out by sums:

    evidence = Σ_o Σ_b  Π_good L(o) · p(b - o) · Π_bad L(b)

Where boots come from several hosts, or from hours far enough apart for a host to drift, each environment has
its own good level: those of a host's successive hours differ by a random walk, those of hosts by an offset.
Messages along that tree integrate them out for each δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect.noise import Kinds, Sites

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS: Final = 129
FAINT: Final = -60.0
"""Smaller log likelihoods, against the best of a boot and kind, are all alike."""
JUMP: Final = 0.8
"""Deviation, in steps, of a jump of a host's level."""
COARSE: Final = 4
"""Where several environments are linked, and for the distribution of δ, so many points become one."""


@dataclass(frozen=True)
class Grid:
    """Levels considered, in units of the expected step."""

    low: float
    high: float
    points: int = POINTS

    @cached_property
    def at(self) -> Floats:
        return np.linspace(self.low, self.high, self.points)

    @property
    def gap(self) -> float:
        return (self.high - self.low) / (self.points - 1)

    def thinned(self, by: int) -> Grid:
        """Every `by`-th level, both ends included."""
        return Grid(self.low, self.high, (self.points - 1) // by + 1)


@cache
def spread(points: int, by: int) -> Floats:
    """How a distribution over a grid becomes one over the grid thinned: (points, thinned), rows sum to 1."""
    apart = np.abs(np.arange(points)[:, None] / by - np.arange((points - 1) // by + 1))
    shares: Floats = np.maximum(1 - apart, 0.0).astype(np.float32)
    return shares


@dataclass(frozen=True)
class StepPrior:
    """Mixture of two Gaussians for δ; steps smaller than `negligible` are no reproduction of the claim.

    `first` is for the first of two steps: any part of the whole, mean and deviation.
    """

    mean: tuple[float, float]
    deviation: tuple[float, float]
    share: tuple[float, float]
    negligible: float
    first: tuple[float, float]

    def density(self, step: Floats) -> Floats:
        total = np.zeros_like(step)
        for m, s, w in zip(self.mean, self.deviation, self.share, strict=True):
            total += w / s * np.exp(np.maximum(-0.5 * ((step - m) / s) ** 2, -20.0))
        density: Floats = total / np.sqrt(2 * np.pi)
        return density


@dataclass(frozen=True)
class Fit:
    """Per hypothesis and kind: log evidence (J, K), both levels (J, K, G) and the step (J, K, S) at `steps`."""

    log_evidence: Floats
    good: Floats
    bad: Floats
    steps: Floats
    step: Floats

    def joined(self, other: Fit) -> Fit:
        """Further kinds for the same hypotheses."""
        return Fit(
            np.concatenate([self.log_evidence, other.log_evidence], axis=1),
            np.concatenate([self.good, other.good], axis=1),
            np.concatenate([self.bad, other.bad], axis=1),
            self.steps,
            np.concatenate([self.step, other.step], axis=1),
        )


def _exp(log: NDArray[np.floating]) -> Floats:
    """exp, but never so small that products become denormal: those are slow, and nothing here needs them."""
    result: Floats = np.exp(np.maximum(log, -30.0))
    return result


def table(sites: Sites, grid: Grid) -> Floats:
    """Log likelihood of each of N boots at each level: (N, K, G)."""
    at = grid.at.astype(np.float32)
    mean = sites.mean.astype(np.float32)
    half = (-0.5 / sites.variance).astype(np.float32)
    weight = sites.log_weight - 0.5 * np.log(2 * np.pi * sites.variance)
    top = weight.max(axis=2, keepdims=True)
    weight = (weight - top).astype(np.float32)
    kinds, boots, parts = mean.shape
    result: Floats = np.empty((boots, kinds, len(at)), dtype=np.float32)
    for boot in range(boots):  # in pieces that stay in the processor's cache
        total = np.zeros((kinds, len(at)), dtype=np.float32)
        for part in range(parts):
            one = at - mean[:, boot, part, None]
            one *= one
            one *= half[:, boot, part, None]
            one += weight[:, boot, part, None]
            total += np.exp(np.maximum(one, FAINT, out=one), out=one)
        result[boot] = np.log(total, out=total) + top[:, boot]
    return result


def evidence(states: Floats, tables: Floats, grid: Grid, prior: StepPrior) -> Floats:
    """The log evidence of `fit` alone: (J, K)."""
    return _Sides(states, tables, grid, prior).log_evidence


def fit(states: Floats, tables: Floats, grid: Grid, prior: StepPrior) -> Fit:
    """One environment: states (J, N) in {0, 1}, tables (N, K, G)."""
    sides = _Sides(states, tables, grid, prior)
    total = sides.total[..., None]
    at_good = sides.good * (sides.bad @ sides.link.T) / total
    at_bad = sides.bad * sides.from_good / total
    return Fit(sides.log_evidence, at_good, at_bad, *sides.steps())


class _Sides:
    """Likelihoods of both levels, and what links them."""

    def __init__(self, states: Floats, tables: Floats, grid: Grid, prior: StepPrior) -> None:
        n, k, g = tables.shape
        bad_log = (states.astype(np.float32) @ tables.reshape(n, k * g)).reshape(-1, k, g)
        good_log = tables.sum(axis=0) - bad_log
        good_top, bad_top = good_log.max(-1, keepdims=True), bad_log.max(-1, keepdims=True)
        self.good, self.bad = _exp(good_log - good_top), _exp(bad_log - bad_top)
        self.link = (prior.density(grid.at[None, :] - grid.at[:, None]) * grid.gap**2).astype(np.float32)
        self.from_good = (self.good.reshape(-1, g) @ self.link).reshape(self.good.shape)
        self.total = np.maximum((self.from_good * self.bad).sum(-1), 1e-36)
        self.log_evidence: Floats = np.log(self.total) + (good_top + bad_top)[..., 0]
        self._grid = grid

    def steps(self) -> tuple[Floats, Floats]:
        """Differences of levels on a coarse grid, and how likely each is: sums along diagonals."""
        j, k, g = self.good.shape
        coarse = spread(g, COARSE)
        good, bad = self.good @ coarse, self.bad @ coarse
        m = coarse.shape[1]
        link = self.link[::COARSE, ::COARSE]
        shifts = np.arange(1 - m, m)
        of_step = np.zeros((j, k, len(shifts)))
        for i, s in enumerate(shifts):
            down, up = max(-s, 0), max(s, 0)
            part = good[..., down : m - up] * bad[..., up : m - down]
            of_step[..., i] = (part * np.diagonal(link, s)).sum(axis=-1)
        of_step /= np.maximum(of_step.sum(-1, keepdims=True), 1e-300)
        return shifts * (self._grid.gap * COARSE), of_step


@dataclass(frozen=True)
class TwoFit:
    """Of two steps, per pair and kind: log evidence (P, K) and the three levels (P, K, G)."""

    log_evidence: Floats
    good: Floats
    middle: Floats
    bad: Floats


def fit_two(one: Floats, both: Floats, tables: Floats, grid: Grid, prior: StepPrior) -> TwoFit:
    """Boots with neither change, with the first of two, and with both: one and both (P, N) in {0, 1}."""
    n, k, g = tables.shape
    flat = tables.reshape(n, k * g)
    logs = [(side.astype(np.float32) @ flat).reshape(-1, k, g) for side in (1 - one - both, one, both)]
    tops = [log.max(-1, keepdims=True) for log in logs]
    good, middle, bad = (_exp(log - top) for log, top in zip(logs, tops, strict=True))
    step = grid.at[None, :] - grid.at[:, None]
    whole = (prior.density(step) * grid.gap**2).astype(np.float32)
    mean, deviation = prior.first
    part = (_exp(-0.5 * ((step - mean) / deviation) ** 2) * grid.gap).astype(np.float32)
    part /= np.float32(deviation * np.sqrt(2 * np.pi))
    to_middle, to_bad = middle @ part.T, bad @ whole.T  # by good level
    total = np.maximum((good * to_middle * to_bad).sum(-1), 1e-36)
    evidence_ = np.log(total) + sum(top[..., 0] for top in tops)
    return TwoFit(
        evidence_,
        good * to_middle * to_bad / total[..., None],
        middle * ((good * to_bad) @ part) / total[..., None],
        bad * ((good * to_middle) @ whole) / total[..., None],
    )


@dataclass(frozen=True)
class Place:
    """One stretch of a host's time: its boots, and how many experiments after the host's stretch before."""

    boots: Ints
    gap: float


def fit_places(
    states: Floats,
    tables: Floats,
    grid: Grid,
    prior: StepPrior,
    *,
    hosts: Sequence[Sequence[Place]],
    kinds: Kinds,
    about: float,
) -> Fit:
    """Several environments; arguments as `fit`, hosts as successive stretches, `kinds` for offset and drift.

    Levels are those of the latest stretch; between hosts, of their common centre. Steps are resolved best
    `about` that one.
    """
    thin = grid.thinned(2)
    tables = tables[..., ::2]
    shifts = _shifts(thin, prior, about)
    steps: Floats = shifts.astype(np.float64) * thin.gap
    weight = np.log(prior.density(steps) * (thin.gap**2 * np.gradient(shifts)) + 1e-30)
    log_total: Floats = weight.astype(np.float32)[:, None]
    for stretches in hosts:
        message: Floats = np.zeros(1, dtype=np.float32)
        for i, place in enumerate(stretches):
            if i:
                message = _convolve(message, _walk(thin, kinds, max(place.gap, 1.0)))
            message = message + _joint(states, tables, place.boots, shifts)
        if len(hosts) > 1:
            message = _convolve(message, _offset(thin, kinds))
        log_total = log_total + message
    top = log_total.max(axis=(-2, -1), keepdims=True)
    joint = _exp(log_total - top)  # (J, K, D, G)
    total = joint.sum(axis=(-2, -1))
    joint /= total[..., None, None]
    bad = np.zeros((*joint.shape[:2], thin.points))
    for d, shift in enumerate(shifts):
        down, up = (min(max(int(s), 0), thin.points) for s in (-shift, shift))  # what leaves the grid is lost
        bad[..., up : thin.points - down] += joint[:, :, d, down : thin.points - up]
    good = joint.sum(axis=2)
    m = grid.thinned(COARSE).points
    fine = spread(grid.points, 2)
    fine = (fine / fine.sum(axis=0)).T
    of_step = np.zeros((*total.shape, 2 * m - 1))
    for d, shift in enumerate(shifts):
        of_step[..., min(max(round(2 * shift / COARSE), 1 - m), m - 1) + m - 1] += joint[:, :, d].sum(axis=-1)
    return Fit(
        np.log(total) + top[..., 0, 0],
        good @ fine,
        bad @ fine,
        np.arange(1 - m, m, dtype=np.float64) * (grid.gap * COARSE),
        of_step,
    )


def _shifts(grid: Grid, prior: StepPrior, about: float) -> Ints:
    """Steps considered, as multiples of the grid's gap: where most of the prior is, closely `about` one."""
    low, high = (prior.mean[0] + side * 3.2 * prior.deviation[0] for side in (-1, 1))
    low, high = int(np.floor(low / grid.gap)), int(np.ceil(high / grid.gap))
    near = round(about / grid.gap)
    return np.union1d(np.arange(low, high + 1, max((high - low) // 12, 1)), np.arange(near - 7, near + 8))


def _walk(grid: Grid, kinds: Kinds, gap: float) -> Floats:
    """How a host's level moves during `gap` experiments: (K, G, G)."""
    deviation, jumped = kinds.drift * np.sqrt(gap), 1 - (1 - kinds.jump) ** gap
    far = _kernel(grid, JUMP) if jumped.any() else np.float32(0.0)
    return np.stack(
        [(1 - q) * _kernel(grid, float(s)) + q * far for s, q in zip(deviation, jumped.astype(np.float32), strict=True)]
    )


def _joint(states: Floats, tables: Floats, boots: Ints, shifts: Ints) -> Floats:
    """Log likelihood of some boots for each δ and o: (J, K, D, G)."""
    some = tables[boots]
    n, k, g = some.shape
    bad = (states[:, boots].astype(np.float32) @ some.reshape(n, k * g)).reshape(-1, k, g)
    good = some.sum(axis=0) - bad
    index = np.clip(np.arange(g) + shifts[:, None], 0, g - 1)
    joint: Floats = bad[..., index]
    joint += good[:, :, None]
    return joint


def _offset(grid: Grid, kinds: Kinds) -> Floats:
    """Hosts of a group are alike, more or less: a narrow and a wide prior, (K, G, G)."""
    size = np.sqrt(kinds.sigma**2 + kinds.boot_variance)
    narrow, wide = (np.stack([_kernel(grid, f * float(s)) for s in size]) for f in (0.1, 1.2))
    return (narrow + wide) / np.float32(2)


def _kernel(grid: Grid, deviation: float) -> Floats:
    apart = (grid.at[:, None] - grid.at[None, :]).astype(np.float32)
    kernel = _exp(-0.5 * (apart / max(deviation, 0.05 * grid.gap)) ** 2)
    result: Floats = (kernel / kernel.sum(axis=0, keepdims=True)).astype(np.float32)
    return result


def _convolve(log_message: Floats, kernel: Floats) -> Floats:
    """log_message (J, K, D, G), kernel (K, G, G)."""
    top = log_message.max(axis=-1, keepdims=True)
    result: Floats = np.log(_exp(log_message - top) @ kernel.swapaxes(-1, -2)) + top
    return result
