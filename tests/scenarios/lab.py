"""Simulated hosts: what they measure, and how they go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

BOOT, RUN = 180.0, 300.0  # s


class Lost(Exception):  # noqa: N818 - what happened, not an error of the test
    """The host or its connection failed: no result."""


@dataclass(frozen=True)
class Noise:
    """All in percent of the level, at one sigma where it is a spread.

    ``outliers``: part of the runs that are off by ``outlier``; ``lucky``: part of the runs at a worse level that look
    like the good one; ``modes``: part of the boots that are off by ``mode``; ``drift``: per hour, to and fro within 12;
    ``tails``: degrees of freedom of Student's t instead of a Gauss, 0 for none.
    """

    run: float = 1.0
    boot: float = 0.0
    outliers: float = 0.0
    outlier: float = 0.0
    lucky: float = 0.0
    modes: float = 0.0
    mode: float = 0.0
    drift: float = 0.0
    tails: float = 0.0
    flaky: bool = False  # pass or fail: the effect is the rate of failures in percent


@dataclass(frozen=True)
class Faults:
    """``lost`` and ``wrong`` are rates per boot: no result; the old kernel booted instead. ``twice``: of deliveries."""

    lost: float = 0.0
    wrong: float = 0.0
    twice: float = 0.0
    epoch: float | None = None  # s after which the environment differs
    shift: float = 0.0  # percent, by that difference
    neighbour: tuple[str, float, float, float] | None = None  # host, from s, to s, percent


@dataclass(frozen=True)
class Measured:
    """What came back from one boot: the values, under which environment, whether the kernel was the wanted one."""

    values: tuple[float, ...]
    environment: int
    right_kernel: bool
    deliveries: int


@dataclass
class Lab:
    """Hosts of one group, with one clock. ``level`` tells the level of the good end, for luck and wrong kernels."""

    noise: Noise = field(default_factory=Noise)
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    good: float = 100.0
    now: float = 0.0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def boot(self, host: str, level: float, runs: int) -> Measured:
        """Boot a kernel of that level and run it. Raises Lost."""
        rng, faults = self._rng, self.faults
        self.now += BOOT
        if rng.random() < faults.lost:
            raise Lost(host)
        right = rng.random() >= faults.wrong
        level = level if right else self.good
        epoch = faults.epoch is not None and self.now > faults.epoch
        offset = rng.normal(0, self.noise.boot) + self.noise.mode * (rng.random() < self.noise.modes)
        values = []
        for _ in range(runs):
            self.now += RUN
            values.append(self._run(host, level, offset + faults.shift * epoch))
        return Measured(tuple(values), int(epoch), right, 1 + int(rng.random() < faults.twice))

    def _run(self, host: str, level: float, offset: float) -> float:
        rng, noise = self._rng, self.noise
        if noise.flaky:
            return float(rng.random() < (level - self.good) / 100)
        if level < self.good and rng.random() < noise.lucky:
            level = self.good
        draw: Callable[[], float] = (lambda: rng.standard_t(noise.tails)) if noise.tails else rng.standard_normal
        percent = offset + noise.run * draw()
        percent += noise.outlier * (rng.random() < noise.outliers)
        percent += noise.drift * abs((self.now / 3600 + 6) % 24 - 12)
        near = self.faults.neighbour
        if near is not None and near[0] == host and near[1] <= self.now < near[2]:
            percent += near[3]
        return level * (1 + percent / 100)
