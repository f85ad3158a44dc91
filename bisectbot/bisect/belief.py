"""What a model of the runs tells: how likely each hypothesis is, and what it expects to see next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp, ndtr

from bisectbot.bisect import levels, noise, rates
from bisectbot.bisect.terms import Session

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP_PRIOR: Final = (0.85, 0.45)
"""An alarm chooses large deviations: the true step is expected a bit below the claim."""
UNCLAIMED_STEP_PRIOR: Final = (0.0, 1.3)
KEPT_KINDS: Final = 12
BINS: Final = 96


class Belief(Protocol):
    """Rows are hypotheses; each expects a good level (side 0) and a bad level (side 1)."""

    @property
    def log_evidence(self) -> Floats:
        """Per row."""

    def expected(self, runs: int, session: int | None = None) -> Floats:
        """Probability of each outcome of `runs` runs: (rows, 2 sides, outcomes).

        In a fresh boot, or continuing observation number `session`.
        """

    def step(self) -> tuple[Floats, Floats]:
        """Bad minus good in KPI units per row: mean and standard deviation."""


@dataclass(frozen=True)
class Scale:
    """Values in units of the expected step: (value - shift) / unit, unit signed."""

    shift: float
    unit: float

    def apply(self, values: Sequence[float]) -> Floats:
        return (np.asarray(values, dtype=np.float64) - self.shift) / self.unit


class Measured:
    """Continuous values: `levels` under the kinds of `noise`."""

    def __init__(
        self,
        sessions: Sequence[Session],
        x: Floats,
        scale: Scale,
        history: Sequence[Session],
        *,
        claimed: bool,
    ) -> None:
        self._scale = scale
        runs = noise.Runs.of([scale.apply(s.values).tolist() for s in sessions])
        hosts = list(dict.fromkeys(s.host for s in sessions))
        self._where = np.array([hosts.index(s.host) for s in sessions], dtype=np.int64)
        self._step_prior = STEP_PRIOR if claimed else UNCLAIMED_STEP_PRIOR
        kinds = _weigh_by_history(noise.table(), scale, history)
        kinds = self._choose(runs, kinds, x, len(hosts))
        self._kinds = kinds
        self._fit = levels.fit(x, self._where, noise.sites(runs, kinds), self._prior(kinds, len(hosts)))
        joint = self._fit.log_evidence + kinds.log_prior
        self.log_evidence: Floats = logsumexp(joint, axis=1)
        self._share = np.exp(joint - self.log_evidence[:, None])  # of each kind, per row
        self._last = [(float(np.mean(scale.apply(s.values))), len(s.values)) for s in sessions]

    def _prior(self, kinds: noise.Kinds, hosts: int) -> levels.Prior:
        mean = np.zeros(1 + hosts)
        covariance = np.zeros((len(kinds), 1 + hosts, 1 + hosts))
        mean[0], deviation = self._step_prior
        covariance[:, 0, 0] = deviation**2
        apart = np.minimum(kinds.boot_variance + kinds.sigma**2, 1.0) + 0.01
        covariance[:, 1:, 1:] = 100.0 + apart[:, None, None] * np.eye(hosts)
        return levels.Prior(mean, covariance)

    def _choose(self, runs: noise.Runs, kinds: noise.Kinds, x: Floats, hosts: int) -> noise.Kinds:
        """The few kinds that carry nearly all the weight, judged by the likeliest rows."""
        coarse = kinds.take(np.arange(4, len(kinds), 19))
        rough = levels.fit(x, self._where, noise.sites(runs, coarse), self._prior(coarse, hosts))
        score = (rough.log_evidence + coarse.log_prior).max(axis=1)
        rows = np.argsort(-score, kind="stable")[:3]
        fine = levels.fit(x[rows], self._where, noise.sites(runs, kinds), self._prior(kinds, hosts))
        weight = logsumexp(fine.log_evidence + kinds.log_prior, axis=0)
        return kinds.take(np.sort(np.argsort(-weight, kind="stable")[:KEPT_KINDS]))

    def expected(self, runs: int, session: int | None = None) -> Floats:
        mean, variance = self._predicted(None if session is None else int(self._where[session]))
        share = self._share[:, None, :]
        boot, run = self._kinds.boot_variance, self._kinds.sigma**2
        if session is not None:
            seen, count = self._last[session]
            pull = boot / (boot + self._kinds.run_variance / count + 1e-12)
            mean = (1 - pull) * mean + pull * seen
            variance = (1 - pull) ** 2 * variance
            boot = boot * (1 - pull)
        stray = self._kinds.stray ** ((runs + 1) // 2)
        low, high = (
            (mean - 4 * np.sqrt(variance + boot + run)).min(),
            (mean + 4 * np.sqrt(variance + boot + run)).max(),
        )
        edges = np.linspace(max(low, -6.0), min(high, 6.0), BINS - 1)
        result = np.zeros((*mean.shape[:2], BINS))
        for part, spread in (
            (1 - stray, variance + boot + run / runs),
            (stray, variance + boot + self._kinds.broad**2),
        ):
            below = ndtr((edges - mean[..., None]) / np.sqrt(spread)[..., None])
            mass = np.diff(below, axis=-1, prepend=0.0, append=1.0)
            result += ((share * part)[..., None] * mass).sum(axis=2)
        return result

    def _predicted(self, where: int | None) -> tuple[Floats, Floats]:
        """Level of either side: mean and variance, (rows, 2, kinds)."""
        mean, covariance = self._fit.mean, self._fit.covariance
        place = 1 + (int(np.bincount(self._where).argmax()) if where is None else where)
        good, good_variance = mean[..., place], covariance[..., place, place]
        bad = good + mean[..., 0]
        bad_variance = good_variance + covariance[..., 0, 0] + 2 * covariance[..., 0, place]
        return np.stack([good, bad], axis=1), np.stack([good_variance, bad_variance], axis=1)

    def step(self) -> tuple[Floats, Floats]:
        mean = (self._share * self._fit.mean[..., 0]).sum(-1)
        square = (self._share * (self._fit.covariance[..., 0, 0] + self._fit.mean[..., 0] ** 2)).sum(-1)
        unit = self._scale.unit
        return mean * unit, np.sqrt(np.maximum(square - mean**2, 0.0)) * abs(unit)


def _weigh_by_history(kinds: noise.Kinds, scale: Scale, history: Sequence[Session]) -> noise.Kinds:
    """Older sessions at a good level of their own tell about the noise, and nothing else."""
    if not history:
        return kinds
    runs = noise.Runs.of([scale.apply(s.values).tolist() for s in history])
    hosts = list(dict.fromkeys(s.host for s in history))
    where = np.array([hosts.index(s.host) for s in history], dtype=np.int64)
    covariance = np.zeros((len(kinds), 1 + len(hosts), 1 + len(hosts)))
    covariance[:, 0, 0] = 1.0
    covariance[:, 1:, 1:] = 1e4 * np.eye(len(hosts))
    seen = levels.fit(
        np.zeros((1, len(history))),
        where,
        noise.sites(runs, kinds),
        levels.Prior(np.zeros(1 + len(hosts)), covariance),
    )
    weight = kinds.log_prior + seen.log_evidence[0]
    return noise.Kinds(kinds.sigma, kinds.ratio, kinds.stray, kinds.broad, weight - logsumexp(weight))


class Counted:
    """Pass/fail: `rates`."""

    def __init__(self, sessions: Sequence[Session], x: Floats) -> None:
        failures = np.array([sum(s.values) for s in sessions])
        count = np.array([float(len(s.values)) for s in sessions])
        self._fit = rates.fit(x, failures, count)
        self.log_evidence: Floats = self._fit.log_evidence

    def expected(self, runs: int, session: int | None = None) -> Floats:  # noqa: ARG002 - runs are independent
        k = np.arange(runs + 1)
        a, b = self._fit.beta[..., :1], self._fit.beta[..., 1:]
        choose = gammaln(runs + 1) - gammaln(k + 1) - gammaln(runs - k + 1)
        result: Floats = np.exp(choose + betaln(a + k, b + runs - k) - betaln(a, b))
        return result

    def step(self) -> tuple[Floats, Floats]:
        a, b = self._fit.beta[..., 0], self._fit.beta[..., 1]
        mean = a / (a + b)
        variance = mean * (1 - mean) / (a + b + 1)
        return mean[:, 1] - mean[:, 0], np.sqrt(variance.sum(axis=1))
