"""How well two failure rates explain pass/fail results: the same questions as `levels`, answered exactly.

Runs of a kernel are Bernoulli with an unknown rate, one for the good side and one for the bad, each with
Jeffreys' prior Beta(1/2, 1/2); integrated out, the evidence of k failures in n runs is
B(k + 1/2, n - k + 1/2) / B(1/2, 1/2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

Floats = NDArray[np.float64]
JEFFREYS = 0.5


@dataclass(frozen=True)
class Rates:
    """Per hypothesis (J,): log evidence and the Beta parameters (J, 2 sides, 2) of both rates."""

    log_evidence: Floats
    beta: Floats


def fit(x: Floats, failures: Floats, runs: Floats) -> Rates:
    """Explain N commits with `failures` of `runs` each, x (J, N) saying which side each is on."""
    bad_k, bad_n = x @ failures, x @ runs
    good_k, good_n = failures.sum() - bad_k, runs.sum() - bad_n
    beta = np.stack(
        [
            np.stack([good_k, good_n - good_k], axis=-1),
            np.stack([bad_k, bad_n - bad_k], axis=-1),
        ],
        axis=1,
    )
    beta = beta + JEFFREYS
    return Rates((betaln(beta[..., 0], beta[..., 1]) - betaln(JEFFREYS, JEFFREYS)).sum(-1), beta)
