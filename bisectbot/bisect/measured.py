"""Runs that give numbers: levels under the kinds of noise, behind the face of a belief."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, softmax

from bisectbot.bisect import levels, noise
from bisectbot.bisect.tables import KINDS, Tables
from bisectbot.bisect.terms import Session

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


CLAIMED: Final = levels.StepPrior((0.85, 0.8), (0.3, 1.1), (0.9, 0.1), negligible=0.35, first=(0.45, 0.6))
"""An alarm chooses large deviations: the true step is expected a bit below the claim."""
UNCLAIMED: Final = levels.StepPrior((0.0, 0.0), (1.2, 2.5), (0.8, 0.2), negligible=0.0, first=(0.0, 0.8))
KEPT_KINDS: Final = 60
NEGLIGIBLE: Final = 1e-3
"""Kinds of together less weight are left out; after PILOT boots, those that can never come back."""
PILOT: Final = 32
HOPELESS: Final = 1e-8
STRETCH: Final = 2
MOST_STRETCHES: Final = 16
"""A host's level counts as constant for so many experiments, or longer in a long search."""
UNSTEADY: Final = ((0.044, 0.0, 0.1), (0.13, 0.0, 0.1), (0.05, 0.1, 0.05))
"""How a host's level may change: drift in steps per √experiment, jumps per experiment, and the prior.

Of experiments of 480 s the second drift makes a step in eight hours; jumps are a machine that changes its speed.
"""
KINDS_OF_DRIFT: Final = 3
KINDS_OF_HOSTS: Final = 6
KINDS_TRIED: Final = 12
ROWS_TRIED: Final = 5
"""Where levels differ between hosts or hours, so many kinds count, chosen by so many of the likeliest rows."""
COARSE: Final = 4
PLANNED_KINDS: Final = 4
BINS: Final = 48
CALM: Final = np.flatnonzero((KINDS.ratio == 0) & (KINDS.stray == 0.01) & (KINDS.odd == 0.01))


@dataclass(frozen=True)
class Scale:
    """Values in units of the expected step: (value - shift) / unit, unit signed."""

    shift: float
    unit: float

    def apply(self, values: Sequence[float]) -> Floats:
        return (np.asarray(values, dtype=np.float64) - self.shift) / self.unit


class Measured:
    """Continuous values: `levels` under the kinds of `noise`.

    `states` says per row (rows, N) which boots are at the bad level; boots with equal `keys` always agree.
    `pace_s` is what a boot and a run take.
    """

    def __init__(
        self,
        sessions: Sequence[Session],
        states: Floats,
        keys: Sequence[Hashable],
        *,
        scale: Scale,
        history: Sequence[Session],
        tables: Tables,
        claimed: bool,
        pace_s: float,
    ) -> None:
        self._scale = scale
        self._sessions = [Session(s.host, s.boot, tuple(scale.apply(s.values)), s.at) for s in sessions]
        self._step_prior = CLAIMED if claimed else UNCLAIMED
        self._grid = _grid(self._sessions, states)
        self._two: levels.TwoFit | None = None
        stretches, length = _stretches(self._sessions, pace_s)
        labels = [(key, host, number) for key, (host, number) in zip(keys, stretches, strict=True)]
        groups = list(dict.fromkeys(labels))
        self._first = [labels.index(group) for group in groups]
        self._states = states[:, self._first]
        self._table_of = partial(tables.of, self._sessions, self._grid, [groups.index(label) for label in labels])
        every = _weigh_by_history(KINDS, scale, history)
        kept = self._choose(every)
        hosts = _places([(host, 0) for _, host, _ in groups], 0.0)
        self._kinds, self._table = every.take(kept), self._table_of(kept)
        self._fit = levels.fit(self._states, self._table, self._grid, self._step_prior)
        if len(hosts) > 1:
            kept = np.union1d(kept[:KINDS_TRIED], self._calm(kept, states))
            self._kinds, self._table, self._fit, few = self._over_places(
                hosts, every.take(kept), self._table_of(kept), KINDS_OF_HOSTS
            )
            kept = kept[few]
        self._steady = logsumexp(self._joint(), axis=1), len(kept)
        places = _places([(host, number) for _, host, number in groups], length / pace_s)
        if any(len(successive) > 1 for successive in places):
            self._allow_drift(places, every, kept, states)
        joint = self._joint()
        self.log_evidence: Floats = logsumexp(joint, axis=1)
        self._share = np.exp(joint - self.log_evidence[:, None])  # of each kind, per row

    def _joint(self) -> Floats:
        return self._fit.log_evidence + self._kinds.log_prior

    def _allow_drift(
        self, places: Sequence[Sequence[levels.Place]], every: noise.Kinds, kept: Ints, states: Floats
    ) -> None:
        """Add the kinds under which hosts drift or jump that explain the likeliest rows best."""
        calm = self._calm(kept, states)
        index = np.repeat(calm, len(UNSTEADY))
        drift, jump, prior = (np.tile(column, len(calm)) for column in np.array(UNSTEADY).T)
        kinds = every.take(index)
        kinds = replace(kinds, drift=drift, jump=jump, log_prior=kinds.log_prior + np.log(prior))
        kinds, table, fit, _ = self._over_places(places, kinds, self._table_of(index), KINDS_OF_DRIFT)
        self._fit = self._fit.joined(fit)
        self._kinds, self._table = self._kinds.joined(kinds), np.concatenate([self._table, table], axis=1)

    def _calm(self, kept: Ints, states: Floats) -> Ints:
        """The best kind, and those as calm as successive boots: what places explain seems noise without them."""
        joint = self._joint()
        best, row = int(logsumexp(joint, axis=0).argmax()), int(logsumexp(joint, axis=1).argmax())
        size = float(self._fit.steps @ self._fit.step[row, best])
        return np.unique([kept[best], *_calm_kinds(self._sessions, size * states[row])])

    def _over_places(
        self, places: Sequence[Sequence[levels.Place]], kinds: noise.Kinds, table: Floats, most: int
    ) -> tuple[noise.Kinds, Floats, levels.Fit, Ints]:
        """Of these kinds those that explain the likeliest rows best, and the fit of all rows under them."""
        joint = self._joint()
        row, kind = np.unravel_index(int(joint.argmax()), joint.shape)
        fit = partial(
            levels.fit_places,
            grid=self._grid,
            prior=self._step_prior,
            hosts=places,
            about=float(self._fit.steps @ self._fit.step[row, kind]),
        )
        rows = np.argsort(-logsumexp(joint, axis=1), kind="stable")[:ROWS_TRIED]
        tried = fit(self._states[rows], table, kinds=kinds).log_evidence + kinds.log_prior
        few = np.argsort(-logsumexp(tried, axis=0), kind="stable")[:most]
        kinds, table = kinds.take(few), table[:, few]
        return kinds, table, fit(self._states, table, kinds=kinds), few

    def _choose(self, every: noise.Kinds) -> Ints:
        """The kinds that carry nearly all of the weight, most first."""
        some = np.arange(len(every))
        if len(self._sessions) > PILOT:
            reached = 1 + max(self._table_of.args[2][:PILOT])
            some = self._weighty(self._table_of(some, PILOT), every, self._states[:, :reached], HOPELESS)
        kept = self._weighty(self._table_of(some), every.take(some), self._states, NEGLIGIBLE)
        return some[kept[:KEPT_KINDS]]

    def _weighty(self, table: Floats, kinds: noise.Kinds, states: Floats, share: float) -> Ints:
        """The kinds that carry all but a share of the weight of all rows and kinds, most first."""
        log_evidence = levels.evidence(states, table[..., ::2], self._grid.thinned(2), self._step_prior)
        joint = log_evidence + kinds.log_prior
        weight = softmax(logsumexp(joint, axis=0))
        order = np.argsort(-weight, kind="stable")
        return order[: int(np.searchsorted(np.cumsum(weight[order]), 1 - share)) + 1]

    def two(self, one: Bools, both: Bools) -> Floats | None:
        known, count = self._steady
        joint = self._joint()[:, :count]
        few = np.argsort(-logsumexp(joint, axis=0), kind="stable")[:PLANNED_KINDS]
        self._two_kinds = few
        one, both = one[:, self._first], both[:, self._first]
        grid = self._grid.thinned(COARSE)
        table = self._table[:, few, ::COARSE]
        self._two = levels.fit_two(one.astype(np.float32), both.astype(np.float32), table, grid, self._step_prior)
        # against a single change seen through the same few kinds and the same coarse grid
        row = int(known.argmax())
        alone = levels.evidence(self._states[[row]], table, grid, self._step_prior)
        prior = self._kinds.log_prior[few]
        correction = known[row] - logsumexp(alone + prior, axis=1)[0]
        result: Floats = logsumexp(self._two.log_evidence + prior, axis=1) + correction
        return result

    def keep_two(self, pairs: Ints) -> None:
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
        for part, spread, shift in (
            ((1 - stray) * (1 - odd), boot + run / runs, 0.0 * odd),
            (stray * (1 - odd), boot + kinds.broad**2, 0.0 * odd),
            (odd, boot + kinds.mode**2 + run, kinds.shift),
        ):
            center = mean + shift[:, None]
            below = ndtr((edges - center[..., None]) / np.sqrt(spread)[:, None, None])
            outcome[..., 1:-1] += part[:, None, None] * (below[..., 1:] - below[..., :-1])
            outcome[..., 0] += part[:, None] * below[..., 0]
            outcome[..., -1] += part[:, None] * (1 - below[..., -1])
        flat = outcome.reshape(-1, BINS)
        return np.stack([side.reshape(len(side), -1) @ flat for side in sides], axis=1)

    def first_share(self) -> float:
        assert self._two is not None
        own = softmax(self._two.log_evidence[0] + self._kinds.log_prior[self._two_kinds])
        at = self._grid.thinned(COARSE).at
        good, middle, bad = (
            float(own @ (level[0] @ at)) for level in (self._two.good, self._two.middle, self._two.bad)
        )
        return (middle - good) / (bad - good) if bad != good else 1.0

    @cached_property
    def _planned(self) -> tuple[Ints, Floats]:
        """For planning the likeliest kinds do; their shares per row."""
        weight = softmax(self.log_evidence) @ self._share
        few = np.sort(np.argsort(-weight, kind="stable")[:PLANNED_KINDS])
        share = self._share[:, few] + 1e-12
        return few, share / share.sum(axis=1, keepdims=True)

    @cached_property
    def _outlook(self) -> tuple[Ints, Floats, list[Floats]]:
        """Kinds, levels on a coarse grid, and per side the distribution (rows, kinds, levels)."""
        few, share = self._planned
        at = self._grid.thinned(COARSE).at
        coarse = levels.spread(self._grid.points, COARSE)
        good, bad = (share[..., None] * (level[:, few] @ coarse) for level in (self._fit.good, self._fit.bad))
        sides = [good, np.zeros_like(good), bad]
        if self._two is not None:
            own = softmax(self._two.log_evidence + self._kinds.log_prior[self._two_kinds], axis=1)[..., None]
            three = (self._two.good, self._two.middle, self._two.bad)
            one, two = len(few), len(self._two_kinds)
            sides = [
                np.concatenate(
                    [np.pad(side, ((0, 0), (0, two), (0, 0))), np.pad(own * level, ((0, 0), (one, 0), (0, 0)))]
                )
                for side, level in zip(sides, three, strict=True)
            ]
            few = np.concatenate([few, self._two_kinds])
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
        noise_ = np.sqrt(self._kinds.run_variance + self._kinds.boot_spread)
        limit = self._step_prior.negligible or noise_[:, None]
        near = np.abs(self._fit.steps) < limit  # (S,) or (K, S)
        result: Floats = (self._share * (self._fit.step * near).sum(-1)).sum(-1)
        return result


def _grid(sessions: Sequence[Session], states: Floats) -> levels.Grid:
    """Where levels may lie: around most of what was seen, with room for a step where one side is unseen."""
    middles = np.array([sum(s.values) / len(s.values) for s in sessions])
    low, high = np.quantile(middles, [0.1, 0.9])
    one_sided = not (states.any() and not states.all(axis=1).any())
    room = 2.0 if one_sided else 0.9
    return levels.Grid(float(np.floor(2 * (low - room)) / 2), float(np.ceil(2 * (high + room)) / 2))


def _stretches(sessions: Sequence[Session], pace_s: float) -> tuple[list[tuple[str | None, int]], float]:
    """Host of each boot and in which stretch of the host's time it was, without a time in the first; their length."""
    start: dict[str | None, float] = {}
    span = 0.0
    for s in sessions:
        if s.at is not None:
            start[s.host] = min(start.get(s.host, s.at), s.at)
    for s in sessions:
        if s.at is not None:
            span = max(span, s.at - start[s.host])
    length = max(STRETCH * pace_s, span / max(MOST_STRETCHES / max(len(start), 1), 4))
    return [(s.host, 0 if s.at is None else int((s.at - start[s.host]) / length)) for s in sessions], length


def _places(stretches: Sequence[tuple[str | None, int]], length: float) -> list[list[levels.Place]]:
    """Per host its stretches in order; `length` in experiments."""
    boots: dict[str | None, dict[int, list[int]]] = {}
    for i, (host, number) in enumerate(stretches):
        boots.setdefault(host, {}).setdefault(number, []).append(i)
    result = []
    for numbers in boots.values():
        order = sorted(numbers)
        gaps = [(b - a) * length for a, b in zip([order[0], *order], order, strict=False)]
        result.append(
            [levels.Place(np.array(numbers[n], dtype=np.int64), gap) for n, gap in zip(order, gaps, strict=True)]
        )
    return result


def _calm_kinds(sessions: Sequence[Session], expected: Floats) -> Ints:
    """The kinds without boots and strays that are about as noisy as successive boots differ."""
    order = sorted(range(len(sessions)), key=lambda i: (str(sessions[i].host), sessions[i].at or 0.0))
    rest = np.array([np.mean(sessions[i].values) - expected[i] for i in order])
    sigma = float(np.median(np.abs(np.diff(rest)))) / 0.954  # of a Gaussian
    above = int(np.searchsorted(KINDS.sigma[CALM], sigma))
    return CALM[max(above - 1, 0) : above + 1]


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
