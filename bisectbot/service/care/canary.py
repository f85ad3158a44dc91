"""Hosts watched by what they measure: a canary every day, and the pinned commit against itself every night.

The canary is one commit, pinned in the configuration. Its values on a host are compared with those of the days before;
when they move, the host is suspect and gets nothing but canaries until three have passed in a row, or a person says it
is good. The commit against itself (A/A) goes through the same detector and the same re-test as everything else: each
time that they find a change, it is a false alarm of that host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.config import CanarySpec
from bisectbot.detect import Boot, Outcome, find_steps, retest
from bisectbot.detect.drift import Drift, drift, passes
from bisectbot.errors import InfraError, UserError
from bisectbot.service import catalog
from bisectbot.service.care import doubts, states
from bisectbot.service.context import Context
from bisectbot.service.plan import Why, want_build, want_runs
from bisectbot.source.history import changes, facts
from bisectbot.store.database import now
from bisectbot.store.tables import Build, Host, HostState, Job, Kpi, Purpose, Run, RunState, Sample

log = structlog.get_logger()

PASSES = 3
"""So many canaries in a row clear a host."""
EAGER = 24.0
"""So many times more often than usual a host measures its canary that has to be cleared."""
AA_WINDOW_S = 30 * 24 * 3600.0
LOOK_BACK = 60
"""Sessions that are looked at together."""
SIGMAS = 4.0
"""Of a night's own noise: the change that the re-test of an A/A is told to look for."""


@dataclass(frozen=True)
class Sitting:
    """One planned group of runs on one host: its values by boot, whether all of them came."""

    planned: float
    environment: int | None
    boots: tuple[tuple[float, ...], ...]
    whole: bool

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(value for boot in self.boots for value in boot)


@dataclass(frozen=True)
class Record:
    """How often a host raised an alarm in ``nights`` A/A sessions, none of which had a reason."""

    alarms: int
    nights: int


def canary(context: Context) -> int:
    """Plan what is due, judge what has come; returns how many hosts changed."""
    spec = context.config.canary
    if not spec.commit:
        return 0
    _plan(context, spec)
    with context.database.write() as session:
        hosts = session.execute(select(Host).where(Host.name.in_(context.config.hosts))).scalars().all()
        return sum(_judge(context, session, host) for host in hosts)


def record(session: Session, host: Host, scale: float = 1.0) -> Record:
    """What A/A sessions told of a host in the last 30 days; ``scale`` is the clock's."""
    since = now(session) - AA_WINDOW_S / scale
    sessions = [one for one in _sessions(session, host, Purpose.AA) if one.whole]
    nights = [at for at, one in enumerate(sessions) if one.planned >= since]
    return Record(sum(_alarms(tuple(sessions[: at + 1])) for at in nights), len(nights))


def _plan(context: Context, spec: CanarySpec) -> None:
    real = context.clock.real
    due: list[tuple[int, Purpose]] = []
    with context.database.read() as session:
        for host in session.execute(select(Host).where(Host.name.in_(context.config.hosts))).scalars():
            if host.state in {HostState.MAINTENANCE, HostState.RETIRED}:
                continue
            eager = 1.0 if host.state in states.TRUSTED else EAGER
            if _due(session, host, Purpose.CANARY, real(spec.interval / eager)):
                due.append((host.id, Purpose.CANARY))
            if spec.aa_boots and eager == 1.0 and _due(session, host, Purpose.AA, real(spec.aa_interval)):
                due.append((host.id, Purpose.AA))
    if not due:
        return
    try:
        (info,) = facts(context.mirror.git, [spec.commit])
        identity = changes(context.mirror.git, [info])[0]
    except (InfraError, UserError) as error:
        log.info("the canary's commit is not here yet", commit=spec.commit[:12], error=str(error))
        return
    recipe = context.config.builds[spec.build].recipe(spec.build)
    with context.database.write() as session:
        commit, time = catalog.commit_row(session, info, identity), now(session)
        for host_id, purpose in due:
            host = session.get_one(Host, host_id)
            build = want_build(session, commit.id, recipe, purpose)
            for job in context.config.units(spec.job):
                if job.group == host.group.name:
                    row = catalog.job_row(session, job)
                    for run in _wanted(session, spec, purpose, build, row):
                        run.wanted_host_id, run.created = host.id, time


def _wanted(session: Session, spec: CanarySpec, purpose: Purpose, build: Build, job: Job) -> Iterator[Run]:
    if purpose is Purpose.CANARY:
        yield from want_runs(session, build, job, spec.runs, Why(purpose), fresh_boot=True)
        return
    for _ in range(spec.aa_boots):
        yield from want_runs(session, build, job, 1, Why(purpose), fresh_boot=True)


def _due(session: Session, host: Host, purpose: Purpose, interval: float) -> bool:
    mine = (Run.wanted_host_id == host.id, Run.purpose == int(purpose))
    states = [state for state in RunState if state.open]
    if session.execute(select(Run.id).where(*mine, Run.state.in_(states)).limit(1)).first() is not None:
        return False
    last = session.execute(select(func.max(Run.created)).where(*mine)).scalar()
    return last is None or now(session) - last >= interval


def _judge(context: Context, session: Session, host: Host) -> bool:
    sessions = _sessions(session, host, Purpose.CANARY)
    measured = [one for one in sessions if one.boots]
    if host.state in states.TRUSTED:
        # what was before somebody said that it is good, or was another epoch, was another machine
        epoch = [one for one in measured if one.environment == measured[-1].environment and one.planned >= host.since]
        found = drift([one.values for one in epoch])
        return found is not None and _suspect(context, session, host, found, epoch)
    if host.state in {HostState.SUSPECT, HostState.BAD}:
        return _clear(session, host, sessions)
    return False


def _suspect(context: Context, session: Session, host: Host, found: Drift, epoch: Sequence[Sitting]) -> bool:
    """It was good until the first sitting of the new level; what it measured since the last one before is in doubt."""
    _move(session, host, HostState.SUSPECT, _told(found, epoch))
    host.trusted = epoch[found.since].planned
    host.reason += doubts.told(doubts.hold(context, session, host))
    return True


def _clear(session: Session, host: Host, sessions: Sequence[Sitting]) -> bool:
    """Three canaries in a row that are as those before the trouble: one state better. Three that are not: bad."""
    before = [one.values for one in sessions if one.planned < host.trusted and one.whole]
    since = [one for one in sessions if one.planned >= host.since][-PASSES:]
    if len(since) < PASSES:
        return False
    passed = [one.whole and passes(before, one.values) for one in since]
    if all(passed):
        better = HostState.GOOD if host.state is HostState.SUSPECT else HostState.UNKNOWN
        return _move(session, host, better, f"{PASSES} canaries in a row passed")
    if not any(passed) and host.state is HostState.SUSPECT:
        return _move(session, host, HostState.BAD, f"{PASSES} canaries in a row failed; it was suspect: {host.reason}")
    return False


def _move(session: Session, host: Host, state: HostState, why: str) -> bool:
    states.change(session, host, state, f"{why} (canary)")
    log.warning("host changes its state", host=host.name, state=state.value, reason=why)
    return True


def _told(found: Drift, sessions: Sequence[Sitting]) -> str:
    days = len(sessions) - found.since
    return f"the canary moved by {found.percent:+.2f} % ({days} of {len(sessions)} sessions)"


@lru_cache(maxsize=4096)
def _alarms(sessions: tuple[Sitting, ...]) -> bool:
    """Whether the last night raised an alarm: in the detector, whose heads are boots, or in a re-test of its halves."""
    window = [one for one in sessions if one.environment == sessions[-1].environment][-LOOK_BACK:]
    heads = [boot for one in window for boot in one.boots]
    first = len(heads) - len(sessions[-1].boots)
    if len(find_steps(heads)) > len(find_steps(heads[:first]) if first else ()):  # one more than the night before
        return True
    return _retest_alarms(sessions[-1])


def _retest_alarms(night: Sitting) -> bool:
    boots = [Boot("host", number, runs) for number, runs in enumerate(night.boots)]
    values = [value for boot in night.boots for value in boot]
    noise = _noise(values)
    if len(boots) < 4 or noise <= 0:
        return False
    answer = retest(boots[::2], boots[1::2], effect=SIGMAS * noise, noise=noise)
    return answer.outcome is Outcome.REAL


def _noise(values: Sequence[float]) -> float:
    mean = sum(values) / len(values) if values else 0.0
    return float((sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5)


def _sessions(session: Session, host: Host, purpose: Purpose) -> list[Sitting]:
    """The finished ones, oldest first; the first KPI of the job speaks for it."""
    first = select(func.min(Kpi.id)).where(Kpi.job_id == Run.job_id).scalar_subquery()
    query = (
        select(Run.created, Run.state, Run.environment_id, Run.boot_id, Run.id, Sample.value)
        .outerjoin(Sample, (Sample.run_id == Run.id) & (Sample.kpi_id == first))
        .where(Run.wanted_host_id == host.id, Run.purpose == int(purpose))
        .order_by(Run.created.desc(), Run.id.desc())
        .limit(LOOK_BACK * 16)
    )
    rows = list(reversed(session.execute(query).all()))
    found = []
    for planned, group in groupby(rows, key=lambda row: float(row[0])):
        runs = list(group)
        if any(row[1].open for row in runs):
            continue
        boots: dict[object, list[float]] = {}
        for _, _, _, boot, run, value in runs:
            if value is not None:
                boots.setdefault(boot if boot is not None else f"run {run}", []).append(float(value))
        epoch = next((row[2] for row in reversed(runs) if row[2] is not None), None)
        whole = all(row[1] is RunState.DONE for row in runs)
        found.append(Sitting(planned, epoch, tuple(tuple(values) for values in boots.values()), whole))
    return found[-LOOK_BACK:]
