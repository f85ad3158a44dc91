"""What the runs of one boot say about the level of the kernel, under every kind of noise considered.

A run is the level + the boot's own offset + noise of the run. Noise of a run has a core of deviation `sigma`
and, with probability `stray`, a broad part; a boot's offset has deviation `ratio`·sigma, and with probability
`odd` the boot is in another mode, `shift` ± `mode` away. All are in units of the expected step. None of them
is known: a table of kinds covers them, and the data weigh the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FINEST: Final = 40.0
"""Noise below 1/40 of the step makes no difference to any decision, and only costs resolution."""
COARSEST: Final = 4.5


@dataclass(frozen=True)
class Kinds:
    """K kinds of noise, each an array of length K; `log_prior` is normalised.

    A host's level drifts by `drift` per √experiment, and with probability `jump` per experiment it jumps.
    """

    sigma: Floats
    ratio: Floats
    stray: Floats
    broad: Floats
    odd: Floats
    shift: Floats
    mode: Floats
    drift: Floats
    jump: Floats
    log_prior: Floats

    def __len__(self) -> int:
        return len(self.sigma)

    def take(self, index: NDArray[np.int64]) -> Kinds:
        return Kinds(*(getattr(self, f.name)[index] for f in fields(self)))

    def joined(self, other: Kinds) -> Kinds:
        """These and further kinds; the priors are left as they are."""
        return Kinds(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    @property
    def boot_variance(self) -> Floats:
        """Between boots that are in no other mode."""
        return (self.ratio * self.sigma) ** 2

    @property
    def boot_spread(self) -> Floats:
        """Between boots, other modes included."""
        return self.boot_variance + self.odd * (self.mode**2 + (1 - self.odd) * self.shift**2)

    @property
    def run_variance(self) -> Floats:
        """Of one run within its boot, strays included."""
        return (1 - self.stray) * self.sigma**2 + self.stray * self.broad**2


def table(step_in_sigma: float = 3.0) -> Kinds:
    """Every kind considered; the prior of the step's size in sigma is log-normal around `step_in_sigma`."""
    rows = []
    for sigma in np.geomspace(1 / FINEST, COARSEST, 16):
        near_gauss = 0.01, max(5 * sigma, 0.3)
        heavy = 0.25, 3.2 * sigma  # close to Student's t with 3 degrees of freedom
        strays = 0.08, max(3 * sigma, 0.35)  # runs that may end up between the levels
        rare = 0.01, 0.0, max(2 * sigma, 0.5)
        for ratio, p_ratio in ((0.0, 0.5), (0.7, 0.15), (1.3, 0.15), (2.2, 0.2)):
            size = np.exp(-0.5 * (np.log(sigma * np.sqrt(1 + ratio**2) * step_in_sigma) / 1.3) ** 2)
            for tail, p_tail in ((near_gauss, 0.5), (heavy, 0.25), (strays, 0.25)):
                rows.append((sigma, ratio, *tail, *rare, 0.85 * size * p_ratio * p_tail))
        for apart in (0.25, 0.4, 0.6, 0.9, 1.35):  # two modes per boot, either one the rarer
            if sigma < 0.7 * apart:
                size = np.exp(-0.5 * (np.log(np.hypot(sigma, 0.46 * apart) * step_in_sigma) / 1.3) ** 2)
                mode = 0.3, *near_gauss, 0.3
                rows.append((sigma, *mode, -apart, 0.15 * apart, 0.15 * size / 10))
                rows.append((sigma, *mode, apart, 0.15 * apart, 0.15 * size / 10))
    sigmas, ratios, strays_, broad, odd, shift, modes, prior = np.array(rows).T
    still = np.zeros(len(rows))
    return Kinds(sigmas, ratios, strays_, broad, odd, shift, modes, still, still, np.log(prior / prior.sum()))


@dataclass(frozen=True)
class Runs:
    """The runs of N boots, split in C ways into core and stray runs; sums are of `y - center`.

    Arrays (N, C) with a trailing axis (core, stray) where it matters; `possible` masks the padding.
    """

    center: Floats
    count: Floats
    total: Floats
    square: Floats
    possible: NDArray[np.bool_]

    @classmethod
    def of(cls, boots: Sequence[Sequence[float]]) -> Runs:
        splits = [_splits(np.asarray(values, dtype=np.float64)) for values in boots]
        width = max((len(s) for _, _, s in splits), default=1)
        n = len(splits)
        center = np.zeros(n)
        count, total, square = np.zeros((n, width, 2)), np.zeros((n, width, 2)), np.zeros((n, width, 2))
        possible = np.zeros((n, width), dtype=np.bool_)
        for i, (middle, y, strays) in enumerate(splits):
            center[i] = middle
            k = len(strays)
            possible[i, :k] = True
            for part, mask in enumerate((~strays, strays)):
                count[i, :k, part] = mask.sum(axis=1)
                total[i, :k, part] = mask @ y
                square[i, :k, part] = mask @ (y * y)
        return cls(center, count, total, square, possible)


def _splits(values: Floats) -> tuple[float, Floats, NDArray[np.bool_]]:
    """Centre, centred values, and which runs to take for strays: all ways for two, the farthest for more."""
    middle = float(np.median(values))
    y = values - middle
    m = len(y)
    if m <= 2:
        masks = np.array(list(product((False, True), repeat=m)))
    else:
        rank = np.argsort(np.argsort(-np.abs(y), kind="stable"), kind="stable")
        masks = np.array([rank < k for k in dict.fromkeys((0, 1, 2 if m > 4 else m, m))])
    return middle, y, masks


@dataclass(frozen=True)
class Sites:
    """Likelihood of each boot's level under each kind: a mixture of C Gaussians; arrays (K, N, C)."""

    mean: Floats
    variance: Floats
    log_weight: Floats


def sites(runs: Runs, kinds: Kinds) -> Sites:
    """∫ over the boot's own offset of Π over runs, per split into core and stray runs, usual mode or other."""
    precision = np.stack([kinds.sigma**-2, kinds.broad**-2], axis=-1)[:, None, None, :]
    log_share = np.stack([np.log1p(-kinds.stray), np.log(kinds.stray)], axis=-1)[:, None, None, :]
    summed = (precision * runs.count).sum(-1)
    summed = np.where(summed > 0, summed, 1.0)
    mean = (precision * runs.total).sum(-1) / summed
    spread = (precision * runs.square).sum(-1) - summed * mean**2
    log_weight = (
        (runs.count * (log_share + 0.5 * np.log(precision / (2 * np.pi)))).sum(-1)
        - 0.5 * np.maximum(spread, 0.0)
        + 0.5 * np.log(2 * np.pi / summed)
    )
    log_weight = np.where(runs.possible, log_weight, -np.inf)
    mean = np.broadcast_to(mean + runs.center[:, None], log_weight.shape)
    variance = kinds.boot_variance[:, None, None] + 1 / summed
    odd, shift, mode = (a[:, None, None] for a in (kinds.odd, kinds.shift, kinds.mode))
    return Sites(
        np.concatenate([mean, mean - shift], axis=-1),
        np.concatenate([variance, variance + mode**2], axis=-1),
        np.concatenate([log_weight + np.log1p(-odd), log_weight + np.log(odd)], axis=-1),
    )
