"""The noise of simulated hosts, in units of one run's deviation, and what information theory says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HOUR: Final = 3600.0


@dataclass(frozen=True)
class Family:
    """`run(rng, n, bad, step)` and `boot(rng)` are noise of runs and of a boot; drift and offset of a host.

    `drift` is in steps per √(6 h), `offset` the deviation between hosts; `boot_share` the part of the
    variance that a boot keeps, for the bound.
    """

    name: str
    run: Callable[[np.random.Generator, int, bool, float], Floats]
    boot: Callable[[np.random.Generator], float] = lambda _: 0.0
    drift: float = 0.0
    jumps: float = 0.0
    offset: float = 0.0
    boot_share: float = 0.0


def _gauss(rng: np.random.Generator, n: int, _bad: bool, _step: float) -> Floats:
    return rng.normal(size=n)


def _heavy(rng: np.random.Generator, n: int, _bad: bool, _step: float) -> Floats:
    return rng.standard_t(3, size=n)


def _outlier(rng: np.random.Generator, n: int, bad: bool, step: float) -> Floats:
    stray = (rng.random(n) < 0.08) & bad
    return rng.normal(size=n) - stray * step * rng.uniform(0.3, 0.5, size=n)


def _seed_report(rng: np.random.Generator, n: int, bad: bool, step: float) -> Floats:
    stray = (rng.random(n) < 0.1) & bad
    return rng.normal(size=n) - stray * 0.54 * step


def _narrow(scale: float) -> Callable[[np.random.Generator, int, bool, float], Floats]:
    return lambda rng, n, _bad, _step: scale * rng.normal(size=n)


def _mixed_run(rng: np.random.Generator, n: int, bad: bool, step: float) -> Floats:
    stray = (rng.random(n) < 0.06) & bad
    return 0.35 * rng.standard_t(3, size=n) - stray * step * 0.5


FAMILIES: Final = {
    f.name: f
    for f in (
        Family("gauss", _gauss),
        Family("heavy", _heavy),
        Family("outlier", _outlier),
        Family("bootvar", _narrow(0.45), lambda rng: 0.893 * rng.normal(), boot_share=0.8),
        Family("bimodal", _narrow(0.4), lambda rng: 2.0 * (rng.random() < 0.3), boot_share=0.84),
        Family("drift", _gauss, drift=1.0),
        Family("speed", _gauss, jumps=0.7),
        Family("hosts", _gauss, offset=1.0),
        Family(
            "mix",
            _mixed_run,
            lambda rng: 0.45 * rng.normal() + 0.9 * (rng.random() < 0.2),
            drift=0.3,
            offset=0.7,
            boot_share=0.5,
        ),
        Family("seed_wis", _seed_report),
    )
}


class Host:
    """One machine: its offset, its drift, and the boot it is in."""

    def __init__(self, family: Family, step: float, rng: np.random.Generator) -> None:
        self._family, self._step, self._rng = family, step, rng
        self._offset = family.offset * rng.normal()
        # a random walk whose deviation after six hours is `drift` steps, in pieces of ten minutes
        pieces = rng.normal(size=6 * 24 * 30) * family.drift * step / 6.0
        self._walk = np.cumsum(pieces)
        if family.jumps:
            changes = np.cumsum(rng.random(len(pieces)) < 1 / 6)
            self._walk += rng.normal(size=len(pieces))[changes] * family.jumps * step
        self._boot = 0.0

    def boot(self) -> None:
        self._boot = self._family.boot(self._rng)

    def runs(self, level: float, bad: bool, n: int, at: float) -> Floats:
        drift = self._walk[min(int(at / 600.0), len(self._walk) - 1)]
        noise = self._family.run(self._rng, n, bad, self._step)
        values: Floats = level + self._offset + drift + self._boot + noise
        return values


@lru_cache(maxsize=64)
def capacity(name: str, step: float) -> tuple[float, float]:
    """C in bits and C1 in nats of one run: mutual information at p = 1/2, and KL(bad || good).

    From histograms of 4 million runs with boots drawn anew, so that it holds for any family.
    """
    rng = np.random.default_rng(1)
    n = 2_000_000
    family = FAMILIES[name]
    boots = np.array([family.boot(rng) for _ in range(20_000)])
    samples = [family.run(rng, n, bad, step) + rng.choice(boots, n) + (step if bad else 0.0) for bad in (False, True)]
    low, high = np.quantile(np.concatenate(samples), [0.0005, 0.9995])
    edges = np.concatenate([[-np.inf], np.linspace(low, high, 600), [np.inf]])
    good, bad_ = (np.histogram(s, edges)[0] / n for s in samples)
    middle = (good + bad_) / 2

    def bits(p: Floats) -> float:
        on = p > 0
        return float((p[on] * np.log2(p[on] / middle[on])).sum())

    on = (bad_ > 0) & (good > 0)
    c1 = float((bad_[on] * np.log(bad_[on] / good[on])).sum()) if step < 8 else step**2 / 2
    return (bits(good) + bits(bad_)) / 2, max(c1, 1e-9)


def bound_hours(name: str, step: float, candidates: int, *, boot_s: float, run_s: float, eps: float = 0.01) -> float:
    """Least host hours of one host that any method needs (Burnashev's two terms; runs in m per boot)."""
    family = FAMILIES[name]
    bits = (1 - eps) * np.log2(candidates + 1)
    sure = np.log((1 - eps) / eps)
    h = -(eps * np.log2(eps) + (1 - eps) * np.log2(1 - eps))
    kernels = max(bits - h, 1.0)
    if family.boot_share == 0 or name == "bimodal":
        c, c1 = capacity(name, step)
        return float((boot_s * kernels + run_s * (bits / c + sure / c1)) / HOUR)
    best = np.inf
    for m in range(1, 11):
        v = family.boot_share + (1 - family.boot_share) / m
        c, c1 = capacity(name, round(float(step / np.sqrt(v)), 3)) if m > 1 else capacity(name, step)
        best = min(best, (boot_s + m * run_s) * (bits / c + sure / c1))
    return float(best / HOUR)
