"""Results taken in: exactly once, however late, however often they are sent.

A result counts if it carries the last token that was issued for its run; a result that has been taken already is
accepted again and changes nothing; one that was superseded is refused for good.
"""

from __future__ import annotations

import enum
import json
import math

import structlog
import zstandard
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.results.delivery import ArtifactRef, BuildDelivery, Outcome, RunDelivery
from bisectbot.service import catalog
from bisectbot.service.boots import keep_boots
from bisectbot.service.care import states
from bisectbot.service.claims import build_lease, recipe_of, run_lease
from bisectbot.service.context import Context
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Artifact,
    Build,
    BuildState,
    FailureKind,
    Host,
    HostState,
    Run,
    RunState,
    Sample,
)

log = structlog.get_logger()

FAILED_RUNS = 2
"""So many failed runs of one build make it untestable for the job."""
INFRA_RETRIES = 8
"""So often the machinery may fail before a run or a build is given up; never a verdict."""
HOST_FAILURES = 3
"""So many failures of its own in a row make a host suspect."""
BACK_OFF_S = 30.0
"""Farm seconds before the first retry; doubled each time."""
STATS = "stats.json.zst"
COMPILED = "compiled.json.zst"


class Receipt(enum.Enum):
    """What the worker is told about its delivery."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


def deliver_run(context: Context, delivery: RunDelivery) -> Receipt:
    """Take in a run's result; raises UserError if it cannot be one (NaN among the samples)."""
    for name, value in delivery.samples:
        if not math.isfinite(value):
            raise UserError(f"run N{delivery.run}: {name} is {value}, no finite number")
    stats = _keep(context, STATS, dict(delivery.stats)) if delivery.stats else ()
    with context.database.write() as session:
        run = session.execute(select(Run).where(Run.id == delivery.run).with_for_update()).scalar_one_or_none()
        if run is None or run.token != delivery.token:
            log.info("late result refused", run=delivery.run, token=delivery.token)
            return Receipt.REFUSED
        if not run.state.open:
            return Receipt.ACCEPTED
        leases.forget(session, run_lease(run.id))
        time = now(session)
        host = session.get(Host, run.host_id)
        assert host is not None, "a run with a token has a host"
        run.host_s += delivery.host_s
        _apply(context, session, run, host, delivery, time)
        for artifact in (*delivery.artifacts, *stats):
            session.add(Artifact(run_id=run.id, name=artifact.name, sha256=artifact.sha256, size=artifact.size))
        waiting = _waits(session, host)
        name = host.name
    if waiting is not None:
        context.hints.run(name, waiting)
    return Receipt.ACCEPTED


def _keep(context: Context, name: str, what: object) -> tuple[ArtifactRef, ...]:
    """What a delivery tells beside its samples, as JSON in one compressed file."""
    packed = zstandard.compress(json.dumps(what).encode())
    return (ArtifactRef(name, context.artifacts.put([packed]), len(packed)),)


def _apply(context: Context, session: Session, run: Run, host: Host, delivery: RunDelivery, time: float) -> None:
    run.message = delivery.message
    keep_boots(session, run, host, delivery)
    match delivery.outcome:
        case Outcome.DONE:
            _done(session, run, host, delivery, time)
        case Outcome.UNTESTABLE:
            _fail(session, run, FailureKind.UNTESTABLE, time)
            _give_up_on(session, run, delivery.message)
        case Outcome.FAILED:
            host.failures = 0
            run.failures += 1
            if run.failures < FAILED_RUNS:
                run.state = RunState.QUEUED
            else:
                _fail(session, run, FailureKind.RUN, time)
                _give_up_on(session, run, delivery.message)
        case Outcome.INFRA | Outcome.CANCELLED:
            _machinery_failed(context, session, run, host, delivery, time)


def _done(session: Session, run: Run, host: Host, delivery: RunDelivery, time: float) -> None:
    run.state, run.finished, run.seconds = RunState.DONE, time, delivery.seconds
    host.failures = 0
    if host.state is HostState.UNKNOWN:
        states.change(session, host, HostState.GOOD, "delivered a result")
    environment = catalog.environment_row(session, run.group_id, delivery.environment)
    run.environment_id = environment.id
    values = dict(delivery.samples)
    for kpi in run.job.kpis:
        if kpi.name in values:
            session.add(Sample(run_id=run.id, kpi_id=kpi.id, value=values[kpi.name]))
            if run.branch_id is not None and run.experiment_id is None:
                catalog.series_row(session, run.branch_id, kpi.id).stale = True


def _fail(session: Session, run: Run, kind: FailureKind, time: float) -> None:
    run.state, run.failure, run.finished = RunState.FAILED, kind, time
    session.flush()


def _give_up_on(session: Session, run: Run, why: str) -> None:
    """This build cannot be measured by this job: the runs that still wait for it would only burn host time."""
    same = (Run.build_id == run.build_id, Run.job_id == run.job_id)
    session.execute(
        update(Run)
        .where(*same, Run.state.in_([RunState.PLANNED, RunState.QUEUED]))
        .values(
            state=RunState.CANCELLED,
            failure=FailureKind.UNTESTABLE,
            message=f"not run: untestable, says run N{run.id}: {why}",
        )
    )


def _machinery_failed(
    context: Context, session: Session, run: Run, host: Host, delivery: RunDelivery, time: float
) -> None:
    if delivery.outcome is Outcome.INFRA:
        host.failures += 1
        if host.failures >= HOST_FAILURES and host.state in states.TRUSTED:
            why = f"{host.failures} failures in a row, the last: {delivery.message}"
            states.change(session, host, HostState.SUSPECT, why)
            log.warning("host is suspect", host=host.name, reason=host.reason)
    if run.attempts >= INFRA_RETRIES:
        _fail(session, run, FailureKind.INFRA, time)
    else:
        run.state = RunState.QUEUED
        run.not_before = time + context.clock.real(BACK_OFF_S * 2 ** min(run.attempts - 1, 6))


def _waits(session: Session, host: Host) -> int | None:
    """A run that the host could do next, so that its worker can be told to look again."""
    if host.state not in {HostState.GOOD, HostState.UNKNOWN}:
        return None
    session.flush()
    query = (
        select(Run.id)
        .where(
            Run.state == RunState.QUEUED,
            Run.group_id == host.group_id,
            (Run.wanted_host_id.is_(None)) | (Run.wanted_host_id == host.id),
        )
        .order_by(Run.purpose, Run.id)
        .limit(1)
    )
    found = session.execute(query).scalar_one_or_none()
    host.hinted = now(session) if found is not None else 0.0
    return found


def deliver_build(context: Context, delivery: BuildDelivery) -> Receipt:
    """Take in a build's result; the runs that waited for it are queued, or cancelled if there is nothing to run."""
    compiled = _keep(context, COMPILED, sorted(delivery.compiled)) if delivery.compiled else ()
    with context.database.write() as session:
        build = session.execute(select(Build).where(Build.id == delivery.build).with_for_update()).scalar_one_or_none()
        if build is None or build.token != delivery.token:
            return Receipt.REFUSED
        if not build.state.open:
            return Receipt.ACCEPTED
        leases.forget(session, build_lease(build.id))
        time = now(session)
        build.message, build.seconds = delivery.message, delivery.seconds
        match delivery.outcome:
            case Outcome.DONE:
                build.state, build.finished = BuildState.READY, time
                build.artifact, build.signature = delivery.artifact, delivery.signature
            case Outcome.UNTESTABLE | Outcome.FAILED:
                build.state, build.finished = BuildState.UNTESTABLE, time
            case Outcome.INFRA | Outcome.CANCELLED:
                _retry_build(context, build, time)
        runs = release_runs(session, build)
        for artifact in (*delivery.artifacts, *compiled):
            session.add(Artifact(build_id=build.id, name=artifact.name, sha256=artifact.sha256, size=artifact.size))
        log.info("build delivered", build=build.id, recipe=recipe_of(build).name, state=build.state.value, runs=runs)
    return Receipt.ACCEPTED


def _retry_build(context: Context, build: Build, time: float) -> None:
    if build.attempts >= INFRA_RETRIES:
        build.state, build.finished = BuildState.FAILED, time
    else:
        build.state = BuildState.QUEUED
        build.not_before = time + context.clock.real(BACK_OFF_S * 2 ** min(build.attempts - 1, 6))


def release_runs(session: Session, build: Build) -> int:
    """Queue the runs that waited for ``build``, or cancel them if it will never be there; returns how many."""
    if build.state.open:
        return 0
    waiting = update(Run).where(Run.build_id == build.id, Run.state == RunState.PLANNED)
    if build.state is BuildState.READY:
        result = session.execute(waiting.values(state=RunState.QUEUED))
    else:
        why = f"not run: its build is {build.state.value}: {build.message}"
        result = session.execute(waiting.values(state=RunState.CANCELLED, message=why))
    return int(result.rowcount)  # type: ignore[attr-defined]
