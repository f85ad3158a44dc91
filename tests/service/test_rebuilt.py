"""A branch that is rebuilt every day, from a push to a report: what is new there, what is lost, where it goes next."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from bisectbot.jobs.assignment import BuildAssignment
from bisectbot.report import from_json
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.post.sequels import sequels
from bisectbot.service.search.replay import replay
from bisectbot.source.git import Git
from bisectbot.source.merged import is_ours
from bisectbot.store.tables import Bisection, Experiment, Finding, Outbox, OutboxState, Report, Sighting
from tests.service.conftest import MakeLab
from tests.source.linux_next import LinuxNext, Patch
from tests.support.lab import KPI, TREE, Lab

BRANCHES = {
    "master": {"kind": "rebuilt", "build": "b", "jobs": ["bench"]},
    "mainline": {"build": "b", "jobs": ["bench"]},
    "main": {"build": "b", "jobs": ["bench"]},
}
pytestmark = pytest.mark.timeout(900)
WEEK = 7 * 24 * 3600.0


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    lab = make({"trees": {TREE: {"branches": BRANCHES}}, "builds": {"b": {"outputs": ["kernel"]}}})
    lab.sigma = 0.5
    return lab


@pytest.fixture
def upstream(lab: Lab) -> LinuxNext:
    """Every tree but one is a quilt tree, so that a day changes all ids but that one's."""
    lab.upstream.push(lab.upstream.commit({"a": "1\n"}, subject="another project"))
    return LinuxNext(lab.upstream.path, trees=("net",), quilts=("mm", "drm", "fs"), base=5)


def levels(lab: Lab, culprits: dict[str, tuple[str, float]]) -> Callable[[BuildAssignment], float]:
    """Levels by what the files hold: subject of a patch → (the file it edits, its effect)."""

    def level(given: BuildAssignment) -> float:
        git = lab.context.mirror.git
        there = set(git.run("ls-tree", "-r", "--name-only", given.commit).splitlines())
        paths = [path for path, _ in culprits.values() if path in there]
        texts = {path: git.run("show", f"{given.commit}:{path}") for path in paths}
        return 100.0 + sum(effect for subject, (path, effect) in culprits.items() if subject in texts.get(path, ""))

    return level


def edits(patch: Patch) -> str:
    return f"{patch.tree}/f{patch.number % 4}"


def experiments(lab: Lab) -> int:
    with lab.context.database.read() as session:
        return int(session.execute(select(func.count()).select_from(Experiment)).scalar_one())


def findings(lab: Lab) -> int:
    with lab.context.database.read() as session:
        return int(session.execute(select(func.count()).select_from(Finding)).scalar_one())


def test_a_change_in_next_is_found_while_all_ids_change_and_followed_to_mainline(lab: Lab, upstream: LinuxNext) -> None:
    culprits: dict[str, tuple[str, float]] = {}
    lab.level = levels(lab, culprits)  # type: ignore[method-assign,assignment]
    before = upstream.day(new=2)
    lab.work()
    for _ in range(8):
        before = upstream.day(new=1)
        lab.work()
    today = upstream.day(new=3, amended=1)
    culprit = max((p for p in today.patches - before.patches if p.tree == "drm"), key=lambda p: p.number)
    culprits[culprit.subject] = (edits(culprit), -9.0)
    lab.work()
    while experiments(lab) < 4:  # the bisection has begun
        upstream.day(new=0)
        for _ in range(40):
            lab.tick()
            if experiments(lab) >= 4 or (lab.build() is None and lab.run() is None):
                break
    upstream.day(new=1)  # in its middle all ids change again
    lab.work()
    seen = status.bisection_status(lab.context, "B1")
    git = lab.context.mirror.git
    assert seen.line.verdict == "culprit", seen.line
    assert git.run("show", "-s", "--format=%s", seen.line.culprit) == culprit.subject
    assert seen.candidates < 30
    with lab.context.database.read() as session:
        report = session.execute(select(Report)).scalar_one()
        assert session.execute(select(Finding)).scalar_one().report_id == report.id
    told = from_json(json.dumps(report.twin))
    assert told.commit.subject == culprit.subject
    assert told.parent is not None
    assert not any(is_ours(git, sha) for sha in (told.commit.id, told.parent.id))
    assert "rebuilt" in " ".join(told.notes)
    assert replay(lab.context, "B1").agrees

    upstream.day(new=1, pulled=("drm",))  # mainline takes it, under another id
    lab.work()
    with lab.context.database.read() as session:
        [sighting] = session.execute(select(Sighting)).scalars().all()
        assert (sighting.place, sighting.exact) == (f"{TREE}:mainline", True)
        assert sighting.sha != report.sha
        assert git.run("show", "-s", "--format=%s", sighting.sha) == culprit.subject
    while findings(lab) < 2:  # and measures it there
        upstream.day(new=0)
        lab.work()
    with lab.context.database.write() as session:
        assert session.execute(select(Report.id)).scalars().all() == [report.id]
        both = session.execute(select(Finding).order_by(Finding.id)).scalars().all()
        assert [finding.report_id for finding in both] == [report.id, report.id]
        assert session.get_one(Bisection, both[1].bisection_id).branch.name == "mainline"  # type: ignore[union-attr]
        [first] = session.execute(select(Outbox).filter_by(kind="report")).scalars().all()
        first.state, first.sent = OutboxState.SENT, first.created - lab.context.clock.real(2 * WEEK)
        first.created = first.sent
    assert sequels(lab.context) == 1
    with lab.context.database.read() as session:
        kinds = session.execute(select(Outbox.kind).where(Outbox.report_id == report.id).order_by(Outbox.id))
        assert kinds.scalars().all() == ["report", "followup"]
        letter = session.execute(select(Outbox).filter_by(kind="followup")).scalar_one()
        assert sighting.sha[:12] in letter.raw.decode()


def test_what_a_rebuild_lost_is_named_and_nobody_is_blamed(lab: Lab, upstream: LinuxNext) -> None:
    """A quilt tree dropped a patch that was a speed-up; nothing that is new slows anything."""
    before = upstream.day(new=4)
    today = upstream.day(new=2, dropped=1)
    lost = next(patch for patch in sorted(before.patches - today.patches, key=lambda p: p.number) if patch.tree == "mm")
    lab.level = levels(lab, {lost.subject: (edits(lost), 9.0)})  # type: ignore[method-assign,assignment]
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, "master", before.head, today.head, kpi=KPI))
    lab.work()
    seen = status.bisection_status(lab.context, "B1")
    assert seen.line.verdict == "change_on_good_side", seen.line
    assert lab.context.mirror.git.run("show", "-s", "--format=%s", seen.line.culprit) == lost.subject
    assert "turned round" in seen.line.reason
    with lab.context.database.read() as session:
        assert session.execute(select(Report)).scalars().all() == []


def test_two_days_with_the_same_content_are_not_searched(lab: Lab, upstream: LinuxNext) -> None:
    lab.level = levels(lab, {})  # type: ignore[method-assign,assignment]
    day = upstream.day(new=2)
    lab.tick()
    git = lab.upstream.git
    tree, parent = git.run("rev-parse", f"{day.head}^{{tree}}"), git.run("rev-parse", f"{day.head}^")
    author = {f"GIT_{role}_{key}": "x@y" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    again = Git(git.path, env=author).run("commit-tree", tree, "-p", parent, "-m", "the same day once more")
    lab.upstream.push(again, "master")
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, "master", day.head, again, kpi=KPI))
    lab.tick()
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.state, seen.line.verdict) == ("done", "")
    assert "hold the same changes" in seen.line.reason
