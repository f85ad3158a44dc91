"""Which run a host does next, and which build a builder: the order of work of DESIGN §3."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session, joinedload

from bisectbot.config import Config
from bisectbot.store.tables import Branch, Build, BuildState, Host, Purpose, Run, RunState, Tree

AGEING_S = 6 * 3600.0
"""Farm seconds of waiting that lift a run by one purpose, so that backfill is not starved for ever."""
LOOK_AHEAD = 200
"""How many waiting runs of a group are weighed against each other."""
SHARE_WINDOW_S = 24 * 3600.0


def next_run(session: Session, config: Config, host: Host, now: float, farm: float) -> Run | None:
    """The best queued run for ``host``, locked; ``farm`` is farm seconds per real second."""
    waiting = (
        select(Run)
        .join(Build, Run.build_id == Build.id)
        .where(
            Run.state == RunState.QUEUED,
            Run.group_id == host.group_id,
            Run.not_before <= now,
            or_(Run.wanted_host_id.is_(None), Run.wanted_host_id == host.id),
        )
        .options(joinedload(Run.build, innerjoin=True), joinedload(Run.job, innerjoin=True))
        .limit(LOOK_AHEAD)
        .with_for_update(skip_locked=True, of=Run)
    )
    urgent = session.execute(waiting.order_by(Run.purpose, Run.id)).scalars().all()
    if len(urgent) == LOOK_AHEAD:  # others wait beyond the horizon: the oldest of them may have aged past it
        urgent = [*urgent, *session.execute(waiting.order_by(Run.id)).scalars().all()]
    if not urgent:
        return None
    used = _used_shares(session, config, urgent, now, farm)

    def rank(run: Run) -> tuple[int, bool, float, int]:
        waited = (now - run.created) * farm
        lifted = max(Purpose.REQUEST, run.purpose - 10 * int(waited / AGEING_S))
        purpose = run.purpose if run.purpose <= Purpose.REQUEST else lifted
        reboot = run.fresh_boot or run.build.signature != host.booted
        return purpose, reboot, used.get(run.branch_id, 0.0), run.id

    return min(urgent, key=rank)


def _used_shares(
    session: Session, config: Config, runs: Iterable[Run], now: float, farm: float
) -> dict[int | None, float]:
    """Host time that each branch's tree used lately, over its share; asked only if several trees wait."""
    branches = {run.branch_id for run in runs if run.branch_id is not None}
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
