"""Leases that have ended: their runs and builds become claimable again, nothing more."""

from __future__ import annotations

import structlog
from sqlalchemy.orm import Session

from bisectbot.service.context import Context
from bisectbot.store import leases
from bisectbot.store.tables import Build, BuildState, Run, RunState

log = structlog.get_logger()


def reap(context: Context) -> int:
    """Free what expired leases held; returns how many. The last token stays good until somebody claims anew."""
    freed = 0
    with context.database.write() as session:
        for name in leases.expired(session, "run:"):
            freed += _free_run(session, name)
        for name in leases.expired(session, "build:"):
            freed += _free_build(session, name)
    return freed


def _free_run(session: Session, name: str) -> int:
    run = session.get(Run, int(name.partition(":")[2]), with_for_update=True)
    if run is None or not run.state.open:
        leases.forget(session, name)
        return 0
    if run.state not in {RunState.LEASED, RunState.RUNNING}:
        return 0  # freed already; the lease row stays, its holder may still come back
    run.state = RunState.QUEUED
    log.info("lease ended, run is claimable again", run=run.id, attempts=run.attempts)
    return 1


def _free_build(session: Session, name: str) -> int:
    build = session.get(Build, int(name.partition(":")[2]), with_for_update=True)
    if build is None or not build.state.open:
        leases.forget(session, name)
        return 0
    if build.state not in {BuildState.LEASED, BuildState.BUILDING}:
        return 0
    build.state, build.hinted = BuildState.QUEUED, 0.0
    log.info("lease ended, build is claimable again", build=build.id, attempts=build.attempts)
    return 1
