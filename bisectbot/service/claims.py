"""Work given out: what a worker that asks gets, and the heartbeats by which it keeps it.

The message that woke the worker does not matter: the server answers with the best work *now*, or nothing.
"""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.orm import Session

from bisectbot.errors import InfraError, UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import (
    BuildAssignment,
    BuildClaim,
    BuildRecipe,
    Heartbeat,
    HeartbeatReply,
    RunAssignment,
    RunClaim,
)
from bisectbot.service import catalog, order
from bisectbot.service.context import LEASE_S, Context
from bisectbot.source.git import PUBLISHED
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import Build, BuildState, Host, Run, RunState


class HostHeldError(InfraError):
    """Another worker process holds the host; its lease has not ended."""


def claim_run(context: Context, claim: RunClaim) -> RunAssignment | None:
    """The best run for the host now, leased, or None.

    Raises UserError for a host that the configuration does not know, HostHeldError while another worker has it.
    """
    with context.database.write() as session:
        host = catalog.host_row(session, context.config, claim.host)
        if host is None:
            raise UserError(f"host {claim.host!r} is not configured; add hosts/{claim.host}.yaml")
        time = now(session)
        host.seen = time
        host.booted = claim.signature
        if leases.acquire(session, host_lease(host), claim.instance, context.lease_s) is None:
            raise HostHeldError(f"host {claim.host} is held by another worker; its lease ends within {LEASE_S:g} s")
        run = None
        if host.state in order.WORKING:
            run = order.next_run(session, context.config, host, time, context.clock.scale)
        if run is None:
            host.hinted = 0.0  # its worker has looked; new work is told at once
            return None
        return _lease_run(context, session, host, run, claim.instance, time)


def _lease_run(context: Context, session: Session, host: Host, run: Run, instance: str, time: float) -> RunAssignment:
    grant = leases.acquire(session, run_lease(run.id), instance, context.lease_s, floor=run.token)
    assert grant is not None, "a queued run has no holder"
    run.state, run.token, run.host_id, run.started = RunState.LEASED, grant.token, host.id, time
    run.attempts += 1
    if run.experiment_id is not None and run.wanted_host_id is None:
        _keep_together(session, run, host)
    return RunAssignment(
        run=run.id,
        token=grant.token,
        lease_s=LEASE_S,
        host=host.name,
        job=catalog.job_spec(run.job),
        commit=run.build.commit.sha,
        artifact=run.build.artifact,
        signature=run.build.signature,
        fresh_boot=run.fresh_boot,
    )


def _keep_together(session: Session, run: Run, host: Host) -> None:
    """The runs of one experiment belong to one boot of one host."""
    session.execute(
        update(Run)
        .where(Run.experiment_id == run.experiment_id, Run.state == RunState.QUEUED)
        .values(wanted_host_id=host.id)
    )


def claim_build(context: Context, claim: BuildClaim) -> BuildAssignment | None:
    """The best build now, leased, or None."""
    with context.database.write() as session:
        build = order.next_build(session, now(session))
        if build is None:
            return None
        grant = leases.acquire(session, build_lease(build.id), claim.instance, context.lease_s, floor=build.token)
        assert grant is not None, "a queued build has no holder"
        build.state, build.token = BuildState.LEASED, grant.token
        build.attempts += 1
        return BuildAssignment(
            build=build.id,
            token=grant.token,
            lease_s=LEASE_S,
            commit=build.commit.sha,
            fetch_url=context.config.server.fetch_url or str(context.mirror.path.absolute()),
            ref=PUBLISHED + build.commit.sha,
            recipe=recipe_of(build),
        )


def recipe_of(build: Build) -> BuildRecipe:
    """How the build is made, as builders know it."""
    return wire.from_plain(BuildRecipe, build.recipe)


def heartbeat(context: Context, beat: Heartbeat) -> HeartbeatReply:
    """Renew a claim; the reply says to stop when nobody wants the result any more."""
    with context.database.write() as session:
        if beat.kind == "build":
            return _build_beat(context, session, beat)
        run = session.get(Run, beat.id)
        if run is None or run.token != beat.token:
            return HeartbeatReply(go_on=False, reason="the run was given to another worker")
        if not run.state.open:
            return HeartbeatReply(go_on=False, reason=f"the run is {run.state.value}")
        leases.renew(session, run_lease(run.id), beat.token, context.lease_s)
        run.state = RunState.RUNNING
        host = session.get(Host, run.host_id)
        if host is not None:
            host.seen = now(session)
            if (holder := leases.holder_of(session, run_lease(run.id))) is not None:
                leases.acquire(session, host_lease(host), holder, context.lease_s)
        return HeartbeatReply(go_on=True)


def _build_beat(context: Context, session: Session, beat: Heartbeat) -> HeartbeatReply:
    build = session.get(Build, beat.id)
    if build is None or build.token != beat.token:
        return HeartbeatReply(go_on=False, reason="the build was given to another builder")
    if not build.state.open:
        return HeartbeatReply(go_on=False, reason=f"the build is {build.state.value}")
    leases.renew(session, build_lease(build.id), beat.token, context.lease_s)
    build.state = BuildState.BUILDING
    return HeartbeatReply(go_on=True)


def host_lease(host: Host) -> str:
    return f"host:{host.name}"


def run_lease(run: int) -> str:
    return f"run:{run}"


def build_lease(build: int) -> str:
    return f"build:{build}"
