"""Whatever upstream does, nothing that was seen is lost, and people are told in one line."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from bisectbot.service.people import status
from bisectbot.service.watch import watch
from bisectbot.source.mirror import Mirror
from bisectbot.store.tables import Build, Head, HeadState, Run, RunState
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, TREE, Lab


def heads(lab: Lab) -> list[Head]:
    with lab.context.database.read() as session:
        found = session.execute(select(Head).order_by(Head.number)).scalars().all()
        for head in found:
            _ = head.commit
        return list(found)


def test_each_push_is_a_head_and_no_push_is_none(lab: Lab) -> None:
    first, second = lab.upstream.line([100.0, 100.0])
    lab.upstream.push(first)
    assert watch(lab.context) == 1
    assert watch(lab.context) == 0
    lab.upstream.push(second)
    assert watch(lab.context) == 1
    assert [head.commit.sha for head in heads(lab)] == [first, second]


def test_a_forced_push_is_the_next_head_and_the_former_stays_in_our_mirror(lab: Lab) -> None:
    old = lab.upstream.line([100.0, 101.0])
    lab.upstream.push(old[-1])
    watch(lab.context)
    new = lab.upstream.line([100.0, 99.0], start=50)
    lab.upstream.push(new[-1])
    lab.upstream.git.run("reflog", "expire", "--expire=now", "--all")
    lab.upstream.git.run("gc", "--prune=now", "--quiet")
    assert watch(lab.context) == 1
    assert [head.commit.sha for head in heads(lab)] == [old[-1], new[-1]]
    assert lab.context.mirror.git.has(old[-1])


def test_a_repository_that_vanishes_is_said_and_survived(lab: Lab) -> None:
    lab.upstream.push(lab.upstream.line([100.0])[0])
    watch(lab.context)
    hidden = lab.upstream.path.with_name("hidden.git")
    shutil.move(lab.upstream.path, hidden)
    assert watch(lab.context) == 0
    [tree] = status.overview(lab.context).trees
    assert tree.problem
    assert "\n" not in tree.problem
    shutil.move(hidden, lab.upstream.path)
    watch(lab.context)
    assert status.overview(lab.context).trees[0].problem == ""
    assert len(heads(lab)) == 1


def test_a_fetch_that_trickles_on_is_ended_and_the_other_trees_have_their_turn(make: MakeLab, tmp_path: Path) -> None:
    """The slow tree comes first. Its upstream tells its refs, then shows signs of life for ever and sends nothing."""
    script = tmp_path / "trickle"
    script.write_text(
        '#!/bin/sh\n[ -e "$0.asked" ] || { touch "$0.asked"; exec git-upload-pack "$@"; }\n'
        'while :; do echo "remote: counting" >&2; sleep 0.1; done\n'
    )
    script.chmod(0o755)
    branches = {BRANCH: {"build": "b", "jobs": ["bench"]}}
    slow = {"url": str(tmp_path / "upstream.git"), "interval": "1h", "branches": branches}
    lab = make({"trees": {"a-slow-one": slow}}, scale=1.0)
    lab.upstream.push(lab.upstream.line([100.0])[0])
    kept = lab.context.mirror.path
    mirror = Mirror(kept, patience=1.0, config={"remote.a-slow-one.uploadpack": str(script)})
    assert watch(replace(lab.context, mirror=mirror)) == 1
    assert [tree.name for tree in status.overview(lab.context).trees if not tree.problem] == [TREE]
    [problem] = [tree.problem for tree in status.overview(lab.context).trees if tree.problem]
    assert "no end after 1 s" in problem
    assert watch(replace(lab.context, mirror=Mirror(kept))) == 0  # it waits for its next turn


def test_a_branch_that_disappears_keeps_its_heads(lab: Lab) -> None:
    lab.upstream.push(lab.upstream.line([100.0])[0])
    watch(lab.context)
    lab.upstream.git.run("update-ref", "-d", f"refs/heads/{BRANCH}")
    assert watch(lab.context) == 0
    assert len(heads(lab)) == 1


def test_a_branch_s_past_is_measured_after_its_newest_head(make: MakeLab) -> None:
    lab = make({"trees": {TREE: {"branches": {BRANCH: {"backfill": 3}}}}, "jobs": {"bench": {"runs": 1}}})
    line = lab.upstream.line([100.0] * 8)
    lab.upstream.push(line[-1])
    lab.tick()
    assert [head.commit.sha for head in heads(lab)] == line[-4:]
    while lab.build() is not None:
        pass
    order = []
    while (given := lab.run()) is not None:
        order.append(given.commit)
    assert order[0] == line[-1]
    assert set(order) == set(line[-4:])


def test_a_head_that_is_superseded_before_its_build_began_costs_nothing(lab: Lab) -> None:
    line = lab.upstream.line([100.0] * 4)
    for sha in line:
        lab.upstream.push(sha)
        lab.tick()
    states = [head.state for head in heads(lab)]
    assert states == [HeadState.COALESCED] * 3 + [HeadState.PLANNED]
    built = []
    while (given := lab.build()) is not None:
        built.append(given.commit)
    assert built == [line[-1]]
    with lab.context.database.read() as session:
        cancelled = session.execute(select(Run).where(Run.state == RunState.CANCELLED)).scalars().all()
        assert len(cancelled) == 9
        assert "superseded" in cancelled[0].message


def test_a_commit_that_was_measured_before_is_not_measured_again(lab: Lab) -> None:
    line = lab.upstream.line([100.0, 100.0])
    lab.upstream.push(line[0])
    lab.work()
    lab.upstream.push(line[1])
    lab.work()
    lab.upstream.push(line[0])  # somebody went back
    lab.work()
    with lab.context.database.read() as session:
        assert len(session.execute(select(Build)).scalars().all()) == 2
        assert len(session.execute(select(Run)).scalars().all()) == 6
    assert len(heads(lab)) == 3


def test_each_commit_of_a_push_is_a_head_where_that_is_wanted(make: MakeLab) -> None:
    lab = make({"trees": {TREE: {"branches": {BRANCH: {"every": "commit"}}}}, "jobs": {"bench": {"runs": 1}}})
    line = lab.upstream.line([100.0] * 5)
    lab.upstream.push(line[0])
    lab.tick()
    lab.upstream.push(line[-1])
    lab.work()
    assert [(head.commit.sha, head.state) for head in heads(lab)] == [(sha, HeadState.PLANNED) for sha in line]


def test_at_most_so_many_heads_are_begun_a_day_and_the_others_stay_candidates(make: MakeLab) -> None:
    changes = {"every": "commit", "per_day": 3}
    lab = make({"trees": {TREE: {"branches": {BRANCH: changes}}}, "jobs": {"bench": {"runs": 1}}}, scale=1.0)
    line = lab.upstream.line([100.0] * 7)
    lab.upstream.push(line[0])
    lab.tick()
    lab.upstream.push(line[5])
    lab.tick()
    states = [head.state for head in heads(lab)]
    assert states.count(HeadState.PLANNED) == 3
    assert states[5] is HeadState.PLANNED  # the newest is among them
    assert set(states) == {HeadState.PLANNED, HeadState.COALESCED}
    lab.upstream.push(line[6])
    lab.tick()
    assert heads(lab)[-1].state is HeadState.NEW  # it waits for tomorrow


def test_in_quiet_hours_new_heads_wait(make: MakeLab) -> None:
    lab = make({"trees": {TREE: {"branches": {BRANCH: {"quiet": [0, 24]}}}}})
    lab.upstream.push(lab.upstream.line([100.0])[0])
    lab.tick()
    assert [head.state for head in heads(lab)] == [HeadState.NEW]
