"""Steps of several KPIs, jobs and hosts at the same heads are one change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bisectbot.detect.step import Direction, Step
from bisectbot.jobs.kpi import Better, Kpi


@dataclass(frozen=True)
class Finding:
    """A step and the series it was found in; ``step.interval`` counts the branch's heads for all series alike."""

    step: Step
    kpi: Kpi
    job: str
    host_group: str

    @property
    def monitor(self) -> bool:
        """A stat without direction: it may explain a change, it never starts a bisection."""
        return self.kpi.better is Better.NONE


@dataclass(frozen=True)
class Change:
    """What probably one commit did: findings whose intervals share a head, strongest first."""

    interval: tuple[int, int]  # heads in which all of them may lie, both included
    findings: tuple[Finding, ...]
    probability: float  # that something really changed; monitors add nothing

    @property
    def bisectable(self) -> bool:
        """Whether it may start a bisection: some KPI with a direction moved."""
        return any(not finding.monitor for finding in self.findings)

    @property
    def index(self) -> int:
        """The first head of the new levels, as the strongest finding sees it."""
        low, high = self.interval
        return min(max(self.findings[0].step.index, low), high)

    @property
    def direction(self) -> Direction:
        """Regression if any KPI regressed, else improvement if any improved, else unknown."""
        found = {finding.step.direction for finding in self.findings}
        for direction in (Direction.REGRESSION, Direction.IMPROVEMENT):
            if direction in found:
                return direction
        return Direction.UNKNOWN


def changes(findings: Iterable[Finding]) -> list[Change]:
    """Group findings into changes, in order of heads.

    KPIs come first, the surest first: each joins the change whose common interval it shares, the one nearest to its
    own index if there are several, and narrows it. Monitors then attach the same way but narrow nothing, since there
    are hundreds of them and some always move.
    """
    ordered = sorted(findings, key=_rank)
    groups: list[tuple[tuple[int, int], list[Finding]]] = []
    for finding in ordered:
        at = _home(groups, finding)
        if at is None:
            groups.append((finding.step.interval, [finding]))
            continue
        interval, members = groups[at]
        if not finding.monitor or members[0].monitor:
            interval = _common(interval, finding.step.interval)
        groups[at] = (interval, [*members, finding])
    found = [Change(interval, tuple(members), _probability(members)) for interval, members in groups]
    return sorted(found, key=lambda change: (change.interval, change.index))


def _rank(finding: Finding) -> tuple[bool, float, int, str, str, str]:
    step = finding.step
    return finding.monitor, -step.probability, step.index, finding.job, finding.host_group, finding.kpi.name


def _common(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _home(groups: list[tuple[tuple[int, int], list[Finding]]], finding: Finding) -> int | None:
    best, nearest = None, math.inf
    for at, (interval, members) in enumerate(groups):
        low, high = _common(interval, finding.step.interval)
        distance = abs(members[0].step.index - finding.step.index)
        if low <= high and distance < nearest:
            best, nearest = at, distance
    return best


def _probability(members: list[Finding]) -> float:
    """1 - the product of doubts, one per job and host group: KPIs of one run err together."""
    judges = [finding for finding in members if not finding.monitor] or members
    surest: dict[tuple[str, str], float] = {}
    for finding in judges:
        where = (finding.job, finding.host_group)
        surest[where] = max(surest.get(where, 0.0), finding.step.probability)
    return 1 - math.prod(1 - probability for probability in surest.values())
