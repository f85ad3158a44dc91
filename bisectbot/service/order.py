"""Which run a host does next, and which build a builder: the order of work."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, true
from sqlalchemy.orm import Session, joinedload

from bisectbot.config import Config
from bisectbot.service.care import states
from bisectbot.store.tables import Branch, Build, BuildState, Host, HostState, Purpose, Run, RunState, Tree

AGEING_S = 6 * 3600.0
"""Farm seconds of waiting that lift a run by one purpose, so that backfill is not starved for ever."""
LOOK_AHEAD = 200
"""How many waiting runs of a group are weighed against each other."""
WORKING = {*states.TRUSTED, HostState.SUSPECT, HostState.BAD}
SHARE_WINDOW_S = 24 * 3600.0


def next_run(session: Session, config: Config, host: Host, now: float, farm: float) -> Run | None:
    """The best queued run for ``host``, locked; ``farm`` is farm seconds per real second. A host that is not trusted
    gets its canary alone, which may clear it.

    Runs are weighed without a lock, so that hosts that ask at once do not hide work from each other; one that somebody
    else is just taking is passed over.
    """
    fitting = (
        Run.state == RunState.QUEUED,
        Run.group_id == host.group_id,
        Run.not_before <= now,
        or_(Run.wanted_host_id.is_(None), Run.wanted_host_id == host.id),
        allowed(host),
    )
    for candidate in _weighed(session, config, host, now, farm, fitting):
        whole = joinedload(Run.build, innerjoin=True).joinedload(Build.commit, innerjoin=True)
        query = select(Run).where(Run.id == candidate, *fitting).options(whole, joinedload(Run.job, innerjoin=True))
        run = session.execute(query.with_for_update(skip_locked=True, of=Run)).scalars().first()
        if run is not None:
            return run
    return None


def allowed(host: Host) -> ColumnElement[bool]:
    """Which runs a host may have, as its state is."""
    return true() if host.state in states.TRUSTED else Run.purpose == int(Purpose.CANARY)


def _weighed(
    session: Session, config: Config, host: Host, now: float, farm: float, fitting: tuple[ColumnElement[bool], ...]
) -> list[int]:
    """Ids of runs that the host may do, best first."""
    columns = (Run.id, Run.purpose, Run.created, Run.branch_id, Run.fresh_boot, Build.signature)
    query = select(*columns).join(Build, Run.build_id == Build.id).where(*fitting).limit(LOOK_AHEAD)
    waiting = session.execute(query.order_by(Run.purpose, Run.id)).all()
    if len(waiting) == LOOK_AHEAD:  # others wait beyond the horizon: the oldest of them may have aged past it
        waiting = list({*waiting, *session.execute(query.order_by(Run.id)).all()})
    used = _used_shares(session, config, {row.branch_id for row in waiting}, now, farm)

    def rank(row: Row[int, int, float, int | None, bool, str]) -> tuple[int, bool, float, int]:
        run, purpose, created, branch, fresh_boot, signature = row
        if purpose > Purpose.REQUEST:
            purpose = max(int(Purpose.REQUEST), purpose - 10 * int((now - created) * farm / AGEING_S))
        reboot = fresh_boot or signature != host.booted
        return purpose, reboot, used.get(branch, 0.0), run

    return [row.id for row in sorted(waiting, key=rank)]


def _used_shares(
    session: Session, config: Config, waiting: set[int | None], now: float, farm: float
) -> dict[int | None, float]:
    """Host time that each branch's tree used lately, over its share; asked only if several trees wait."""
    branches = waiting - {None}
    if len(branches) < 2:
        return {}
    named = select(Branch.id, Tree.name).join(Tree, Branch.tree_id == Tree.id).where(Branch.id.in_(branches))
    trees = dict(session.execute(named).all())
    if len(set(trees.values())) < 2:
        return {}
    recent = (
        select(Tree.name, func.sum(Run.host_s))
        .join(Branch, Run.branch_id == Branch.id)
        .join(Tree, Branch.tree_id == Tree.id)
        .where(Run.finished > now - SHARE_WINDOW_S / farm)
        .group_by(Tree.name)
    )
    used = {name: float(seconds or 0.0) for name, seconds in session.execute(recent)}
    shares = {name: tree.share for name, tree in config.trees.items()}
    return {branch: used.get(tree, 0.0) / shares.get(tree, 1.0) for branch, tree in trees.items()}


def waiting_builds(now: float) -> Select[Build]:
    """The queued builds, best first."""
    return select(Build).where(Build.state == BuildState.QUEUED, Build.not_before <= now).order_by(Build.rank, Build.id)


def next_build(session: Session, now: float) -> Build | None:
    """The best queued build, locked."""
    query = waiting_builds(now).options(joinedload(Build.commit, innerjoin=True)).limit(1)
    return session.execute(query.with_for_update(skip_locked=True, of=Build)).scalars().first()
