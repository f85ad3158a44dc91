"""Is a suspected step real? More runs at its two heads, as few as decide it."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bisectbot.detect.heads import Floats
from bisectbot.errors import UserError

TAIL = 4.0  # degrees of freedom of a boot's result: outliers happen
EFFECTS = np.linspace(0.3, 1.5, 13)  # of the claimed one: what is claimed first is rather too large than too small
LEVELS = 81
SCALES = np.geomspace(1 / 3, 4.0, 11)  # of the noise that the series showed


class Outcome(enum.StrEnum):
    """What to do about a suspected step."""

    REAL = "real"
    NOT_REAL = "not real"
    MORE = "more"


@dataclass(frozen=True)
class Boot:
    """A fresh boot of one of the two heads and what its runs gave, in KPI units."""

    host: str
    boot: str | int
    runs: Sequence[float]


@dataclass(frozen=True)
class Retest:
    """Where a re-test stands. ``more_before`` and ``more_after`` fresh boots are asked for, interleaved."""

    outcome: Outcome
    more_before: int
    more_after: int
    odds: float  # log of how much likelier the boots are under the claimed step than under none
    effect: float | None  # after - before as far as the fresh boots tell; None without boots on both sides


def retest(
    before: Sequence[Boot],
    after: Sequence[Boot],
    *,
    effect: float,
    noise: float,
    false: float = 0.01,
    missed: float = 0.05,
    most: int = 16,
) -> Retest:
    """Decide a suspected step from fresh boots of the head before it and of its first head.

    ``effect`` is the step's (signed), ``noise`` the larger of its two noises, both in KPI units. Give only boots
    made since the alarm: those that raised it were selected and would confirm themselves. Wald's sequential test
    on the likelihood ratio of "a step of 0.3 to 1.5 times the claimed effect" against "none", integrated over
    level and noise of each host: a step that is none is called real with probability ≤ ``false`` (Ville's
    inequality), one as claimed is missed with about ``missed``. After ``most`` boots a side it is not real.
    Raises UserError for a zero effect and values that are no measurements.
    """
    if not (math.isfinite(effect) and effect and math.isfinite(noise) and noise >= 0):
        raise UserError(
            f"cannot re-test an effect of {effect} with noise {noise}: both must be finite, the effect not 0"
        )
    noise = max(noise, abs(effect) * 1e-3)
    odds = sum(_evidence(_values(before, host), _values(after, host), effect, noise) for host in _hosts(before, after))
    accept, refuse = math.log((1 - missed) / false), math.log(missed / (1 - false))
    fewest, full = min(len(before), len(after)), max(len(before), len(after)) >= most
    outcome = Outcome.MORE
    if fewest >= 2 and odds >= accept:
        outcome = Outcome.REAL
    elif (fewest >= 2 and odds <= refuse) or (fewest >= 2 and full):
        outcome = Outcome.NOT_REAL
    if outcome is not Outcome.MORE:
        return Retest(outcome, 0, 0, odds, _difference(before, after))
    target = max(2, fewest + _batch(odds, accept, effect, noise), len(before), len(after))
    target = min(target, max(most, 2))
    return Retest(outcome, max(target - len(before), 0), max(target - len(after), 0), odds, _difference(before, after))


def _batch(odds: float, accept: float, effect: float, noise: float) -> int:
    """Boots a side until the likelier end: a pair of boots gives about effect²/(4 noise²) on average."""
    gain = max(effect**2 / (4 * noise**2), 1e-9)
    return int(min(max(1, math.floor(0.5 * (accept - abs(odds)) / gain)), 3))


def _hosts(before: Sequence[Boot], after: Sequence[Boot]) -> list[str]:
    return sorted({boot.host for boot in before} & {boot.host for boot in after})


def _values(boots: Sequence[Boot], host: str) -> Floats:
    values = np.array([float(np.median(boot.runs)) for boot in boots if boot.host == host])
    if not np.isfinite(values).all():
        raise UserError(f"re-test on {host}: a boot's runs hold NaN or infinity; leave them out")
    return values


def _difference(before: Sequence[Boot], after: Sequence[Boot]) -> float | None:
    hosts = _hosts(before, after)
    if not hosts:
        return None
    return float(np.mean([np.median(_values(after, host)) - np.median(_values(before, host)) for host in hosts]))


def _evidence(before: Floats, after: Floats, effect: float, noise: float) -> float:
    """Log likelihood ratio of a step like the claimed one against none, on one host."""
    both = np.concatenate([before, after])
    margin = 4 * noise + abs(effect)
    level = np.linspace(both.min() - margin, both.max() + margin, LEVELS)
    scale = noise * SCALES
    prior = -0.5 * (np.log(SCALES) / math.log(2.0)) ** 2

    def fit(values: Floats, shift: float) -> Floats:
        distance = (values[:, None, None] - shift - level[None, :, None]) / scale
        return np.asarray((-np.log(scale) - (TAIL + 1) / 2 * np.log1p(distance**2 / TAIL)).sum(axis=0))

    old = fit(before, 0.0) + prior
    none = np.logaddexp.reduce(old + fit(after, 0.0), axis=None)
    some = [np.logaddexp.reduce(old + fit(after, part * effect), axis=None) for part in EFFECTS]
    return float(np.logaddexp.reduce(some) - math.log(len(EFFECTS)) - none)
