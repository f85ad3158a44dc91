"""A simulated laboratory: hosts, builders, a clock; experiments end one by one and some get lost."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from bisectbot.bisect import Commit, Costs, Experiment, Search, Session, State, Verdict
from tests.benchmarks.bisection.families import FAMILIES, Host
from tests.benchmarks.bisection.histories import History


@dataclass
class Outcome:
    """What a bisection said and took."""

    verdict: Verdict
    host_s: float = 0.0
    wall_s: float = 0.0
    builds: int = 0
    boots: int = 0
    runs: int = 0
    cpu_s: float = 0.0
    stated: list[tuple[float, bool]] = field(default_factory=list)


@dataclass(order=True)
class _Event:
    at: float
    number: int
    host: str = field(compare=False)
    experiment: Experiment = field(compare=False)
    outcome: str = field(compare=False)  # done, lost, skip
    values: tuple[float, ...] = field(compare=False, default=())
    boot: int = field(compare=False, default=0)


class Lab:
    """Runs a search to its end on `hosts` machines."""

    def __init__(
        self,
        history: History,
        family: str,
        step: float,
        rng: np.random.Generator,
        *,
        hosts: int = 1,
        costs: Costs | None = None,
        lost: float = 0.0,
        conflicts: float = 0.05,
    ) -> None:
        self.history, self.step, self.rng = history, step, rng
        self.costs = costs or Costs()
        self.names = [f"h{i}" for i in range(hosts)]
        self.machines = {name: Host(FAMILIES[family], step, rng) for name in self.names}
        self.lost, self.conflicts = lost, conflicts
        self.booted: dict[str, Commit] = {}
        self.boot: dict[str, int] = {}
        self.ready: dict[Commit, float] = {}
        self.builders = [0.0] * self.costs.builders
        self.merges: dict[Commit, bool] = {}
        self.now = 0.0
        self.numbers = count(1)

    def older_sessions(self, n: int) -> list[Session]:
        """Runs of the good end from before, one to three hosts' worth of boots."""
        sessions = []
        for i in range(n):
            host = self.names[i % len(self.names)]
            self.machines[host].boot()
            values = self.machines[host].runs(self.history.level(self.history.good) * self.step, False, 1, 0.0)
            sessions.append(Session(host, f"old{i}", tuple(values.tolist())))
        return sessions

    def bisect(self, search: Search, *, limit_h: float = 400.0) -> Outcome:
        outcome = Outcome(search.verdict())
        events: list[_Event] = []
        truth = set(self.history.culprits)
        while self.now < limit_h * 3600:
            idle = [h for h in self.names if all(e.host != h for e in events)]
            pending = [e.experiment for e in events]
            built = {c for c, at in self.ready.items() if at <= self.now}
            plan = search.plan(
                idle=len(idle),
                booted={h: c for h, c in self.booted.items() if h in idle},
                built=built,
                pending=pending,
            )
            for experiment in plan:
                host = experiment.host if experiment.host in idle else idle[0]
                idle.remove(host)
                heapq.heappush(events, self._start(experiment, host, outcome))
            free = sum(t <= self.now for t in self.builders)
            if free:
                running = pending + plan
                for commit in search.prebuild(free, built=set(self.ready), pending=running):
                    self._build(commit, outcome)
            if not events:
                break
            self._finish(heapq.heappop(events), search, outcome, truth)
            if search.verdict().state is not State.RUNNING:
                break
        outcome.verdict = search.verdict()
        outcome.wall_s = self.now
        return outcome

    def _build(self, commit: Commit, outcome: Outcome) -> float:
        if commit not in self.ready:
            i = int(np.argmin(self.builders))
            start = max(self.builders[i], self.now)
            self.builders[i] = self.ready[commit] = start + self.costs.build_s
            outcome.builds += 1
        return max(self.ready[commit], self.now)

    def _start(self, experiment: Experiment, host: str, outcome: Outcome) -> _Event:
        commit, costs = experiment.commit, self.costs
        if isinstance(commit, tuple) and commit not in self.merges:
            self.merges[commit] = self.rng.random() >= self.conflicts
        if isinstance(commit, tuple) and not self.merges[commit]:
            return _Event(self.now + 1, next(self.numbers), host, experiment, "skip")
        start = self._build(commit, outcome)
        if (commit[-1] if isinstance(commit, tuple) else commit) in self.history.broken:
            if self.rng.random() < 0.5:  # does not build
                return _Event(start, next(self.numbers), host, experiment, "skip")
            outcome.host_s += costs.boot_failure_s
            self.booted.pop(host, None)
            return _Event(start + costs.boot_failure_s, next(self.numbers), host, experiment, "skip")
        taken = experiment.runs * costs.run_s
        machine = self.machines[host]
        if experiment.fresh_boot or self.booted.get(host) != commit:
            machine.boot()
            self.booted[host] = commit
            self.boot[host] = next(self.numbers)
            outcome.boots += 1
            taken += costs.boot_s
        outcome.host_s += taken
        if self.rng.random() < self.lost:
            self.booted.pop(host, None)
            return _Event(start + taken, next(self.numbers), host, experiment, "lost")
        outcome.runs += experiment.runs
        level = self.history.level(commit)
        bad = level != self.history.level(self.history.good)
        values = machine.runs(level * self.step, bad, experiment.runs, start + taken)
        return _Event(
            start + taken, next(self.numbers), host, experiment, "done", tuple(values.tolist()), self.boot[host]
        )

    def _finish(self, event: _Event, search: Search, outcome: Outcome, truth: set[int]) -> None:
        self.now = event.at
        commit = event.experiment.commit
        if event.outcome == "skip":
            search.skip(commit, "does not build or boot")
        elif event.outcome == "done":
            search.observe(commit, event.values, host=event.host, boot=event.boot, at=self.now)
            ranking = search.verdict().ranking
            if ranking:
                outcome.stated.append((ranking[0][1], ranking[0][0] in truth))
