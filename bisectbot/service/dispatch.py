"""From planned to queued, and the hints that wake the workers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from bisectbot.service import order
from bisectbot.service.claims import host_lease
from bisectbot.service.context import Context
from bisectbot.service.deliveries import release_runs
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import Build, BuildState, Host, Run, RunState

HINT_AGAIN_S = 30.0
"""Farm seconds after which a hint that led to nothing is sent again: it may have been lost with the broker."""
QUEUE_DEPTH = 64
"""Builds that are queued at once; more would only be re-ordered."""


@dataclass(frozen=True)
class Outstanding:
    """Hints to send once the transaction has been committed."""

    builds: tuple[int, ...]
    runs: tuple[tuple[str, int], ...]


def dispatch(context: Context) -> int:
    """Publish and queue builds, wake hosts that have work; returns how many hints were sent."""
    publish = _wanted_builds(context)
    for _, sha in publish:
        context.mirror.publish(sha)
    with context.database.write() as session:
        _queue_builds(session, [build for build, _ in publish])
        _release_orphans(session)
        hints = Outstanding(_build_hints(context, session), _run_hints(context, session))
    sent = [context.hints.build(build) for build in hints.builds]
    sent += [context.hints.run(host, run) for host, run in hints.runs]
    return sum(sent)


def _wanted_builds(context: Context) -> list[tuple[int, str]]:
    """Planned builds that somebody waits for, best first, with their commits; published before they are queued."""
    with context.database.read() as session:
        waiting = exists().where(Run.build_id == Build.id, Run.state == RunState.PLANNED)
        query = select(Build).where(Build.state == BuildState.PLANNED, waiting).order_by(Build.rank, Build.id)
        return [(build.id, build.commit.sha) for build in session.execute(query.limit(QUEUE_DEPTH)).scalars()]


def _queue_builds(session: Session, builds: list[int]) -> None:
    for build in session.execute(select(Build).where(Build.id.in_(builds)).with_for_update()).scalars():
        if build.state is BuildState.PLANNED:
            build.state = BuildState.QUEUED


def _release_orphans(session: Session) -> None:
    """Runs that were planned while their build was being delivered."""
    closed = [state for state in BuildState if not state.open]
    waiting = exists().where(Run.build_id == Build.id, Run.state == RunState.PLANNED)
    for build in session.execute(select(Build).where(Build.state.in_(closed), waiting)).scalars():
        release_runs(session, build)


def _build_hints(context: Context, session: Session) -> tuple[int, ...]:
    time = now(session)
    again = time - context.clock.real(HINT_AGAIN_S)
    hints = []
    for build in session.execute(order.waiting_builds(time).where(Build.hinted < again).limit(QUEUE_DEPTH)).scalars():
        build.hinted = time
        hints.append(build.id)
    return tuple(hints)


def _run_hints(context: Context, session: Session) -> tuple[tuple[str, int], ...]:
    """One hint for each idle host that has work and was not told lately."""
    time = now(session)
    again = time - context.clock.real(HINT_AGAIN_S)
    working = select(Host).where(Host.state.in_(order.WORKING))
    hints = []
    for host in session.execute(working).scalars().all():
        query = (
            select(Run.id)
            .where(
                Run.state == RunState.QUEUED,
                Run.group_id == host.group_id,
                Run.not_before <= time,
                or_(Run.wanted_host_id.is_(None), Run.wanted_host_id == host.id),
                order.allowed(host),
            )
            .order_by(Run.purpose, Run.id)
            .limit(1)
        )
        run = session.execute(query).scalar_one_or_none()
        if run is None or _busy(session, host):
            continue
        if host.hinted < again:
            host.hinted = time
            hints.append((host.name, run))
    return tuple(hints)


def _busy(session: Session, host: Host) -> bool:
    """Whether a run of this host holds its lease: its worker is told to look again when it delivers."""
    if leases.holder(session, host_lease(host)) is None:
        return False
    busy = select(Run.id).where(Run.host_id == host.id, Run.state.in_([RunState.LEASED, RunState.RUNNING]))
    return session.execute(busy.limit(1)).first() is not None
