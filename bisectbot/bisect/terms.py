"""What goes into a bisection and what comes out: values without behaviour."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum

Commit = int | tuple[int, ...]
"""A node of the graph, or several: their merge, which contains what any of them contains."""


@dataclass(frozen=True)
class Costs:
    """What an experiment costs, in seconds of wall clock.

    Host seconds are boots and runs; a build occupies one of `builders` machines beside the hosts.
    """

    build_s: float = 600
    builders: int = 4
    boot_s: float = 180
    run_s: float = 300
    boot_failure_s: float = 900


@dataclass(frozen=True)
class Session:
    """The runs of one boot of one kernel on one host; `at` in seconds on any clock."""

    host: str | None
    boot: Hashable
    values: tuple[float, ...]
    at: float | None = None


@dataclass(frozen=True)
class Experiment:
    """Boot `commit` and run it `runs` times.

    `host` is given when it must be that one: it is booted with the commit already, and stays so unless
    `fresh_boot` asks for another boot all the same.
    """

    commit: Commit
    runs: int
    host: str | None = None
    fresh_boot: bool = False


class Side(StrEnum):
    """Which of the two levels a commit is at."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Evidence:
    """What is known of one tested commit: `level` is robust, `odds` is bad against good (may be inf or 0)."""

    commit: Commit
    runs: int
    boots: int
    level: float
    side: Side
    odds: float


@dataclass(frozen=True)
class Estimate:
    """What is still to come: runs, builds, seconds of hosts and of the clock."""

    runs: int
    builds: int
    host_s: float
    wall_s: float


class State(StrEnum):
    """How a bisection stands. All but `RUNNING` are final."""

    RUNNING = "running"
    CULPRIT = "culprit"
    CULPRIT_SET = "culprit_set"
    NOT_REPRODUCED = "not_reproduced"
    CHANGE_ON_GOOD_SIDE = "change_on_good_side"
    NO_SINGLE_CULPRIT = "no_single_culprit"
    GAVE_UP = "gave_up"


@dataclass(frozen=True)
class Verdict:
    """The answer so far.

    `probability` belongs to what `state` claims: that the culprit (or one of the suspects) made the change,
    or that there is none. `suspects` are the culprit and what untestable commits leave inseparable from it,
    `others` further culprits, `ranking` the likeliest commits with their probabilities, best first.
    `effect` is bad minus good as measured, in KPI units, with its 95 % interval; `share` says how much of
    it the culprit explains (1 when there is no other).
    """

    state: State
    culprit: int | None
    probability: float
    suspects: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    ranking: tuple[tuple[int, float], ...] = ()
    effect: float | None = None
    reason: str = ""
    interval: tuple[float, float] | None = None
    share: float = 1.0
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)
