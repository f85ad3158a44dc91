"""The search for the commit that changed a level: the one object that callers hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from bisectbot.bisect import verdict as verdicts
from bisectbot.bisect.graph import Candidates, CommitGraph, members
from bisectbot.bisect.planner import Planner, Situation
from bisectbot.bisect.posterior import Observed, Posterior, infer, prior_mass
from bisectbot.bisect.serial import serial
from bisectbot.bisect.tables import Tables
from bisectbot.bisect.terms import Commit, Costs, Estimate, Evidence, Experiment, Session, State, Verdict
from bisectbot.errors import UserError

DOUBT: Final = 0.2
"""While it is likelier than this that nothing changed, only the ends are measured."""
OVERHEAD: Final = 1.5
"""What unknown levels and noise cost over the bound that knows them."""
USUAL_CLARITY: Final = 3.0
FEW_RUNS: Final = (1, 2, 3)
MANY_RUNS: Final = (1, 2, 4, 8, 16)
"""How often one boot is run: more of a boot hardly helps where boots differ; pass/fail runs do not."""


class Search:
    """Finds the commit between `good` and `bad` that made the change.

    Nothing is read or written, there is no clock: the state is what was passed to `observe`, `skip` and
    `identical`, in that order, and the same calls give the same plans.
    """

    def __init__(
        self,
        graph: CommitGraph,
        good: Sequence[int],
        bad: int,
        *,
        effect: float | None = None,
        history: Sequence[Session] = (),
        prior: Mapping[int, float] | Sequence[float] | None = None,
        confidence: float = 0.99,
        costs: Costs | None = None,
        hosts: int = 1,
        budget_s: float | None = None,
        seed: int = 0,
    ) -> None:
        if not 0.5 < confidence < 1:
            raise UserError(f"bisection: confidence {confidence} must lie between 0.5 and 1")
        self._candidates = Candidates(graph, list(good), bad)
        self._effect = _finite(effect, "effect") if effect else None
        self._history = tuple(history)
        self._prior = prior
        self._confidence = confidence
        self._costs = costs or Costs()
        self._hosts = max(hosts, 1)
        self._budget_s = budget_s
        self._seed = seed
        self._observed: list[Observed] = []
        self._place: dict[tuple[str | None, Hashable, Commit], int] = {}
        self._skipped: dict[Commit, str] = {}
        self._skipped_there: set[tuple[Commit, str]] = set()
        self._boot_failures = 0
        self._alike: list[tuple[Commit, Commit]] = []
        self._same: dict[Commit, Commit] = {}
        self._known: Posterior | None = None
        self._said: Verdict | None = None
        self._tables = Tables()

    # -- what happened -----------------------------------------------------------------------------------

    def observe(
        self,
        commit: Commit,
        values: Iterable[float],
        host: str | None = None,
        boot: Hashable = None,
        at: float | None = None,
    ) -> None:
        """Runs of one boot came back; the same (host, boot) again appends, no boot is a boot of its own."""
        self._check(commit)
        numbers = tuple(_finite(v, f"a run of commit {commit}") for v in values)
        if not numbers:
            return
        commit = self._same.get(commit, commit)
        label = boot if boot is not None else ("single", len(self._observed))
        place = self._place.get((host, label, commit))
        if place is None:
            self._place[host, label, commit] = len(self._observed)
            self._observed.append(Observed(commit, Session(host, label, numbers, at)))
        else:
            old = self._observed[place].session
            merged = Session(host, label, old.values + numbers, old.at if old.at is not None else at)
            self._observed[place] = Observed(commit, merged)
        self._known = self._said = None

    def skip(self, commit: Commit, reason: str, host: str | None = None) -> None:
        """The commit cannot be built, booted or merged; with a host given, only there."""
        self._check(commit)
        self._boot_failures += "boot" in reason
        if host is not None and self._hosts > 1:
            self._skipped_there.add((commit, host))
            if len({h for c, h in self._skipped_there if c == commit}) < self._hosts:
                return
        self._skipped[commit] = reason
        self._known = self._said = None

    def identical(self, commit: Commit, other: Commit) -> None:
        """Both build to the same image: they are in the same state and share all runs."""
        self._check(commit)
        self._check(other)
        self._alike.append((commit, other))
        target = self._same.get(other, other)
        self._same[commit] = target
        self._same.update({name: target for name, old in self._same.items() if old == commit})
        for i, o in enumerate(self._observed):
            if o.commit == commit:
                self._observed[i] = Observed(target, o.session)
        self._known = self._said = None

    # -- what to do next ---------------------------------------------------------------------------------

    @serial
    def plan(
        self,
        idle: int = 1,
        booted: Mapping[str, Commit] | None = None,
        built: Collection[Commit] | None = None,
        pending: Sequence[Experiment] = (),
    ) -> list[Experiment]:
        """At most `idle` experiments, best first; none while it is better to wait, or when it is over."""
        if idle < 1 or self.verdict().state is not State.RUNNING:
            return []
        first = self._ends_to_see(pending)
        if first is None:
            confirmation = self._confirmation(pending)
            if confirmation is not None:
                return confirmation[:idle]
            first = self._reference(pending)
        first = first[:idle]
        planner = self._planner(booted or {}, built or (), pending)
        return [*first, *planner.choose(idle - len(first), [*pending, *first], sorted(booted or {}))]

    @serial
    def prebuild(self, n: int, built: Collection[Commit] = (), pending: Sequence[Experiment] = ()) -> list[Commit]:
        """What idle builders should build ahead: commits likely to be wanted next."""
        if n < 1 or self.verdict().state is not State.RUNNING:
            return []
        ends = [c for c in self._candidates.landmarks() if not self._boots(c) and c not in built]
        planner = self._planner({}, built, pending)
        return list(dict.fromkeys([*ends, *planner.foresee(n, pending)]))[:n]

    def _ends_to_see(self, pending: Sequence[Experiment]) -> list[Experiment] | None:
        """The ends that were never run and are not out; None once both have been seen."""
        out = [self._same.get(e.commit, e.commit) for e in pending]
        ends: list[Commit] = [self._candidates.good[0], self._candidates.bad]
        missing = [e for e in ends if not self._boots(e) and e not in self._skipped]
        return [Experiment(e, 1, fresh_boot=True) for e in missing if e not in out] if missing else None

    def _confirmation(self, pending: Sequence[Experiment]) -> list[Experiment] | None:
        """Fresh boots that a verdict lacks; None while there is no verdict to confirm."""
        out = [self._same.get(e.commit, e.commit) for e in pending]
        posterior = self._posterior()
        none = verdicts.none_probability(posterior)
        finding = verdicts.find(posterior, self._seen(), self._skipped)
        if none >= self._confidence:
            wanted = verdicts.end_boots_missing(self._candidates, self._seen(), self._skipped)
            return [Experiment(c, 1, fresh_boot=True) for c in wanted if self._same.get(c, c) not in out]
        if finding.probability >= self._confidence and finding.missing:
            return [Experiment(c, 1, fresh_boot=True) for c in finding.missing if self._same.get(c, c) not in out]
        return None

    def _reference(self, pending: Sequence[Experiment]) -> list[Experiment]:
        """The end to measure next: while it is doubtful that anything changed, or a level is too thin.

        A level known from r runs blurs every comparison with it like a run of 1 + 1/r times the variance;
        r = √(runs to come / 3) balances that against the cost of the r.
        """
        posterior = self._posterior()
        none = verdicts.none_probability(posterior)
        out = {self._same.get(e.commit, e.commit) for e in pending}
        ends = [c for c in (self._candidates.good[0], self._candidates.bad) if c not in self._skipped]
        bad = posterior.bad(posterior.keys)
        runs = np.array([self._runs(key) for key in posterior.keys], dtype=np.float64)
        known = {self._candidates.good[0]: float(runs @ (1 - bad)), self._candidates.bad: float(runs @ bad)}
        doubtful = none > DOUBT
        if doubtful:
            known = {c: float(self._runs(c)) for c in ends}
        thin = min((c for c in ends), key=lambda c: known[c], default=None)
        if thin is None or thin in out:
            return []
        wanted = math.sqrt(self._runs_to_come(posterior) / 3)
        if not doubtful and known[thin] >= 0.7 * wanted:
            return []
        few = 2 if doubtful else min(max(round(wanted - known[thin]), 1), FEW_RUNS[-1])
        return [Experiment(thin, few, fresh_boot=True)]

    def _runs_to_come(self, posterior: Posterior) -> float:
        """By information theory: bits still missing over bits of one run, then the last doubts."""
        clarity = self._clarity(posterior)
        probability = posterior.of_commits()
        entropy = float(-(probability * np.log2(np.maximum(probability, 1e-300))).sum())
        capacity = -math.expm1(-0.175 * clarity**2)  # within 4 % of C(d) of Gaussian noise
        return entropy / capacity + math.log(self._confidence / (1 - self._confidence)) / (clarity**2 / 2)

    def _planner(
        self, booted: Mapping[str, Commit], built: Collection[Commit], pending: Sequence[Experiment]
    ) -> Planner:
        posterior = self._posterior()
        there = {host: self._same.get(c, c) for host, c in booted.items()}
        last = {
            o.session.host: i
            for i, o in enumerate(self._observed)
            if o.session.host is not None and there.get(o.session.host) == o.commit
        }
        situation = Situation(
            booted=there,
            sessions=last,
            built=frozenset(built),
            costs=self._costs,
            counts=MANY_RUNS if self._counts() else FEW_RUNS,
            skipped=frozenset(self._skipped),
            tested=frozenset(posterior.keys),
        )
        return Planner(posterior, situation, np.random.default_rng([self._seed, len(self._observed), len(pending)]))

    # -- what is known -----------------------------------------------------------------------------------

    def posterior(self) -> list[tuple[int, float]]:
        """Every candidate with its probability, in the graph's order."""
        probability = self._posterior().of_commits()
        return [(int(c), float(p)) for c, p in zip(self._candidates.commits, probability, strict=True)]

    def evidence(self) -> list[Evidence]:
        """What is known of each tested commit."""
        return verdicts.evidence(self._posterior(), self._observed, self._confidence)

    def verdict(self) -> Verdict:
        """The answer so far; the search goes on while its state is `running`."""
        if self._said is None:
            self._said = verdicts.decide(
                self._posterior(),
                self._seen(),
                frozenset(self._skipped),
                confidence=self._confidence,
                spent=self.spent_s(),
                budget=self._budget_s,
                to_come=self._price().host_s,
            )
        return self._said

    def spent_s(self) -> float:
        """Host seconds so far, by the cost model."""
        runs = sum(len(o.session.values) for o in self._observed)
        costs = self._costs
        return len(self._observed) * costs.boot_s + runs * costs.run_s + self._boot_failures * costs.boot_failure_s

    def estimate(self) -> Estimate:
        """What is still to come, by what information theory asks for; before the first run from the history."""
        if self.verdict().state is not State.RUNNING:
            return Estimate(0, 0, 0.0, 0.0)
        return self._price()

    def _price(self) -> Estimate:
        posterior = self._posterior()
        probability = posterior.of_commits()
        bits = float(-(probability * np.log2(np.maximum(probability, 1e-300))).sum())
        kernels = math.ceil(bits) + 2
        runs = max(math.ceil(OVERHEAD * self._runs_to_come(posterior)), kernels)
        host_s = OVERHEAD * kernels * self._costs.boot_s + runs * self._costs.run_s
        rounds = bits / math.log2(self._hosts + 1) + 1
        wall_s = max(host_s / self._hosts, rounds * (self._costs.build_s + self._costs.boot_s + self._costs.run_s))
        return Estimate(runs, math.ceil(OVERHEAD * bits), host_s, wall_s)

    def _clarity(self, posterior: Posterior) -> float:
        """The step in sigma: as learnt, else the claim against the spread of older runs, else a usual one."""
        if posterior.belief is not None:
            return max(posterior.belief.clarity(), 0.05)
        older = [v for s in self._history for v in s.values]
        if self._effect is None or len(older) < 3 or np.ptp(older) == 0:
            return USUAL_CLARITY
        return max(abs(self._effect) / float(np.std(older, ddof=1)), 0.05)

    @serial
    def _posterior(self) -> Posterior:
        if self._known is None:
            mass = prior_mass(self._candidates, self._prior, self._alike)
            self._known = infer(
                self._candidates,
                mass,
                self._observed,
                effect=self._effect,
                history=self._history,
                tables=self._tables,
                pace_s=max(self._costs.boot_s + self._costs.run_s, 1e-3),
            )
        return self._known

    def _counts(self) -> bool:
        return bool(self._observed) and all(v in (0.0, 1.0) for o in self._observed for v in o.session.values)

    def _seen(self) -> list[Observed]:
        """What was observed, under each name that an image goes by."""
        names: dict[Commit, list[Commit]] = {}
        for name, target in self._same.items():
            names.setdefault(target, []).append(name)
        return [Observed(c, o.session) for o in self._observed for c in (o.commit, *names.get(o.commit, ()))]

    def _runs(self, commit: Commit) -> int:
        return sum(len(o.session.values) for o in self._observed if o.commit == commit)

    def _boots(self, commit: Commit) -> int:
        return sum(o.commit == self._same.get(commit, commit) for o in self._observed)

    def _check(self, commit: Commit) -> None:
        for c in members(commit):
            if not 0 <= c < len(self._candidates.graph):
                raise UserError(f"bisection: commit {c} is not in the graph of {len(self._candidates.graph)} commits")


def _finite(value: float, what: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise UserError(f"bisection: {what} is {number}, not a number that can be compared")
    return number
