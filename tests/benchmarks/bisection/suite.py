"""The scenarios, and what is counted of each bisection."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from bisectbot.bisect import Costs, Search, State
from tests.benchmarks.bisection import histories
from tests.benchmarks.bisection.families import bound_hours
from tests.benchmarks.bisection.histories import History
from tests.benchmarks.bisection.lab import Lab, Outcome
from tests.benchmarks.bisection.rivals import RIVALS, Answer, Bench


@dataclass(frozen=True)
class Cell:
    """A kind of history, its size, a family of noise, the step in sigma of one run, and the hosts."""

    kind: str
    n: int
    family: str
    step: float
    hosts: int = 1
    lost: float = 0.0
    tool: bool = False
    """As `bisectbot bisect` does: no boots, and nobody claimed a size."""

    def __str__(self) -> str:
        hosts = f", {self.hosts} hosts" if self.hosts > 1 else ""
        return f"{self.kind} {self.n}, {self.family} {self.step:g}σ{hosts}{', no boots, no claim' if self.tool else ''}"

    def rng(self, seed: int) -> np.random.Generator:
        name = f"{self.kind} {self.n} {self.family} {self.step}"
        return np.random.default_rng([seed, zlib.crc32(name.encode())])

    def history(self, rng: np.random.Generator) -> History:
        match self.kind:
            case "line":
                return histories.line(self.n, rng)
            case "merges":
                return histories.merged(self.n, rng)
            case "skips":
                return histories.skips(self.n, rng)
            case "two":
                return histories.two_culprits(self.n, rng)
            case "none":
                return histories.unchanged(self.n)
            case "next":
                return histories.rebuilt(self.n, rng)
            case "lost":
                return histories.rebuilt(self.n, rng, lost=True)
        raise ValueError(self.kind)


QUICK: Final = (
    Cell("line", 10, "gauss", 10),
    Cell("line", 100, "gauss", 4),
    Cell("line", 100, "gauss", 2),
    Cell("line", 100, "bimodal", 4),
    Cell("line", 100, "seed_wis", 228.6),
    Cell("line", 100, "outlier", 4),
    Cell("merges", 100, "gauss", 4),
    Cell("skips", 100, "gauss", 4),
    Cell("none", 100, "gauss", 4),
    Cell("two", 100, "gauss", 4),
    Cell("lost", 200, "gauss", 4),
    Cell("line", 1000, "gauss", 4, hosts=4, lost=0.05),
)
FULL: Final = (
    *QUICK,
    Cell("line", 10, "gauss", 2),
    Cell("line", 100, "gauss", 3),
    Cell("line", 1000, "gauss", 1),
    Cell("line", 1000, "gauss", 10),
    Cell("line", 13000, "gauss", 4),
    Cell("line", 100, "heavy", 2),
    Cell("line", 100, "heavy", 4),
    Cell("line", 100, "bootvar", 2),
    Cell("line", 100, "bootvar", 4),
    Cell("line", 100, "bimodal", 2),
    Cell("line", 100, "drift", 4),
    Cell("line", 100, "mix", 4),
    Cell("merges", 1000, "gauss", 4),
    Cell("none", 100, "gauss", 2),
    Cell("none", 100, "bimodal", 4),
    Cell("next", 1000, "gauss", 4),
    Cell("line", 1000, "gauss", 4, hosts=8),
    Cell("line", 100, "hosts", 4, hosts=4, lost=0.05),
)


@dataclass(frozen=True)
class Row:
    """One bisection by one method."""

    cell: Cell
    method: str
    right: bool
    named: bool
    both: bool
    host_s: float
    wall_s: float
    builds: int
    boots: int
    cpu_s: float
    stated: tuple[tuple[float, bool], ...]
    bound_s: float


def claim(step: float, rng: np.random.Generator) -> float:
    """What a detector would have claimed: the step, a bit too large on average."""
    return float(step * max(rng.normal(1.1, 0.15), 0.6))


def ours(cell: Cell, seed: int) -> Row:
    rng = cell.rng(seed)
    history = cell.history(rng)
    costs = Costs(build_s=300, builders=1, boot_s=0, run_s=300, boot_failure_s=0) if cell.tool else Costs()
    lab = Lab(history, cell.family, cell.step, rng, hosts=cell.hosts, costs=costs, lost=cell.lost)
    search = Search(
        history.graph,
        good=[history.good],
        bad=history.bad,
        effect=None if cell.tool else claim(cell.step, rng),
        costs=costs,
        hosts=cell.hosts,
        seed=seed,
    )
    start = time.process_time()
    outcome = lab.bisect(search, limit_h=100)
    return Row(
        cell,
        "bisectbot",
        _right(history, outcome),
        outcome.verdict.state in {State.CULPRIT, State.CULPRIT_SET, State.CHANGE_ON_GOOD_SIDE},
        set(history.culprits) <= {*outcome.verdict.suspects, *outcome.verdict.others},
        outcome.host_s,
        outcome.wall_s,
        outcome.builds,
        outcome.boots,
        time.process_time() - start,
        tuple(outcome.stated),
        _bound(cell, history),
    )


def _right(history: History, outcome: Outcome) -> bool:
    verdict = outcome.verdict
    if not history.culprits:
        return verdict.state is State.NOT_REPRODUCED
    if history.lost:
        return verdict.state is State.CHANGE_ON_GOOD_SIDE and history.culprits[0] in verdict.suspects
    named = verdict.state in {State.CULPRIT, State.CULPRIT_SET}
    return named and any(c in verdict.suspects for c in history.culprits)


def _bound(cell: Cell, history: History) -> float:
    boot_s = 0 if cell.tool else 180
    return 3600 * bound_hours(cell.family, cell.step, history.candidates, boot_s=boot_s, run_s=300)


def theirs(cell: Cell, seed: int) -> Iterator[Row]:
    """The rivals, where they apply: a line without untestable commits, one host."""
    if cell.kind not in {"line", "none"} or cell.hosts > 1:
        return
    for name, method in RIVALS:
        rng = cell.rng(seed)
        history = cell.history(rng)
        answer: Answer = method(Bench(history, cell.family, cell.step, rng))
        right = answer.named == (history.culprits[0] if history.culprits else None)
        stated = () if answer.stated is None else ((answer.stated, right),)
        yield Row(
            cell,
            name,
            right,
            answer.named is not None,
            right,
            answer.host_s,
            0.0,
            answer.builds,
            answer.boots,
            0.0,
            stated,
            _bound(cell, history),
        )
