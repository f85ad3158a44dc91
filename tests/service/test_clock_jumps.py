"""A clock that is put back by an hour or jumps ahead by a day: nothing lost, nothing twice, no flood."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, select, update

from bisectbot.service.plan import plan
from bisectbot.service.post.letters import model_of
from bisectbot.service.sightings import look
from bisectbot.service.watch import watch
from bisectbot.store.tables import Head, HeadState, Report, Sighting, Tree
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, TREE, Lab
from tests.support.office import office

HOUR, DAY = 3600.0, 86400.0
ASIDE = "aside"


def jump(lab: Lab, seconds: float) -> None:
    """The database's clock jumps ahead (or, below 0, back): all that it has written so far is so much older."""
    with lab.context.database.write() as session:
        session.execute(update(Tree).values(fetched=Tree.fetched - seconds))
        session.execute(update(Head).values(seen=Head.seen - seconds))
        session.execute(update(Head).where(Head.begun > 0).values(begun=Head.begun - seconds))
        session.execute(update(Report).values(created=Report.created - seconds))


def heads(lab: Lab) -> list[tuple[str, HeadState]]:
    with lab.context.database.read() as session:
        rows = session.execute(select(Head).order_by(Head.number)).scalars()
        return [(head.commit.sha, head.state) for head in rows]


def begun(lab: Lab) -> list[str]:
    return [sha for sha, state in heads(lab) if state is HeadState.PLANNED]


def step(lab: Lab) -> None:
    watch(lab.context)
    plan(lab.context)


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    """Each commit is a head, three may be begun a day; the tree is fetched every ten minutes."""
    branches = {BRANCH: {"every": "commit", "per_day": 3}}
    return make({"trees": {TREE: {"branches": branches, "interval": "10m"}}}, scale=1.0)


def test_a_clock_put_back_neither_stops_the_watch_nor_lets_more_through(lab: Lab) -> None:
    line = lab.upstream.line([100.0] * 12)
    lab.upstream.push(line[3])
    step(lab)
    jump(lab, 11 * 60)
    lab.upstream.push(line[5])
    step(lab)
    assert begun(lab) == [line[3], line[4], line[5]]
    lab.upstream.push(line[6])
    step(lab)
    assert len(heads(lab)) == 3  # ten minutes have not passed
    jump(lab, -HOUR)
    step(lab)
    assert heads(lab)[-1] == (line[6], HeadState.NEW)  # it was fetched at once, and waits: the three are of today
    jump(lab, HOUR)
    step(lab)
    assert [sha for sha, _ in heads(lab)] == line[3:7]
    assert len(begun(lab)) == 3


def test_a_day_ahead_begins_one_day_s_worth_and_back_again_no_more(lab: Lab) -> None:
    line = lab.upstream.line([100.0] * 20)
    for top in (3, 8, 12):
        lab.upstream.push(line[top])
        step(lab)
        jump(lab, 11 * 60)
    assert len(begun(lab)) == 3
    waiting = [sha for sha, state in heads(lab) if state is HeadState.NEW]
    assert line[12] in waiting
    jump(lab, DAY)
    step(lab)
    assert len(begun(lab)) == 6  # those that waited since yesterday are of today now
    assert line[12] in begun(lab)
    lab.upstream.push(line[19])
    jump(lab, 11 * 60)
    step(lab)
    assert len(begun(lab)) == 6
    jump(lab, -DAY)
    step(lab)
    assert len(begun(lab)) == 6
    found = [sha for sha, _ in heads(lab)]
    assert found == line[3:]  # every commit once, in its order


def test_a_reported_change_is_sighted_once_though_the_head_before_seems_younger_than_the_report(
    make: MakeLab,
) -> None:
    """The clock was a day ahead when the branch was fetched with the change in it, and right when it was reported."""
    lab = make(scale=1.0)
    with office(lab) as desk:
        desk.report()
        with lab.context.database.read() as session:
            stored = session.execute(select(Report)).scalar_one()
        assert model_of(stored).tree.branch != ASIDE
        first = lab.upstream.commit({"more": "1\n"}, subject=f"backport\n\ncommit {stored.sha} upstream.")
        second = lab.upstream.commit({"more": "2\n"}, first, subject="still more")
        for number, sha in enumerate((first, second)):
            lab.upstream.push(sha)
            watch(lab.context)
            assert len(heads(lab)) == number + 1
        with lab.context.database.write() as session:
            before = session.execute(select(Head).filter_by(number=0)).scalar_one()
            before.seen = stored.created + DAY
            session.execute(delete(Sighting))
            _ = before.commit
        assert look(lab.context, TREE, ASIDE, second, before) == 1
        assert look(lab.context, TREE, ASIDE, second, before) == 0
