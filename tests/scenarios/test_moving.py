"""Branches that move, and commits of our own making, while a bisection runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.bisect import State
from bisectbot.errors import InfraError
from bisectbot.source.git import Git
from bisectbot.source.history import commits, facts
from bisectbot.source.merged import is_ours, merged
from bisectbot.source.mirror import Mirror
from bisectbot.source.sightings import undone
from tests.scenarios.driver import Bisection, Record, Rule
from tests.scenarios.lab import Lab
from tests.scenarios.table import stale_branch_is_guilty, undone_later
from tests.scenarios.world import World

ALL = frozenset(Rule)


def _moved(world: World, mirror: Mirror, *, keep: bool) -> None:
    """Upstream force-pushes another history and cleans up; so do we."""
    head = mirror.fetch("linux").heads["master"]
    if keep:
        mirror.keep("linux", "master", 1, head)
    git = world.git
    git.run("update-ref", "refs/heads/master", world.sha(2))
    git.run("gc", "--prune=now", "--quiet")
    assert not git.has(head)
    assert mirror.fetch("linux").forced == ("master",)
    mirror.git.run("gc", "--prune=now", "--quiet")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "world")
    world.line(20, effects={12: -8.0})
    world.write()
    return world


@pytest.fixture
def mirror(world: World, tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.add_tree("linux", str(world.git.path))
    mirror.fetch("linux")
    return mirror


def _bisection(world: World, mirror: Mirror) -> Bisection:
    """Half of a bisection in the mirror. What is built is read from the mirror's own commits."""
    world.git = mirror.git
    bisection = Bisection(mirror.git, world.sha(1), world.sha(20), Lab(seed=3), world.image, ALL, effect=-8.0, seed=3)
    bisection.run(upto=4)
    return bisection


def test_the_range_moves_upstream_and_the_verdict_stays(world: World, mirror: Mirror) -> None:
    upstream = world.git
    bisection = _bisection(world, mirror)
    world.git = upstream
    _moved(world, mirror, keep=True)
    world.git = mirror.git
    outcome = bisection.run()
    assert outcome.state is State.CULPRIT
    assert [world.number(sha) for sha in outcome.named] == [12]


def test_without_refs_of_our_own_the_range_is_gone(world: World, mirror: Mirror) -> None:
    upstream = world.git
    bisection = _bisection(world, mirror)
    world.git = upstream
    _moved(world, mirror, keep=False)
    world.git = mirror.git
    with pytest.raises(InfraError):
        bisection.run()


@pytest.mark.parametrize(("rules", "repeated"), [(ALL, False), (ALL - {Rule.CHANGES}, True)])
def test_a_rebase_in_the_middle_repeats_nothing(world: World, rules: frozenset[Rule], repeated: bool) -> None:
    """Results are found again by what a commit does; by its id they would be lost."""

    def bisection(lab: Lab, notebook: list[Record]) -> Bisection:
        ends = world.sha(1), world.sha(20)
        return Bisection(world.git, *ends, lab, world.image, rules, effect=-8.0, notebook=notebook)

    undisturbed = bisection(Lab(seed=5), []).run().experiments
    first = bisection(Lab(seed=5), [])
    first.run(upto=5)
    world.rebuild()
    outcome = bisection(first.lab, first.notebook).run()
    assert [world.number(sha) for sha in outcome.named] == [12]
    assert (outcome.experiments > undisturbed) is repeated


def test_a_merge_that_only_the_robot_made_is_never_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    ends = stale_branch_is_guilty(world)
    world.write()
    git: Git = world.git
    good, bad = world.sha(ends.good), world.sha(ends.bad)
    made = merged(git, [good, world.sha(min(ends.named))])
    assert is_ours(git, made)
    bisection = Bisection(git, good, bad, Lab(seed=1, good=world.image(good).level), world.image, ALL, effect=-8.0)
    outcome = bisection.run()
    assert [world.number(sha) for sha in outcome.named] == sorted(ends.named)
    assert git.run("for-each-ref", "refs/bisectbot/merge")  # merges were measured,
    history = commits(git, good, bad)
    assert made not in history  # but none is a candidate,
    assert not any(is_ours(git, sha) for sha in outcome.named)  # and none is named


def test_a_culprit_that_its_own_series_undoes_is_told_with_that_fact(tmp_path: Path) -> None:
    """Patch 3 of the series slows, the range ends, patch 8 restores."""
    world = World(tmp_path)
    ends = undone_later(world)
    world.write()
    git, bad = world.git, world.sha(ends.bad)
    bisection = Bisection(git, world.sha(ends.good), bad, Lab(seed=1), world.image, ALL, effect=-8.0)
    (culprit,) = bisection.run().named
    (info,) = facts(git, [culprit])
    later = undone(git, info, "master")
    assert later is not None
    assert world.number(later.sha) == ends.bad + 1
    assert undone(git, info, bad) is None
