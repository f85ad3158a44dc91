"""What other bisections measured of the same images: it counts where the environment is the same, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import RunDelivery
from bisectbot.service.bisections import create
from bisectbot.service.people import status
from bisectbot.service.search.searches import load
from bisectbot.store.tables import Bisection, Experiment, Kpi, Run, RunState
from tests.service.conftest import MakeLab
from tests.service.test_verify import bisect, line, plain
from tests.support.lab import TREE, Lab


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    lab = make({"bisection": {"verify": {"revert": False}}})
    lab.sigma = 0.5
    return lab


def automatic(lab: Lab, good: str, bad: str) -> None:
    """A second bisection of the same ends, as an alarm asks for it, to its end."""
    with lab.context.database.write() as session:
        kpi = session.execute(select(Kpi)).scalar_one()
        recipe = lab.config.builds["b"].recipe("b")
        more = {"effect": -10.0, "history": [], "automatic": True}
        create(lab.context, session, tree=TREE, branch_id=None, ends=(good, bad), kpi=kpi, recipe=recipe, **more)  # type: ignore[arg-type]
    lab.work()


def runs(lab: Lab, bisection: int) -> int:
    with lab.context.database.read() as session:
        query = select(func.count()).select_from(Run).join(Experiment, Run.experiment_id == Experiment.id)
        mine = query.where(Experiment.bisection_id == bisection, Run.state == RunState.DONE)
        return int(session.execute(mine).scalar_one())


def test_runs_of_an_earlier_bisection_count_in_an_automatic_one(lab: Lab) -> None:
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(6, 6)])
    bisect(lab, shas[0], shas[-1])
    automatic(lab, shas[0], shas[-1])
    seen = status.bisection_status(lab.context, "B2")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", shas[6])
    assert runs(lab, 2) < runs(lab, 1)
    with lab.context.database.read() as session:
        loaded = load(lab.context, session, session.get_one(Bisection, 2))
    assert len(loaded.earlier) == runs(lab, 1)


def test_runs_of_another_environment_do_not(lab: Lab) -> None:
    """New microcode costs as much as the culprit; a head has been measured with it, as before any alarm."""
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(6, 6)])
    bisect(lab, shas[0], shas[-1])
    honest = lab.measured

    def updated(given: RunAssignment) -> RunDelivery:
        delivery = honest(given)
        samples = tuple((name, value - 10.0) for name, value in delivery.samples)
        return replace(delivery, environment=(("microcode", "0xd000400"),), samples=samples)

    lab.measured = updated  # type: ignore[method-assign]
    lab.upstream.push(lab.upstream.commit({"level": "100\n", "effect": "-10\n"}, shas[-1], subject="the next head"))
    lab.work()
    automatic(lab, shas[0], shas[-1])
    seen = status.bisection_status(lab.context, "B2")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", shas[6])
    with lab.context.database.read() as session:
        loaded = load(lab.context, session, session.get_one(Bisection, 2))
    assert loaded.earlier == ()
    assert loaded.observed
