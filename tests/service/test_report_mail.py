"""From a verdict to the mail, with the service's own steps: who gets it, its thread, one report for one change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select

from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import Outcome, RunDelivery
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.post.sequels import sequels
from bisectbot.service.report import report
from bisectbot.store.tables import Bisection, Finding, OutboxState, Report, Sighting
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, KPI, TREE, Lab
from tests.support.office import AUTHOR, FILES, LIST, MAINTAINER, MESSAGE, PATCH, Office, office, reached

OTHER = "demo.latency"


def line(lab: Lab) -> list[str]:
    """Eight commits; the sixth, with the lab's MAINTAINERS file, makes both numbers worse."""
    shas: list[str] = []
    for number, level in enumerate([100.0] * 5 + [90.0] * 3):
        files = {**FILES, "level": f"{level}\n", "number": f"{number}\n"}
        message = MESSAGE if number == 5 else f"change {number}"
        shas.append(lab.upstream.commit(files, *shas[-1:], subject=message))
    lab.upstream.push(shas[-1])
    plain = lab.measured

    def both(given: RunAssignment) -> RunDelivery:
        delivery = plain(given)
        if delivery.outcome is not Outcome.DONE:
            return delivery
        [(_, value)] = delivery.samples
        return replace(delivery, samples=((KPI, value), (OTHER, 1000.0 / value)))

    lab.measured = both  # type: ignore[method-assign]
    lab.tick()
    return shas


@pytest.fixture
def desk(make: MakeLab) -> Iterator[Office]:
    kpis = {KPI: {"unit": "ops/s", "better": "more"}, OTHER: {"unit": "us", "better": "less"}}
    lab = make(
        {
            "jobs": {"bench": {"kpis": kpis}},
            "bisection": {"automatic": False},
            "mail": {"policy": "author", "public_archive": "https://lore.example.net/r"},
        }
    )
    with office(lab) as made:
        yield made


def bisect(desk: Office, shas: list[str], kpi: str) -> None:
    submit_bisection(desk.context, "ada", BisectArguments(TREE, BRANCH, shas[0], shas[-1], kpi=kpi))
    desk.lab.work()


def test_one_change_is_one_report_and_what_comes_before_it_leaves_is_in_it(desk: Office) -> None:
    shas = line(desk.lab)
    bisect(desk, shas, KPI)
    bisect(desk, shas, OTHER)
    with desk.context.database.read() as session:
        [stored] = session.execute(select(Report)).scalars()
        assert [finding.told for finding in session.execute(select(Finding)).scalars()] == [True, True]
    row = desk.row(stored.id)
    assert row.state is OutboxState.QUEUED
    [mail] = desk.send()
    text = mail.message.get_content()
    assert stored.sha == shas[5]
    assert KPI in str(mail.message["Subject"])
    assert OTHER in text
    assert reached([mail]) >= {AUTHOR}
    assert mail.message["In-Reply-To"] == PATCH
    assert f"| Closes: https://lore.example.net/r/{row.message_id.strip('<>')}" in text
    concerned = {entry["address"]: entry["place"] for entry in row.addressees}
    assert concerned[MAINTAINER] == concerned[LIST] == "only the author is mailed"


def test_what_comes_after_it_has_left_waits_for_the_addendum(desk: Office) -> None:
    shas = line(desk.lab)
    bisect(desk, shas, KPI)
    [first] = desk.send()
    bisect(desk, shas, OTHER)
    assert desk.send() == []
    assert sequels(desk.context) == 0
    desk.days_pass(7.1)  # the clock of this laboratory is faster still
    assert sequels(desk.context) == 1
    [addendum] = desk.send()
    assert addendum.message["In-Reply-To"] == first.message["Message-ID"]
    assert OTHER in addendum.message.get_content()


def test_the_same_change_in_another_tree_is_no_report_of_its_own(desk: Office) -> None:
    shas = line(desk.lab)
    bisect(desk, shas, KPI)
    desk.send()
    bisect(desk, shas, OTHER)
    with desk.context.database.write() as session:  # as if the second bisection had been of another tree
        session.delete(session.execute(select(Finding).order_by(Finding.id.desc()).limit(1)).scalar_one())
        again = session.execute(select(Bisection).order_by(Bisection.id.desc()).limit(1)).scalar_one()
        again.tree, again.reported = "mainline", False
    assert report(desk.context) == 0
    with desk.context.database.read() as session:
        [seen] = session.execute(select(Sighting)).scalars()
        assert (seen.place, seen.sha) == (f"mainline:{BRANCH}", shas[5])
        assert len(session.execute(select(Report)).all()) == 1
