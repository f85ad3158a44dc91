"""Who gets which work, and whose results count: the truth rules, on both databases."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from bisectbot.errors import UserError
from bisectbot.jobs.assignment import BuildClaim, Heartbeat, RunAssignment, RunClaim
from bisectbot.results.delivery import Outcome
from bisectbot.service import claims, deliveries
from bisectbot.service.claims import HostHeldError
from bisectbot.service.deliveries import Receipt
from bisectbot.service.reap import reap
from bisectbot.store.tables import (
    Artifact,
    Branch,
    Build,
    BuildState,
    FailureKind,
    Host,
    HostState,
    Purpose,
    Run,
    RunState,
    Sample,
    Tree,
)
from tests.service.conftest import MakeLab
from tests.support.lab import GROUP, HOST, KPI, Lab


def prepare(lab: Lab) -> None:
    """One head, built, its three runs queued."""
    lab.upstream.push(lab.upstream.line([100.0])[0])
    lab.tick()
    assert lab.build() is not None
    lab.tick()


def take(lab: Lab, host: str = HOST) -> RunAssignment:
    given = lab.claim(host)
    assert given is not None
    return given


def run_row(lab: Lab, run: int) -> Run:
    with lab.context.database.read() as session:
        return session.get_one(Run, run)


def samples(lab: Lab) -> int:
    with lab.context.database.read() as session:
        return int(session.execute(select(func.count()).select_from(Sample)).scalar_one())


def test_a_result_that_is_sent_twice_counts_once(lab: Lab) -> None:
    prepare(lab)
    delivery = lab.measured(take(lab))
    assert deliveries.deliver_run(lab.context, delivery) is Receipt.ACCEPTED
    assert deliveries.deliver_run(lab.context, delivery) is Receipt.ACCEPTED
    assert samples(lab) == 1


def test_a_host_that_is_held_gives_nothing_to_a_second_worker(make: MakeLab) -> None:
    lab = make(scale=1.0)  # a lease outlasts the test
    prepare(lab)
    take(lab)
    with pytest.raises(HostHeldError):
        claims.claim_run(lab.context, RunClaim(HOST, "another worker"))


def test_a_host_that_nobody_configured_gets_one_line(lab: Lab) -> None:
    with pytest.raises(UserError, match=r"host 'nowhere' is not configured; add hosts/nowhere\.yaml"):
        claims.claim_run(lab.context, RunClaim("nowhere", "worker"))


def test_an_ended_lease_makes_a_run_claimable_and_the_late_result_still_counts(make: MakeLab) -> None:
    lab = make(scale=90_000)  # a lease lasts a millisecond
    prepare(lab)
    given = take(lab)
    time.sleep(0.05)
    assert reap(lab.context) == 1
    assert run_row(lab, given.run).state is RunState.QUEUED
    assert deliveries.deliver_run(lab.context, lab.measured(given)) is Receipt.ACCEPTED
    assert run_row(lab, given.run).state is RunState.DONE


def test_a_result_that_was_superseded_is_refused_for_good(make: MakeLab) -> None:
    lab = make(scale=90_000)
    prepare(lab)
    first = take(lab)
    time.sleep(0.05)
    reap(lab.context)
    second = claims.claim_run(lab.context, RunClaim(HOST, "another worker"))
    assert second is not None
    assert second.run == first.run
    assert second.token > first.token
    assert deliveries.deliver_run(lab.context, lab.measured(first)) is Receipt.REFUSED
    assert deliveries.deliver_run(lab.context, lab.measured(second)) is Receipt.ACCEPTED
    assert samples(lab) == 1


def test_a_heartbeat_brings_a_freed_run_back_to_its_worker(make: MakeLab) -> None:
    lab = make(scale=90_000)
    prepare(lab)
    given = take(lab)
    time.sleep(0.05)
    reap(lab.context)
    assert claims.heartbeat(lab.context, Heartbeat("run", given.run, given.token)).go_on
    assert run_row(lab, given.run).state is RunState.RUNNING


def test_a_heartbeat_tells_the_worker_to_stop_when_the_run_is_cancelled_or_gone(lab: Lab) -> None:
    prepare(lab)
    given = take(lab)
    stale = claims.heartbeat(lab.context, Heartbeat("run", given.run, given.token + 1))
    assert not stale.go_on
    with lab.context.database.write() as session:
        session.get_one(Run, given.run).state = RunState.CANCELLED
    reply = claims.heartbeat(lab.context, Heartbeat("run", given.run, given.token))
    assert not reply.go_on
    assert "cancelled" in reply.reason


def test_no_number_is_refused_before_it_reaches_the_database(lab: Lab) -> None:
    prepare(lab)
    delivery = replace(lab.measured(take(lab)), samples=((KPI, float("nan")),))
    with pytest.raises(UserError, match=f"{KPI} is nan"):
        deliveries.deliver_run(lab.context, delivery)
    assert samples(lab) == 0


def test_a_failed_run_is_tried_once_more_then_its_commit_is_untestable(lab: Lab) -> None:
    prepare(lab)
    lab.faults = lambda given: (Outcome.FAILED, "no number") if isinstance(given, RunAssignment) else None
    first = lab.run()
    second = lab.run()
    assert first is not None
    assert second is not None
    assert first.run == second.run
    assert lab.run() is None  # the other two runs would only fail as well
    row = run_row(lab, first.run)
    assert (row.state, row.failure, row.message) == (RunState.FAILED, FailureKind.RUN, "no number")
    with lab.context.database.read() as session:
        others = session.execute(select(Run).where(Run.id != first.run)).scalars().all()
        assert {(run.state, run.failure) for run in others} == {(RunState.CANCELLED, FailureKind.UNTESTABLE)}


def test_the_machinery_s_failures_count_against_the_host_and_never_against_the_commit(lab: Lab) -> None:
    prepare(lab)
    lab.faults = lambda given: (Outcome.INFRA, "ssh: no route") if isinstance(given, RunAssignment) else None
    taken = []
    for _ in range(deliveries.HOST_FAILURES):
        given = lab.run()
        if given is None:  # backing off
            time.sleep(0.2)
            given = lab.run()
        assert given is not None
        taken.append(given.run)
    with lab.context.database.read() as session:
        host = session.execute(select(Host)).scalar_one()
        assert host.state is HostState.SUSPECT
        assert "ssh: no route" in host.reason
        assert {run.state for run in session.execute(select(Run)).scalars()} == {RunState.QUEUED}
    time.sleep(0.5)
    assert lab.claim() is None  # a suspect host gets no work


def test_a_build_that_fails_on_the_machinery_is_tried_again_and_one_that_does_not_compile_is_not(lab: Lab) -> None:
    lab.upstream.push(lab.upstream.line([100.0])[0])
    lab.tick()
    lab.faults = lambda _: (Outcome.INFRA, "disk full")
    assert lab.build() is not None
    lab.faults = lambda _: None
    with lab.context.database.read() as session:
        assert session.execute(select(Build.state)).scalar_one() is BuildState.QUEUED
    time.sleep(0.2)
    assert lab.build() is not None
    with lab.context.database.read() as session:
        assert session.execute(select(Build.state)).scalar_one() is BuildState.READY
    lab.upstream.push(lab.upstream.line([None], start=7)[0])
    lab.tick()
    assert lab.build() is not None
    with lab.context.database.read() as session:
        states = session.execute(select(Build.state).order_by(Build.id)).scalars().all()
        assert states == [BuildState.READY, BuildState.UNTESTABLE]
        newest = session.execute(select(Run).order_by(Run.id.desc()).limit(3)).scalars().all()
        assert {run.state for run in newest} == {RunState.CANCELLED}
        assert "make: error" in newest[0].message


def test_everything_but_the_kpis_is_one_compressed_file(lab: Lab) -> None:
    prepare(lab)
    lab.run()
    with lab.context.database.read() as session:
        [artifact] = session.execute(select(Artifact)).scalars().all()
    assert artifact.name == deliveries.STATS
    assert lab.context.artifacts.has(artifact.sha256)


def test_the_order_of_work_on_a_host(make: MakeLab) -> None:
    lab = make({"jobs": {"bench": {"runs": 1}}})
    prepare(lab)
    with lab.context.database.write() as session:
        newest = session.execute(select(Run)).scalar_one()
        newest.purpose = Purpose.BACKFILL
        for purpose in (Purpose.NEWEST, Purpose.RETEST, Purpose.REQUEST, Purpose.BISECTION):
            session.add(
                Run(
                    build_id=newest.build_id,
                    job_id=newest.job_id,
                    group_id=newest.group_id,
                    purpose=int(purpose),
                    state=RunState.QUEUED,
                    created=newest.created,
                )
            )
    order = []
    while (given := lab.run()) is not None:
        order.append(run_row(lab, given.run).purpose)
    assert order == sorted(order) == [10, 20, 30, 40, 50]


def test_what_waits_long_enough_is_not_starved(make: MakeLab) -> None:
    lab = make({"jobs": {"bench": {"runs": 2}}})
    prepare(lab)
    with lab.context.database.write() as session:
        old, young = session.execute(select(Run).order_by(Run.id)).scalars().all()
        old.purpose, young.purpose = int(Purpose.BACKFILL), int(Purpose.NEWEST)
        old.created -= 25 * 3600 / lab.context.clock.scale
        old_id = old.id
    assert take(lab).run == old_id


def test_a_host_stays_on_the_build_that_it_has_booted(make: MakeLab) -> None:
    lab = make({"jobs": {"bench": {"runs": 2}}})
    first, second = lab.upstream.line([100.0, 100.0])
    lab.upstream.push(first)
    lab.tick()
    lab.build()
    given = lab.run()
    assert given is not None
    lab.upstream.push(second)
    lab.tick()
    lab.build()
    with lab.context.database.write() as session:
        for run in session.execute(select(Run)).scalars():
            run.purpose = int(Purpose.NEWEST)
    assert take(lab).commit == first


def test_trees_share_the_hosts_by_what_they_have_used(make: MakeLab) -> None:
    busy = {"url": "/nowhere", "interval": "1d", "branches": {"main": {"build": "b", "jobs": ["bench"]}}}
    lab = make({"trees": {"busy": busy}, "jobs": {"bench": {"runs": 4}}})
    prepare(lab)
    with lab.context.database.write() as session:
        other = session.execute(select(Branch).join(Tree).where(Tree.name == "busy")).scalar_one()
        runs = session.execute(select(Run).order_by(Run.id)).scalars().all()
        for run in runs[:2]:  # first in line, but its tree has just had hours
            run.branch_id = other.id
        runs[0].state, runs[0].host_s, runs[0].finished = RunState.DONE, 7200.0, runs[0].created
        greedy = runs[1].id
    order = []
    while (given := lab.run()) is not None:
        order.append(given.run)
    assert order.index(greedy) == len(order) - 1


def test_two_hosts_of_a_group_share_its_runs_and_one_experiment_stays_on_one(make: MakeLab) -> None:
    second = "lkp-icl-2sp2-2"
    lab = make({"hosts": {HOST: {"group": GROUP}, second: {"group": GROUP}}})
    prepare(lab)
    assert take(lab, HOST).run != take(lab, second).run


def test_only_one_builder_gets_a_build(lab: Lab) -> None:
    lab.upstream.push(lab.upstream.line([100.0])[0])
    lab.tick()
    assert claims.claim_build(lab.context, BuildClaim("a", "a-1")) is not None
    assert claims.claim_build(lab.context, BuildClaim("b", "b-1")) is None


def test_hosts_that_ask_at_once_all_get_work(make: MakeLab) -> None:
    hosts = {f"{GROUP}-{number}": {"group": GROUP} for number in range(1, 13)}
    lab = make({"hosts": hosts, "jobs": {"bench": {"runs": 12}}}, scale=1.0)
    prepare(lab)
    with ThreadPoolExecutor(len(hosts)) as pool:
        given = list(pool.map(lab.claim, hosts))
    assert len({one.run for one in given if one is not None}) == len(hosts)


def test_many_more_writers_than_connections_all_get_their_turn(lab: Lab) -> None:
    def count(_: int) -> None:
        with lab.context.database.write() as session:
            session.execute(update(Host).values(failures=Host.failures + 1))

    with lab.context.database.write() as session:
        session.execute(update(Host).values(failures=0))
    with ThreadPoolExecutor(100) as pool:
        list(pool.map(count, range(300)))
    with lab.context.database.read() as session:
        assert session.execute(select(Host.failures)).scalar_one() == 300
