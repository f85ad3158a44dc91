"""How well two levels explain the boots, for many hypotheses at once.

For a hypothesis that puts boot b at the bad level by x_b (0 or 1), the level of boot b is

    f_b = o_e(b) + δ x_b

with o_e the good level in environment e (a host, or a stretch of its time) and δ the step, both Gaussian
a priori. Boots are not Gaussian (`noise`), so the evidence is approximated by expectation propagation (Minka
2001): each boot's likelihood is replaced by the Gaussian that gives the right mean and variance in the
context of all others. All hypotheses × kinds of noise are rows of the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect.noise import Sites

Floats = NDArray[np.float64]
SWEEPS: Final = 6
FLAT: Final = 1e-6


@dataclass(frozen=True)
class Prior:
    """Of the coefficients (δ, o_1 … o_E): mean (D,), covariance per kind (K, D, D)."""

    mean: Floats
    covariance: Floats


@dataclass(frozen=True)
class Fit:
    """Log evidence (J, K); mean (J, K, D) and covariance (J, K, D, D) of the coefficients."""

    log_evidence: Floats
    mean: Floats
    covariance: Floats


def fit(x: Floats, environment: NDArray[np.int64], boots: Sites, prior: Prior) -> Fit:
    """Explain N boots: x (J, N) or (J, N, S) with S steps, environment (N,) in 0 … E-1, boots (K, N, C)."""
    steps = x if x.ndim == 3 else x[:, :, None]
    return _Rows(steps, environment, boots, prior).run()


class _Rows:
    def __init__(self, x: Floats, environment: NDArray[np.int64], boots: Sites, prior: Prior) -> None:
        self.boots, self.prior = boots, prior
        dims = prior.mean.shape[0]
        j, n, s = x.shape
        self.design = np.zeros((j, n, dims))  # a_b: the coefficients that make up a boot's level
        self.design[:, :, :s] = x
        self.design[:, np.arange(n), s + environment] = 1.0
        self.prior_precision = np.linalg.inv(prior.covariance)  # (K, D, D)
        self.prior_natural = self.prior_precision @ prior.mean

    def run(self) -> Fit:
        site_precision, site_natural = self._start()
        for sweep in range(SWEEPS):
            mean, covariance = self._combine(site_precision, site_natural)
            at, spread = self._marginals(mean, covariance)
            cavity_precision = np.maximum(1 / spread - site_precision, FLAT)
            cavity_mean = (at / spread - site_natural) / cavity_precision
            log_z, tilted_mean, tilted_variance = self._tilt(cavity_mean, 1 / cavity_precision)
            if sweep == SWEEPS - 1:
                break
            fresh = np.maximum(1 / tilted_variance - cavity_precision, FLAT)
            fresh_natural = (fresh + cavity_precision) * tilted_mean - cavity_precision * cavity_mean
            step = 1.0 if sweep < 2 else 0.7
            site_precision = site_precision + step * (fresh - site_precision)
            site_natural = site_natural + step * (fresh_natural - site_natural)
        cavity_natural = cavity_precision * cavity_mean
        marginal_precision = cavity_precision + site_precision
        marginal_natural = cavity_natural + site_natural
        log_evidence = (
            log_z
            + _log_partition(cavity_precision, cavity_natural)
            - _log_partition(marginal_precision, marginal_natural)
        ).sum(-1) + self._log_partitions(mean, covariance)
        return Fit(log_evidence, mean, covariance)

    def _start(self) -> tuple[Floats, Floats]:
        """Each boot as one Gaussian: the likeliest split alone, somewhat widened."""
        best = self.boots.log_weight.argmax(-1)[..., None]
        variance = 1.5 * np.take_along_axis(self.boots.variance, best, -1)[..., 0]
        mean = np.take_along_axis(self.boots.mean, best, -1)[..., 0]
        shape = (self.design.shape[0], *variance.shape)
        return np.broadcast_to(1 / variance, shape), np.broadcast_to(mean / variance, shape)

    def _combine(self, precision: Floats, natural: Floats) -> tuple[Floats, Floats]:
        weighted = precision[..., None] * self.design[:, None]  # (J, K, N, D)
        total = np.swapaxes(weighted, -1, -2) @ self.design[:, None] + self.prior_precision
        covariance = np.linalg.inv(total)
        pull = (natural[..., None, :] @ self.design[:, None])[..., 0, :] + self.prior_natural
        return (covariance @ pull[..., None])[..., 0], covariance

    def _marginals(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        at = (self.design[:, None] @ mean[..., None])[..., 0]
        spread = ((self.design[:, None] @ covariance) * self.design[:, None]).sum(-1)
        return at, spread

    def _tilt(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Cavity × true likelihood: log normaliser, mean and variance."""
        total = self.boots.variance + variance[..., None]
        gap = (self.boots.mean - mean[..., None]) / total
        log_part = self.boots.log_weight - 0.5 * (np.log(2 * np.pi * total) + gap * (self.boots.mean - mean[..., None]))
        top = log_part.max(-1, keepdims=True)
        part = np.exp(log_part - top)
        whole = part.sum(-1, keepdims=True)
        part /= whole
        slope = (part * gap).sum(-1)
        curve = (part * (gap * gap - 1 / total)).sum(-1) - slope * slope
        shrunk = np.maximum(variance + variance**2 * curve, 1e-9 * variance)
        return (top + np.log(whole))[..., 0], mean + variance * slope, shrunk

    def _log_partitions(self, mean: Floats, covariance: Floats) -> Floats:
        """Of the posterior over that of the prior."""
        natural = np.linalg.solve(covariance, mean[..., None])[..., 0]
        posterior = 0.5 * (natural * mean).sum(-1) + 0.5 * np.linalg.slogdet(covariance)[1]
        prior = 0.5 * (self.prior_natural * self.prior.mean).sum(-1) + 0.5 * np.linalg.slogdet(self.prior.covariance)[1]
        ratio: Floats = posterior - prior
        return ratio


def _log_partition(precision: Floats, natural: Floats) -> Floats:
    return 0.5 * natural**2 / precision - 0.5 * np.log(precision)
