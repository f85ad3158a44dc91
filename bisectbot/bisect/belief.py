"""What a model of the runs tells: how likely each hypothesis is, and what it expects to see next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp, ndtr, softmax

from bisectbot.bisect import levels, noise, rates
from bisectbot.bisect.terms import Session

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CLAIMED: Final = levels.StepPrior((0.85, 0.8), (0.3, 1.1), (0.8, 0.2), negligible=0.35)
"""An alarm chooses large deviations: the true step is expected a bit below the claim."""
UNCLAIMED: Final = levels.StepPrior((0.0, 0.0), (1.2, 2.5), (0.8, 0.2), negligible=0.0)
KEPT_KINDS: Final = 14
COARSE: Final = 4
PLANNED_KINDS: Final = 4
BINS: Final = 48
KINDS: Final = noise.table()


class Belief(Protocol):
    """Rows are hypotheses; each expects a good level (side 0) and a bad level (side 1)."""

    @property
    def log_evidence(self) -> Floats:
        """Per row."""

    def two(self, one: Bools, both: Bools) -> Floats | None:
        """Log evidence of pairs of changes: boots with only the first, and with both, each (pairs, N)."""

    def keep_two(self, pairs: NDArray[np.int64]) -> None:
        """Which of those pairs become rows after all others."""

    def expected(self, runs: int, session: int | None = None) -> Floats:
        """Probability of each outcome of `runs` runs: (rows, 3 sides, outcomes); sides as in `Side`.

        In a fresh boot, or continuing observation number `session`.
        """

    def step(self) -> tuple[Floats, Floats]:
        """Bad minus good in KPI units per row: mean and standard deviation."""

    def small(self) -> Floats:
        """Probability per row that the step is negligible against the claim."""

    def clarity(self) -> float:
        """The step in deviations of one run."""


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
        states: Floats,
        scale: Scale,
        history: Sequence[Session],
        tables: Tables,
        *,
        claimed: bool,
    ) -> None:
        self._scale, self._states = scale, states
        self._sessions = [Session(s.host, s.boot, tuple(scale.apply(s.values)), s.at) for s in sessions]
        prior = CLAIMED if claimed else UNCLAIMED
        self._small = prior.negligible
        self._grid = _grid(self._sessions, states)
        table = tables.of(self._sessions, self._grid)
        kinds = _weigh_by_history(KINDS, scale, history)
        few = self._choose(table, kinds, states, prior)
        self._kinds, self._table, self._step_prior = kinds.take(few), table[:, few], prior
        places = _places(self._sessions)
        self._fit = _fit_all(states, self._table, self._grid, prior, hosts=places, kinds=self._kinds)
        self._two: levels.TwoFit | None = None
        joint = self._fit.log_evidence + self._kinds.log_prior
        self.log_evidence: Floats = logsumexp(joint, axis=1)
        self._share = np.exp(joint - self.log_evidence[:, None])  # of each kind, per row

    def _choose(self, table: Floats, kinds: noise.Kinds, states: Floats, prior: levels.StepPrior) -> NDArray[np.int64]:
        """The few kinds that carry nearly all the weight, judged by the likeliest rows."""
        grid = self._grid.thinned(2)
        table = table[..., ::2]
        coarse = np.arange(7, len(kinds), 17)
        rough = levels.evidence(states, table[:, coarse], grid, prior) + kinds.log_prior[coarse]
        rows = np.argsort(-rough.max(axis=1), kind="stable")[:3]
        weight = logsumexp(levels.evidence(states[rows], table, grid, prior), axis=0) + kinds.log_prior
        return np.sort(np.argsort(-weight, kind="stable")[:KEPT_KINDS])

    def two(self, one: Bools, both: Bools) -> Floats | None:
        few, _ = self._planned
        grid = self._grid.thinned(COARSE)
        table = self._table[:, few, ::COARSE]
        self._two = levels.fit_two(one.astype(np.float32), both.astype(np.float32), table, grid, self._step_prior)
        # against a single change seen through the same few kinds and the same coarse grid
        rows = np.argsort(-self.log_evidence, kind="stable")[:1]
        alone = levels.evidence(self._states[rows], table, grid, self._step_prior)
        prior = self._kinds.log_prior[few]
        correction = self.log_evidence[rows[0]] - logsumexp(alone + prior, axis=1)[0]
        result: Floats = logsumexp(self._two.log_evidence + prior, axis=1) + correction
        return result

    def keep_two(self, pairs: NDArray[np.int64]) -> None:
        assert self._two is not None
        two = self._two
        self._two = levels.TwoFit(two.log_evidence[pairs], two.good[pairs], two.middle[pairs], two.bad[pairs])

    def expected(self, runs: int, session: int | None = None) -> Floats:
        few, at, sides = self._outlook
        kinds = self._kinds.take(few)
        boot, run = kinds.boot_variance, kinds.sigma**2
        mean = np.broadcast_to(at, (len(kinds), len(at)))
        if session is not None:
            seen = self._sessions[session].values
            boot = kinds.boot_spread
            pull = boot / (boot + kinds.run_variance / len(seen))
            mean = (1 - pull)[:, None] * at + (pull * float(np.mean(seen)))[:, None]
            boot = boot * (1 - pull)
        stray = kinds.stray ** ((runs + 1) // 2)
        odd = kinds.odd if session is None else np.zeros(len(kinds))
        edges = np.linspace(max(at[0] - 1.0, -6.0), min(at[-1] + 1.0, 6.0), BINS - 1)
        outcome = np.zeros((len(kinds), len(at), BINS))
        for part, spread in (
            ((1 - stray) * (1 - odd), boot + run / runs),
            (stray * (1 - odd), boot + kinds.broad**2),
            (odd, boot + kinds.mode**2 + run),
        ):
            below = ndtr((edges - mean[..., None]) / np.sqrt(spread)[:, None, None])
            outcome[..., 1:-1] += part[:, None, None] * (below[..., 1:] - below[..., :-1])
            outcome[..., 0] += part[:, None] * below[..., 0]
            outcome[..., -1] += part[:, None] * (1 - below[..., -1])
        flat = outcome.reshape(-1, BINS)
        return np.stack([side.reshape(len(side), -1) @ flat for side in sides], axis=1)

    @cached_property
    def _planned(self) -> tuple[NDArray[np.int64], Floats]:
        """For planning the likeliest kinds do; their shares per row."""
        weight = softmax(self.log_evidence) @ self._share
        few = np.sort(np.argsort(-weight, kind="stable")[:PLANNED_KINDS])
        share = self._share[:, few] + 1e-12
        return few, share / share.sum(axis=1, keepdims=True)

    @cached_property
    def _outlook(self) -> tuple[NDArray[np.int64], Floats, list[Floats]]:
        """Kinds, levels on a coarse grid, and per side the distribution (rows, kinds, levels)."""
        few, share = self._planned
        at = self._grid.at.reshape(-1, COARSE).mean(axis=1)
        good, bad = (
            share[..., None] * level[:, few].reshape(len(share), len(few), -1, COARSE).sum(axis=-1)
            for level in (self._fit.good, self._fit.bad)
        )
        sides = [good, np.zeros_like(good), bad]
        if self._two is not None:
            own = softmax(self._two.log_evidence + self._kinds.log_prior[few], axis=1)[..., None]
            three = (self._two.good, self._two.middle, self._two.bad)
            sides = [np.concatenate([side, own * level]) for side, level in zip(sides, three, strict=True)]
        return few, at, sides

    def clarity(self) -> float:
        """The step in deviations of one run in a boot of its own, a typical value."""
        weight = softmax(self.log_evidence)
        size = np.maximum(np.abs((self._share[..., None] * self._fit.step).sum(axis=1) @ self._fit.steps), 1e-3)
        noise_ = np.sqrt(self._kinds.sigma**2 + self._kinds.boot_spread)
        return float(np.exp(weight @ (np.log(size) - (self._share * np.log(noise_)).sum(axis=1))))

    def step(self) -> tuple[Floats, Floats]:
        of_step = (self._share[..., None] * self._fit.step).sum(axis=1)
        mean = of_step @ self._fit.steps
        square = of_step @ self._fit.steps**2
        unit = self._scale.unit
        return mean * unit, np.sqrt(np.maximum(square - mean**2, 0.0)) * abs(unit)

    def small(self) -> Floats:
        near = np.abs(self._fit.steps) < self._small
        result: Floats = (self._share * self._fit.step[..., near].sum(-1)).sum(-1)
        return result


class Tables:
    """Likelihood tables of boots already seen, kept so that each is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[float, ...], levels.Grid], Floats] = {}

    def of(self, sessions: Sequence[Session], grid: levels.Grid) -> Floats:
        """(N, all kinds, G)."""
        wanted = dict.fromkeys((s.values, grid) for s in sessions)
        unknown = [key for key in wanted if key not in self._known]
        for start in range(0, len(unknown), 8):  # a few at a time: the parts are large
            some = unknown[start : start + 8]
            new = levels.table(noise.sites(noise.Runs.of([v for v, _ in some]), KINDS), grid)
            self._known.update(zip(some, new, strict=True))
        self._known = {key: self._known[key] for key in wanted}
        return np.stack([self._known[s.values, grid] for s in sessions])


def _fit_all(
    states: Floats,
    table: Floats,
    grid: levels.Grid,
    prior: levels.StepPrior,
    *,
    hosts: Sequence[Sequence[levels.Place]],
    kinds: noise.Kinds,
) -> levels.Fit:
    if len(hosts) == 1 and len(hosts[0]) == 1:
        return levels.fit(states, table, grid, prior)
    return levels.fit_places(states, table, grid, prior, hosts=hosts, kinds=kinds)


def _grid(sessions: Sequence[Session], states: Floats) -> levels.Grid:
    """Where levels may lie: around most of what was seen, with room for a step where one side is unseen."""
    middles = np.array([sum(s.values) / len(s.values) for s in sessions])
    low, high = np.quantile(middles, [0.1, 0.9])
    one_sided = not (states.any() and not states.all(axis=1).any())
    room = 2.0 if one_sided else 0.9
    return levels.Grid(float(np.floor(2 * (low - room)) / 2), float(np.ceil(2 * (high + room)) / 2))


def _places(sessions: Sequence[Session]) -> list[list[levels.Place]]:
    hosts: dict[str | None, list[int]] = {}
    for i, s in enumerate(sessions):
        hosts.setdefault(s.host, []).append(i)
    return [[levels.Place(np.array(boots, dtype=np.int64), 0.0)] for boots in hosts.values()]


def _weigh_by_history(kinds: noise.Kinds, scale: Scale, history: Sequence[Session]) -> noise.Kinds:
    """Older sessions at a good level of their own tell about the noise, and nothing else."""
    if not history:
        return kinds
    weight = kinds.log_prior
    for host in dict.fromkeys(s.host for s in history):
        values = [scale.apply(s.values) for s in history if s.host == host]
        middle = float(np.median(np.concatenate(values)))
        reach = float(np.ptp([np.median(v) for v in values])) / 2 + 0.1
        grid = levels.Grid(middle - reach, middle + reach)
        runs = noise.Runs.of([v.tolist() for v in values])
        weight = weight + logsumexp(levels.table(noise.sites(runs, kinds), grid).sum(axis=0), axis=1)
    return replace(kinds, log_prior=weight - logsumexp(weight))


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

    def keep_two(self, pairs: NDArray[np.int64]) -> None:
        raise NotImplementedError

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
