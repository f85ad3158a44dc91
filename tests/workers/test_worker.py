"""A worker process between a real broker and a server, through everything that may happen to them."""

from __future__ import annotations

from bisectbot.results.delivery import Outcome, RunDelivery
from tests.workers.conftest import Farm
from tests.workers.server import Server


def only(server: Server) -> RunDelivery:
    (delivery,) = server.delivered
    assert isinstance(delivery, RunDelivery)
    return delivery


def test_from_the_claim_to_the_delivery(farm: Farm, server: Server):
    farm.start()
    farm.send(farm.assignment("echo ops: $(cat data); echo extra: 7; echo note >&2", run=5))
    farm.until(lambda: server.delivered, "the run is delivered")
    delivery = only(server)
    assert (delivery.run, delivery.token, delivery.outcome, delivery.message) == (5, 1, Outcome.DONE, "")
    assert delivery.samples == (("ops", 42.0),)
    assert delivery.stats == (("j.extra", 7.0),)
    assert server.text(delivery, "stdout") == "ops: 42\nextra: 7\n"
    assert server.text(delivery, "stderr") == "note\n"
    assert "nr_free_pages" in server.text(delivery, "proc-vmstat")
    assert dict(delivery.environment)["kernel"]
    assert delivery.host_s >= delivery.seconds > 0
