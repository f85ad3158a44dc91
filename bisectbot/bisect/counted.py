"""Pass/fail runs: `rates` behind the face of a belief."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, softmax

from bisectbot.bisect import rates
from bisectbot.bisect.terms import Session

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


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
        return result[:, [0, 0, 1]]

    def two(self, one: Bools, both: Bools) -> Floats | None:  # noqa: ARG002 - not modelled for rates
        return None

    def keep_two(self, pairs: Ints) -> None:
        raise NotImplementedError

    def first_share(self) -> float:
        return 1.0

    def step(self) -> tuple[Floats, Floats]:
        a, b = self._fit.beta[..., 0], self._fit.beta[..., 1]
        mean = a / (a + b)
        variance = mean * (1 - mean) / (a + b + 1)
        return mean[:, 1] - mean[:, 0], np.sqrt(variance.sum(axis=1))

    def small(self) -> Floats:
        return np.zeros(len(self.log_evidence))

    def clarity(self) -> float:
        weight = softmax(self.log_evidence)
        mean, _ = self.step()
        rate = self._fit.beta[..., 0] / self._fit.beta.sum(-1)
        middle = np.clip(rate.mean(axis=1), 1e-3, 1 - 1e-3)
        return float(weight @ (np.abs(mean) / np.sqrt(middle * (1 - middle))))
