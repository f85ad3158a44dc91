"""Which experiments tell most per host second.

An experiment at commit t splits the hypotheses into those under which t is bad and those under which it is
good. What it is worth is the mutual information between hypothesis and outcome; the outcome's distribution
under each hypothesis includes what that hypothesis knows, or does not know, about both levels. So measuring a
reference that is thinner than the commits it is compared with comes out ahead by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect.graph import Candidates, members
from bisectbot.bisect.posterior import Posterior
from bisectbot.bisect.terms import Commit, Costs, Experiment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDE: Final = 800
"""At most so many untested commits are compared for one experiment."""
FANTASIES: Final = 16
"""Imagined outcomes of experiments that are still out."""
WAIT_SHARE: Final = 0.1
"""A build that nobody waits for costs nothing; until builds are foreseen, part of the wait counts."""


@dataclass(frozen=True)
class Situation:
    """What the laboratory looks like when a plan is made."""

    booted: Mapping[str, Commit]
    sessions: Mapping[str, int]
    built: Collection[Commit]
    costs: Costs
    counts: tuple[int, ...]
    skipped: frozenset[Commit]
    tested: frozenset[Commit]


@dataclass(frozen=True)
class _Options:
    """Commits to choose from: their sides (commits, 3, rows), and how likely they can be tested."""

    commits: list[Commit]
    sides: Floats
    testable: Floats

    def take(self, index: Ints) -> _Options:
        return _Options([self.commits[i] for i in index], self.sides[index], self.testable[index])


class Planner:
    """Chooses experiments under one posterior."""

    def __init__(self, posterior: Posterior, situation: Situation, rng: np.random.Generator) -> None:
        self._posterior = posterior
        self._situation = situation
        self._rng = rng
        self._rows = posterior.rows()
        self._options = self._gather()
        self._outcomes: dict[tuple[int, int | None], Floats] = {}

    def choose(self, idle: int, pending: Sequence[Experiment], hosts: Sequence[str]) -> list[Experiment]:
        """At most `idle` experiments, best first, each worth most given those before it."""
        chosen: list[Experiment] = []
        free = list(hosts)
        options = self._options
        while len(chosen) < idle and options.commits:
            worlds = self._imagine([*pending, *chosen])
            experiment, value, order = self._best(options, worlds, free)
            if experiment is None or value <= 0:
                break
            chosen.append(experiment)
            if experiment.host in free:
                free.remove(experiment.host)
            if len(options.commits) > WIDE // 4:
                options = options.take(np.sort(order[: WIDE // 4]))
        return chosen

    def foresee(self, n: int, pending: Sequence[Experiment]) -> list[Commit]:
        """Untested commits that are likely to be wanted after what is out has come back."""
        wanted: dict[Commit, float] = {}
        out = list(pending)
        if not out:
            first, _, _ = self._best(self._options, self._rows[None], [])
            out = [first] if first else []
            if first:
                wanted[first.commit] = float(FANTASIES)
        for world in self._imagine(out):
            experiment, _, _ = self._best(self._options, world[None], [])
            if experiment:
                wanted[experiment.commit] = wanted.get(experiment.commit, 0.0) + 1.0
        unbuilt = [c for c in wanted if c not in self._situation.built and c not in self._situation.tested]
        return sorted(unbuilt, key=lambda c: -wanted[c])[:n]

    # -- what there is to choose from ------------------------------------------------------------------

    def _gather(self) -> _Options:
        posterior, situation = self._posterior, self._situation
        candidates = posterior.candidates
        probability = posterior.involved()
        order = np.argsort(-probability, kind="stable")
        enough = int(np.searchsorted(np.cumsum(probability[order]), 0.9995 * probability.sum())) + 1
        active = np.sort(order[:enough])
        if len(active) > WIDE:
            active = active[np.linspace(0, len(active) - 1, WIDE).round().astype(np.int64)]
        parts = _parts_of_candidates(posterior, active)
        testable = _testable(candidates, active, situation)
        commits: list[Commit] = []
        keep: list[int] = []
        for i, hypothesis in enumerate(active):
            commit = candidates.key(int(hypothesis))
            if commit not in situation.skipped and commit not in situation.tested:
                commits.append(commit)
                keep.append(i)
        known = [c for c in dict.fromkeys([*candidates.landmarks(), *posterior.keys]) if c not in situation.skipped]
        return _Options(
            commits + known,
            posterior.sides(np.vstack([parts[keep], posterior.parts(known)])),
            np.concatenate([testable[keep], np.ones(len(known))]),
        )

    # -- what an experiment is worth --------------------------------------------------------------------

    def _expected(self, runs: int, session: int | None) -> Floats:
        key = (runs, session)
        if key not in self._outcomes:
            belief = self._posterior.belief
            if belief is None:  # nothing seen yet: as if every run told its side
                self._outcomes[key] = np.broadcast_to(np.eye(3), (len(self._rows), 3, 3))
            else:
                self._outcomes[key] = belief.expected(runs, session)
        return self._outcomes[key]

    def _information(self, sides: Floats, outcomes: Floats, worlds: Floats) -> Floats:
        """Mutual information in nats of each option (options, 3, rows), averaged over worlds (worlds, rows)."""
        density = outcomes.swapaxes(0, 1).reshape(-1, outcomes.shape[-1])  # (3 rows, outcomes)
        entropy = -(density * np.log(np.maximum(density, 1e-300))).sum(-1)
        gain = np.zeros(len(sides))
        for world in worlds:
            weight = (sides * world).reshape(len(sides), -1)
            mixed = weight @ density
            gain += -(mixed * np.log(np.maximum(mixed, 1e-300))).sum(-1) - weight @ entropy
        return np.maximum(gain / len(worlds), 0.0)

    def _best(self, options: _Options, worlds: Floats, hosts: Sequence[str]) -> tuple[Experiment | None, float, Ints]:
        costs, situation = self._situation.costs, self._situation
        unbuilt = np.array([c not in situation.built and c not in situation.tested for c in options.commits])
        wait = unbuilt * (costs.build_s * WAIT_SHARE)
        lost = (1 - options.testable) * costs.boot_failure_s
        best: tuple[float, Experiment] | None = None
        order = np.arange(len(options.commits))
        for count in situation.counts:
            value = options.testable * self._information(options.sides, self._expected(count, None), worlds)
            rate = value / (costs.boot_s + count * costs.run_s + wait + lost + 1e-6)
            top = int(rate.argmax())
            if best is None or rate[top] > best[0] * 1.0001:
                best = float(rate[top]), Experiment(options.commits[top], count, fresh_boot=True)
                order = np.argsort(-rate, kind="stable")
        for host in hosts:
            session = situation.sessions.get(host)
            if session is None or situation.booted[host] not in options.commits:
                continue
            i = options.commits.index(situation.booted[host])
            for count in situation.counts:
                value = self._information(options.sides[i : i + 1], self._expected(count, session), worlds)
                rate = value / (count * costs.run_s + 1e-6)
                if best is None or rate[0] > best[0] * 1.0001:
                    best = float(rate[0]), Experiment(options.commits[i], count, host)
        return (best[1], best[0], order) if best else (None, 0.0, order)

    def _imagine(self, pending: Sequence[Experiment]) -> Floats:
        """Weights of the rows in possible worlds where the pending experiments have come back."""
        if not pending:
            return self._rows[None]
        posterior = self._posterior
        sides = posterior.sides(posterior.parts([e.commit for e in pending]))
        worlds = np.zeros((FANTASIES, len(self._rows)))
        truth = self._rng.choice(len(self._rows), size=FANTASIES, p=self._rows / self._rows.sum())
        for w, row in enumerate(truth):
            weight = self._rows.copy()
            for side, experiment in zip(sides, pending, strict=True):
                outcomes = self._expected(experiment.runs, None)
                chances = side[:, row] @ outcomes[row]
                outcome = int(self._rng.choice(len(chances), p=chances / chances.sum()))
                weight *= (side * outcomes[:, :, outcome].T).sum(axis=0)
            worlds[w] = weight / weight.sum()
        return worlds


def _parts_of_candidates(posterior: Posterior, hypotheses: Ints) -> Floats:
    """`posterior.parts` for the keys of many hypotheses at once."""
    candidates, labels = posterior.candidates, posterior.labels
    classes, new = len(posterior.weight), len(candidates.new)
    onehot = np.zeros((len(candidates), classes), dtype=np.float32)
    onehot[np.arange(len(candidates)), labels] = posterior.mass
    parts = np.zeros((len(hypotheses), classes))
    if candidates.chain:
        parts[:] = np.cumsum(onehot, axis=0, dtype=np.float64)[hypotheses]
    else:
        is_new = hypotheses < new
        for start in range(0, len(hypotheses), 200):  # a slice at a time keeps memory small
            some = hypotheses[start : start + 200]
            has = np.unpackbits(candidates.reach[some], axis=1, count=len(candidates)).astype(np.float32)
            parts[start : start + 200] = has @ onehot
        all_new = onehot[:new].sum(axis=0)
        all_lost = onehot[new:].sum(axis=0)
        parts[~is_new] = all_new + (all_lost - parts[~is_new])
    parts /= posterior.class_mass
    return np.clip(parts, 0.0, 1.0)


def _testable(candidates: Candidates, hypotheses: Ints, situation: Situation) -> Floats:
    """Chance that a commit builds and boots: broken stretches have any length, likelier short than long."""
    broken = np.array(sorted(_places(candidates, situation.skipped)), dtype=np.float64)
    if not len(broken):
        return np.ones(len(hypotheses))
    sound = np.array(sorted({-1, len(candidates), *_places(candidates, situation.tested)}), dtype=np.float64)
    at = hypotheses.astype(np.float64)
    chance = np.ones(len(hypotheses))
    for spot in broken:
        right = sound[np.searchsorted(sound, spot, side="right")]
        left = sound[max(np.searchsorted(sound, spot) - 1, 0)]
        edge = np.where(at >= spot, right - spot, spot - left)
        distance = np.abs(at - spot)
        inside = (distance < edge) & (distance > 0)
        fail = 0.8 * (1 - np.log1p(distance) / np.log1p(np.maximum(edge, 1.0)))
        chance = np.where(inside, np.minimum(chance, 1 - fail), chance)
    return np.clip(chance, 0.05, 1.0)


def _places(candidates: Candidates, commits: Collection[Commit]) -> set[int]:
    found = (candidates.index.get(members(c)[-1]) for c in commits)
    return {i for i in found if i is not None}
