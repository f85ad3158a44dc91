"""Simulated series with known steps: families of noise, of steps, and of noise without any step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BASE = 1000.0


@dataclass(frozen=True)
class Sample:
    """A series (runs per head), its true steps, and the spread of one head's median round its level."""

    series: list[list[float]]
    steps: list[int]
    levels: Floats
    sigma: float


# A noise turns levels and run counts into runs: every family below is one noise and one plan of levels.
Noise = Callable[[Generator, Floats, NDArray[np.int64], float], list[Floats]]
Plan = Callable[[Generator], tuple[int, list[tuple[int, float]]]]  # heads, (index, effect in head sigmas)


def _each(levels: Floats, counts: NDArray[np.int64], draw: Callable[[int, float, int], Floats]) -> list[Floats]:
    return [draw(at, level, int(count)) for at, (level, count) in enumerate(zip(levels, counts, strict=True))]


def gauss(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    return _each(levels, counts, lambda _, level, n: level + s * rng.standard_normal(n))


def layered(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Head-to-head noise as large as that of the runs."""
    return _each(levels, counts, lambda _, level, n: level + s * rng.standard_normal() + s * rng.standard_normal(n))


def layout(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Every commit has a layout of its own, two sorts of them; its runs agree."""
    high = rng.uniform(0.2, 0.5)
    return _each(
        levels,
        counts,
        lambda _, level, n: (
            level + 4 * s * (rng.random() < high) + s * rng.standard_normal() + 0.2 * s * rng.standard_normal(n)
        ),
    )


def heavy(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    freedom = rng.uniform(2.0, 4.0)
    return _each(levels, counts, lambda _, level, n: level + s * rng.standard_t(freedom, n))


def outlier_runs(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    share, side = rng.uniform(0.05, 0.1), float(rng.choice([-1, 1]))

    def draw(_: int, level: float, n: int) -> Floats:
        off: Floats = (rng.random(n) < share) * rng.exponential(15.0, n) * side
        runs: Floats = level + s * (rng.standard_normal(n) + off)
        return runs

    return _each(levels, counts, draw)


def glitches(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Now and then one commit is off with all of its runs."""
    share = rng.uniform(0.01, 0.04)

    def draw(_: int, level: float, n: int) -> Floats:
        off = float((rng.random() < share) * rng.choice([-1, 1]) * rng.uniform(5, 30))
        return level + s * (off + rng.standard_normal(n))

    return _each(levels, counts, draw)


def modes_per_run(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    share, gap = rng.uniform(0.08, 0.5), rng.uniform(4, 12) * rng.choice([-1, 1])
    return _each(
        levels, counts, lambda _, level, n: level + s * (gap * (rng.random(n) < share) + rng.standard_normal(n))
    )


def modes_per_boot(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    share, gap = rng.uniform(0.08, 0.3), rng.uniform(4, 10) * rng.choice([-1, 1])
    return _each(
        levels, counts, lambda _, level, n: level + s * (gap * (rng.random() < share) + rng.standard_normal(n))
    )


def drifting(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """A slow line, wave or smooth walk of several sigmas beneath."""
    n = len(levels)
    time = np.linspace(0, 1, n)
    kind = rng.integers(3)
    height = rng.uniform(3, 12) * rng.choice([-1, 1])
    if kind == 0:
        base = height * time
    elif kind == 1:
        base = height / 2 * np.sin(2 * np.pi * (rng.uniform(0.5, 2) * time + rng.random()))
    else:
        walk = np.cumsum(rng.standard_normal(n + 40))
        base = np.convolve(walk, np.ones(41) / 41, "valid")[:n]
        base = base / max(np.ptp(base), 1e-9) * height
    return gauss(rng, levels + s * base, counts, s)


def remembering(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """AR(1) between heads."""
    rho = rng.uniform(0.2, 0.6)
    state = rng.standard_normal()
    walk = []
    for _ in levels:
        state = rho * state + np.sqrt(1 - rho**2) * rng.standard_normal()
        walk.append(state)
    return gauss(rng, levels + s * np.array(walk), counts, 0.3 * s)


def wandering(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """White noise on a slow AR(1), as real hosts do: correlation of many heads at half the size of the noise."""
    rho, state, walk = 0.95, 0.0, []
    for _ in levels:
        state = rho * state + np.sqrt(1 - rho**2) * rng.standard_normal()
        walk.append(state)
    return gauss(rng, levels + 0.5 * s * np.array(walk), counts, s)


def uneven(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Every head has a noise of its own."""
    return _each(levels, counts, lambda _, level, n: level + s * rng.lognormal(-0.3, 0.7) * rng.standard_normal(n))


def proportional(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    return _each(levels, counts, lambda _, level, n: level + s * (level / BASE) ** 2 * rng.standard_normal(n))


def counter(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Whole numbers; s is the distance of levels in counts, so that ties abound."""
    return _each(levels, counts, lambda _, level, n: np.rint((level - BASE) / s * 1.2 + 40 + rng.normal(0, 1.2, n)))


def still(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Deterministic: no noise but rare odd commits."""
    odd = rng.uniform(0, 0.03)
    return _each(
        levels, counts, lambda _, level, n: np.full(n, np.rint(level / s) + (rng.random() < odd) * rng.integers(1, 9))
    )


def near_zero(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    return _each(levels, counts, lambda _, level, n: level - BASE + s * rng.standard_normal(n))


def skewed(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """Times: a hard floor and a tail."""
    return _each(levels, counts, lambda _, level, n: level + s * (rng.gamma(1.0, 1.0, n)))


def bursts(rng: Generator, levels: Floats, counts: NDArray[np.int64], s: float) -> list[Floats]:
    """The machine was disturbed now and then: a third or more of the runs of a few neighbouring heads are far off.

    Never where a step is, and to one side only. One burst in 60 heads or fewer, so 5 to 10 % of the runs of a short
    series.
    """
    n, side = len(levels), float(rng.choice([-1, 1]))
    off = np.zeros(n)
    for _ in range(max(1, n // 120)):
        length, share = int(rng.integers(2, 6)), rng.uniform(0.3, 0.8)
        start = int(rng.integers(-1, n - length + 2))
        inside = slice(max(start, 0), min(start + length, n))
        if np.ptp(levels[max(start - 3, 0) : start + length + 3]) == 0:
            off[inside] = share
    depth = np.exp(rng.uniform(np.log(4), np.log(50)))

    def draw(at: int, level: float, count: int) -> Floats:
        disturbed = (rng.random(count) < off[at]) * rng.uniform(0.5, 1.2, count) * depth
        runs: Floats = level + s * (rng.standard_normal(count) + side * disturbed)
        return runs

    return _each(levels, counts, draw)


def segments(low: int, high: int, least: int, most: int, *, weak: float, strong: float) -> Plan:
    """Steps every ``least`` to ``most`` heads of ``weak`` to ``strong`` head sigmas."""

    def plan(rng: Generator) -> tuple[int, list[tuple[int, float]]]:
        n = int(rng.integers(low, high + 1))
        at = int(rng.integers(least, most + 1))
        steps: list[tuple[int, float]] = []
        while at <= n - least:
            steps.append((at, float(np.exp(rng.uniform(np.log(weak), np.log(strong))) * rng.choice([-1, 1]))))
            at += int(rng.integers(least, most + 1))
        return n, steps

    return plan


def pulses(rng: Generator) -> tuple[int, list[tuple[int, float]]]:
    """A step and its revert."""
    n, at = int(rng.integers(80, 250)), int(rng.integers(15, 40))
    steps: list[tuple[int, float]] = []
    while True:
        length, effect = int(rng.integers(3, 13)), float(rng.uniform(4, 10) * rng.choice([-1, 1]))
        if at + length > n - 8:
            return n, steps
        steps += [(at, effect), (at + length, -effect)]
        at += length + int(rng.integers(25, 60))


def close(rng: Generator) -> tuple[int, list[tuple[int, float]]]:
    """Two or three steps, three to six heads apart."""
    n, at = int(rng.integers(80, 250)), int(rng.integers(15, 40))
    steps: list[tuple[int, float]] = []
    while at < n - 30:
        for _ in range(int(rng.integers(2, 4))):
            steps.append((at, float(rng.uniform(4, 10) * rng.choice([-1, 1]))))
            at += int(rng.integers(3, 7))
        at += int(rng.integers(30, 60))
    return n, steps


def nothing(low: int, high: int) -> Plan:
    return lambda rng: (int(rng.integers(low, high + 1)), [])


@dataclass(frozen=True)
class Family:
    """A noise on a plan; ``runs`` is the range of runs per head."""

    name: str
    noise: Noise
    plan: Plan
    runs: tuple[int, int]

    def sample(self, seed: int) -> Sample:
        """The series of this seed."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        n, planned = self.plan(rng)
        counts = np.full(n, rng.integers(self.runs[0], self.runs[1] + 1))
        if self.runs[1] > 3:
            counts = rng.integers(self.runs[0], self.runs[1] + 1, n)
        s = BASE * float(np.exp(rng.uniform(np.log(0.0002), np.log(0.05))))
        sigma = self._head_sigma(counts, s)
        levels = np.full(n, BASE)
        for at, effect in planned:
            levels[at:] += effect * sigma
        if levels.min() < 0.3 * BASE:  # large noise: keep the levels positive
            levels += 0.3 * BASE - levels.min()
        series = [runs.tolist() for runs in self.noise(rng, levels, counts, s)]
        return Sample(series, [at for at, _ in planned], levels, sigma)

    def _head_sigma(self, counts: NDArray[np.int64], s: float) -> float:
        """Robust spread of what one head tells, from a long stretch of the same noise without steps."""
        if self.noise in (still, counter):
            return s
        noise = gauss if self.noise in (drifting, bursts) else self.noise
        many = np.resize(counts, 400)
        heads = np.array([np.median(runs) for runs in noise(np.random.default_rng(5), np.full(400, BASE), many, s)])
        return float(max(np.quantile(np.abs(heads - np.median(heads)), 0.683), 0.3 * s))


STEPPED = (
    Family("gauss", gauss, segments(80, 400, 15, 80, weak=2.0, strong=8.0), (1, 1)),
    Family("replicates", layered, segments(80, 400, 15, 80, weak=2.0, strong=8.0), (1, 20)),
    Family("small", gauss, segments(200, 500, 60, 160, weak=1.2, strong=2.5), (1, 5)),
    Family("quiet", gauss, segments(60, 300, 15, 60, weak=3.0, strong=40.0), (2, 5)),
    Family("heavy", heavy, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 5)),
    Family("outliers", outlier_runs, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 5)),
    Family("outliers1", outlier_runs, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 1)),
    Family("glitches", glitches, segments(80, 400, 20, 80, weak=2.5, strong=10.0), (1, 5)),
    Family("bursts", bursts, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 5)),
    Family("bursts_short", bursts, segments(15, 60, 7, 30, weak=3.5, strong=9.0), (1, 5)),
    Family("modes_run", modes_per_run, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (3, 10)),
    Family("modes_boot", modes_per_boot, segments(80, 400, 25, 90, weak=3.0, strong=12.0), (1, 5)),
    Family("layout", layout, segments(120, 400, 40, 100, weak=2.0, strong=6.0), (2, 6)),
    Family("drift", drifting, segments(120, 400, 25, 90, weak=3.0, strong=9.0), (1, 5)),
    Family("memory", remembering, segments(120, 400, 30, 100, weak=2.5, strong=8.0), (1, 5)),
    Family("wander", wandering, segments(120, 400, 30, 100, weak=2.5, strong=8.0), (1, 5)),
    Family("uneven", uneven, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 5)),
    Family("proportional", proportional, segments(80, 300, 15, 60, weak=3.0, strong=9.0), (1, 5)),
    Family("close", gauss, close, (1, 5)),
    Family("pulses", gauss, pulses, (1, 5)),
    Family("short", gauss, segments(30, 45, 8, 20, weak=3.0, strong=9.0), (1, 5)),
    Family("long", heavy, segments(1500, 2500, 40, 300, weak=2.0, strong=8.0), (2, 4)),
    Family("counter", counter, segments(80, 300, 20, 80, weak=2.5, strong=8.0), (1, 3)),
    Family("still", still, segments(60, 300, 10, 60, weak=1.0, strong=20.0), (1, 3)),
    Family("near_zero", near_zero, segments(80, 300, 15, 60, weak=2.5, strong=8.0), (1, 5)),
    Family("skewed", skewed, segments(80, 400, 20, 80, weak=2.5, strong=8.0), (1, 5)),
)
NULLS = tuple(
    Family(f"null_{name}", noise, nothing(*heads), runs)
    for name, noise, heads, runs in (
        ("gauss", gauss, (30, 600), (1, 5)),
        ("short", gauss, (30, 45), (1, 3)),
        ("heavy", heavy, (100, 600), (1, 5)),
        ("outliers", outlier_runs, (100, 600), (1, 5)),
        ("glitches", glitches, (100, 600), (1, 5)),
        ("bursts", bursts, (100, 600), (1, 5)),
        ("bursts_short", bursts, (15, 60), (1, 5)),
        ("modes_run", modes_per_run, (100, 600), (1, 10)),
        ("modes_boot", modes_per_boot, (100, 600), (1, 5)),
        ("layout", layout, (100, 600), (2, 6)),
        ("drift", drifting, (150, 600), (1, 5)),
        ("memory", remembering, (100, 600), (1, 5)),
        ("wander", wandering, (100, 600), (1, 5)),
        ("uneven", uneven, (100, 600), (1, 5)),
        ("counter", counter, (100, 600), (1, 3)),
        ("still", still, (100, 600), (1, 3)),
        ("skewed", skewed, (100, 600), (1, 3)),
        ("long", gauss, (3000, 3000), (3, 3)),
    )
)
