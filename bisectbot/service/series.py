"""A series as the database holds it: the runs of one KPI along a branch's measured heads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from bisectbot.jobs.kpi import Better
from bisectbot.jobs.kpi import Kpi as KpiSpec
from bisectbot.store.tables import Boot, Build, Head, Host, Kpi, Run, RunState, Sample, Series

HEADS = 1000
"""How many of the newest heads are looked at; older steps were settled long ago."""


@dataclass(frozen=True)
class Point:
    """One run: its value in KPI units, where and when it was measured, in which environment (epoch)."""

    value: float
    host: str
    boot: str
    at: float
    environment: int | None
    step: int | None
    """The step whose re-test it belongs to."""


@dataclass(frozen=True)
class Measured:
    """A head with its runs, all of one environment."""

    head: int
    number: int
    build: int
    points: tuple[Point, ...]

    @property
    def environment(self) -> int | None:
        return self.points[0].environment

    @property
    def values(self) -> list[float]:
        return [point.value for point in self.points]

    @property
    def sessions(self) -> list[tuple[str, str]]:
        return [(point.host, point.boot) for point in self.points]


def kpi_spec(kpi: Kpi) -> KpiSpec:
    """The KPI as the pure rooms know it."""
    return KpiSpec(kpi.name, kpi.unit, Better(kpi.better), kpi.least_effect)


def measured(session: Session, series: Series) -> list[Measured]:
    """The measured heads of a series, oldest first; runs of bisections and requests are left out:
    they were chosen, not sampled.

    A head that was measured in two environments keeps the one in which most of its runs were made.
    """
    host = aliased(Host)
    query = (
        select(Head, Build.id, Sample.value, Run, host.name, Boot.key)
        .join(Build, Build.commit_id == Head.commit_id)
        .join(Run, Run.build_id == Build.id)
        .join(Sample, Sample.run_id == Run.id)
        .join(host, host.id == Run.host_id)
        .outerjoin(Boot, Boot.id == Run.boot_id)
        .where(
            Head.branch_id == series.branch_id,
            Sample.kpi_id == series.kpi_id,
            Run.job_id == series.kpi.job_id,
            Run.state == RunState.DONE,
            Run.experiment_id.is_(None),
            Run.request_id.is_(None),
            Head.number > _oldest(session, series),
        )
        .order_by(Head.number, Run.finished, Run.id)
    )
    found: dict[int, list[Point]] = {}
    heads: dict[int, tuple[int, int]] = {}
    for head, build, value, run, host_name, boot in session.execute(query):
        heads[head.number] = (head.id, build)
        point = Point(value, host_name, boot or f"run {run.id}", run.finished or 0.0, run.environment_id, run.step_id)
        found.setdefault(head.number, []).append(point)
    return [
        Measured(*heads[number][:1], number, heads[number][1], _one_environment(points))
        for number, points in sorted(found.items())
    ]


def _oldest(session: Session, series: Series) -> int:
    newest = select(Head.number).where(Head.branch_id == series.branch_id).order_by(Head.number.desc()).limit(1)
    return (session.execute(newest).scalar_one_or_none() or 0) - HEADS


def _one_environment(points: list[Point]) -> tuple[Point, ...]:
    most, _ = Counter(point.environment for point in points).most_common(1)[0]
    return tuple(point for point in points if point.environment == most)


def breaks(heads: list[Measured]) -> list[int]:
    """Where the environment changed: indexes of the first head in the new one."""
    return [i for i in range(1, len(heads)) if heads[i].environment != heads[i - 1].environment]
