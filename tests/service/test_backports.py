"""A change that stable took in an adapted form is the change that was reported, not another one."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.report import report
from bisectbot.store.tables import Bisection, Finding, Report, Sighting
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, KPI, TREE, Lab

STABLE = "stable"


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    lab = make({"trees": {TREE: {"branches": {STABLE: {"build": "b", "jobs": ["bench"]}}}}})
    lab.sigma = 0.5
    return lab


def branch(lab: Lab, name: str, root: str, culprit: str, effect: str) -> list[str]:
    """A branch from root: a change of no weight, the culprit, and another of no weight."""
    plain = {"level": "100\n", f"file-{name}": "x\n"}
    first = lab.upstream.commit(plain, root, subject=f"{name}: begin")
    bad = lab.upstream.commit({**plain, "effect": effect}, first, subject=culprit)
    last = lab.upstream.commit({**plain, "effect": effect, "last": "x\n"}, bad, subject=f"{name}: end")
    lab.upstream.push(last, name)
    return [root, first, bad, last]


def searched(lab: Lab, name: str, line: list[str]) -> None:
    """Bisect a branch; what comes of it is reported, or joins what was."""
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, name, line[0], line[-1], kpi=KPI))
    lab.work()
    with lab.context.database.read() as session:
        newest = session.execute(select(Bisection.id).order_by(Bisection.id.desc()).limit(1)).scalar_one()
    seen = status.bisection_status(lab.context, f"B{newest}").line
    assert (seen.verdict, seen.culprit) == ("culprit", line[2])
    assert report(lab.context) == 0  # it was there, or joined, in the round before


BACKPORTS = {
    "stable's line": ("6.1: do less\n\ncommit {sha} upstream.\n\nOnly half of it applies here.", True),
    "only the subject is the same": ("mm: do less", False),
}


@pytest.mark.parametrize(("message", "joins"), BACKPORTS.values(), ids=BACKPORTS)
def test_an_adapted_backport_joins_the_report_on_its_original(lab: Lab, message: str, joins: bool) -> None:
    root = lab.upstream.commit({"level": "100\n"}, subject="root")
    mainline = branch(lab, BRANCH, root, "mm: do less", "-10\n")
    lab.upstream.push(root, STABLE)
    searched(lab, BRANCH, mainline)
    stable = branch(lab, STABLE, root, message.format(sha=mainline[2]), "-8\n")
    searched(lab, STABLE, stable)
    with lab.context.database.read() as session:
        shas = session.execute(select(Report.sha).order_by(Report.id)).scalars().all()
        places = session.execute(select(Sighting.place, Sighting.sha, Sighting.exact)).all()
        findings = session.execute(select(Finding.report_id).order_by(Finding.id)).scalars().all()
    if joins:
        assert shas == [mainline[2]]
        assert [tuple(place) for place in places] == [(f"{TREE}:{STABLE}", stable[2], False)]
        assert findings == [1, 1]
    else:
        assert shas == [mainline[2], stable[2]]
        assert places == []


def test_the_original_of_a_reported_backport_is_sighted_in_its_own_branch(lab: Lab) -> None:
    """Mainline was fetched before anything was reported; its next head tells."""
    root = lab.upstream.commit({"level": "100\n"}, subject="root")
    mainline = branch(lab, BRANCH, root, "mm: do less", "-10\n")
    lab.tick()
    stable = branch(lab, STABLE, root, f"6.1: do less\n\ncommit {mainline[2]} upstream.", "-8\n")
    searched(lab, STABLE, stable)
    more = {"level": "100\n", f"file-{BRANCH}": "x\n", "effect": "-10\n", "more": "x\n"}
    lab.upstream.push(lab.upstream.commit(more, mainline[-1], subject="more"))
    lab.tick()
    with lab.context.database.read() as session:
        assert session.execute(select(Report.sha)).scalars().all() == [stable[2]]
        seen = session.execute(select(Sighting.place, Sighting.sha, Sighting.exact)).one()
    assert tuple(seen) == (f"{TREE}:{BRANCH}", mainline[2], False)
