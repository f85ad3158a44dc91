"""Every scenario of the table three times: as it is, with all ids changed half-way, and without its rule."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest

from bisectbot.bisect import State
from tests.scenarios.driver import Bisection, Outcome, Record, Rule
from tests.scenarios.lab import Lab
from tests.scenarios.table import CASES, Case, Ends
from tests.scenarios.world import World

BY_NAME = {case.name: case for case in CASES}


def _start(case: Case, path: Path, without: Rule | tuple[Rule, ...] = ()) -> tuple[World, Ends, Bisection]:
    world = World(path)
    ends = case.history(world)
    world.write()
    lab = Lab(case.noise, case.faults, seed=case.seed, good=world.image(world.sha(ends.good)).level)
    rules = frozenset(Rule) - frozenset(without if isinstance(without, tuple) else [without])
    return world, ends, _bisection(case, world, ends, lab, rules, [])


def _bisection(
    case: Case, world: World, ends: Ends, lab: Lab, rules: frozenset[Rule], notebook: list[Record]
) -> Bisection:
    return Bisection(
        world.git,
        world.sha(ends.good),
        world.sha(ends.bad),
        lab,
        world.image,
        rules,
        effect=case.effect,
        budget=case.budget,
        hosts=case.hosts,
        seed=case.seed,
        rebuilt=case.rebuilt,
        notebook=notebook,
        aligned=partial(world.image, aligned=True) if case.verify else None,
    )


def _right(case: Case, ends: Ends, world: World, outcome: Outcome) -> bool:
    if outcome.state in {State.GAVE_UP, State.NOT_REPRODUCED}:
        return outcome.state is case.state  # nobody is named
    named, others = ({world.number(sha) for sha in shas} for shas in (outcome.named, outcome.others))
    right = named == ends.named and others == ends.others
    return right and outcome.state is case.state and outcome.kind == case.kind and outcome.label == case.label


def _say(case: Case, ends: Ends, world: World, outcome: Outcome) -> str:
    named, others = (sorted(world.number(sha) for sha in shas) for shas in (outcome.named, outcome.others))
    wanted = f"{case.state} {sorted(ends.named)} {sorted(ends.others)}"
    told = f"{outcome.state} {outcome.kind} {outcome.label} {named} {others}"
    return f"{told} ({outcome.verdict.reason}), wanted {wanted} {case.label}"


@cache
def _plain(name: str, path: Path) -> tuple[bool, str, int]:
    case = BY_NAME[name]
    world, ends, bisection = _start(case, path)
    outcome = bisection.run()
    return _right(case, ends, world, outcome), _say(case, ends, world, outcome), outcome.experiments


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenarios")


@pytest.mark.parametrize("name", BY_NAME)
def test_the_outcome_is_right(name: str, place: Path) -> None:
    right, said, _ = _plain(name, place / f"plain-{name}")
    assert right, said


@pytest.mark.parametrize("name", BY_NAME)
def test_it_stays_so_when_all_ids_change_half_way(name: str, place: Path, tmp_path: Path) -> None:
    _, said, experiments = _plain(name, place / f"plain-{name}")
    case = BY_NAME[name]
    world, ends, first = _start(case, tmp_path)
    first.run(upto=experiments // 2)
    world.rebuild()
    second = _bisection(case, world, ends, first.lab, first.rules, first.notebook)
    outcome = second.run()
    assert _right(case, ends, world, outcome), _say(case, ends, world, outcome)
    assert outcome.experiments == experiments, said


@pytest.mark.parametrize("name", BY_NAME)
def test_without_its_rule_it_comes_out_wrong(name: str, place: Path, tmp_path: Path) -> None:
    """Wrong, or not at all with three times the experiments."""
    _, said, experiments = _plain(name, place / f"plain-{name}")
    case = BY_NAME[name]
    world, ends, bisection = _start(case, tmp_path, case.needs)
    outcome = bisection.run(upto=3 * experiments)
    assert not _right(case, ends, world, outcome), said
