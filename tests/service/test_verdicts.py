"""What the history and the checks after it make of a search's verdict, in words and in state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisectbot.bisect import State, Verdict
from bisectbot.config import VerifyPolicy
from bisectbot.jobs.assignment import BuildRecipe, KernelRecipe
from bisectbot.report.model import Check, Outcome
from bisectbot.service.search.candidates import Layout, Origin
from bisectbot.service.search.proofs import aligned_recipe, judge
from bisectbot.service.search.verdicts import ALIGNMENT, GROUP, REVERT, Proof, Verification, after, concluded, words
from bisectbot.source.history import History
from bisectbot.source.replay import Kind

NAMED = Verdict(State.CULPRIT, 1, 0.995, suspects=(1,), effect=-4.0, reason="because")
RECIPE = BuildRecipe("b", "command")


def layout(kind: Kind, changes: int = 1) -> Layout:
    history = History(("a" * 40, "b" * 40), ((), (0,)), 1, 0, 1, (0,))
    shas = tuple(f"{number:040x}" for number in range(changes))
    return Layout(history, (Origin(kind, "mm", shas, shas),))


@pytest.mark.parametrize(
    ("kind", "changes", "state", "word"),
    [
        (Kind.PICK, 1, None, "because"),
        (Kind.PICK, 2, None, "2 changes of mm that apply only together"),
        (Kind.AMEND, 2, None, "the new version"),
        (Kind.REVERT, 1, State.CHANGE_ON_GOOD_SIDE, "turned round"),
        (Kind.REST, 0, State.NO_SINGLE_CULPRIT, "merges and their fix-ups"),
    ],
)
def test_a_step_of_a_replay_line_is_said_as_what_it_stands_for(
    kind: Kind, changes: int, state: State | None, word: str
) -> None:
    told, reason = words(NAMED, layout(kind, changes))
    assert told is state
    assert word in reason


def test_of_an_amended_change_the_new_version_is_named_of_a_group_the_last() -> None:
    assert layout(Kind.AMEND, 2).proposed(1) == (f"{1:040x}",)
    assert layout(Kind.PICK, 2).known_as(1) == f"{1:040x}"
    assert layout(Kind.REST, 0).known_as(1) == "b" * 40


def proof(name: str, outcome: Outcome) -> Proof:
    return Proof(name, "", "", RECIPE, 0, 0, -4.0, check=Check(outcome, "no difference"))


@pytest.mark.parametrize(
    ("name", "outcome", "state", "held"),
    [
        (REVERT, Outcome.CONFIRMED, State.CULPRIT, False),
        (REVERT, Outcome.UNDECIDED, State.CULPRIT, False),
        (REVERT, Outcome.REFUTED, State.NO_SINGLE_CULPRIT, False),
        (ALIGNMENT, Outcome.REFUTED, State.CULPRIT, True),
        (ALIGNMENT, Outcome.CONFIRMED, State.CULPRIT, False),
        (GROUP, Outcome.UNDECIDED, State.CULPRIT, False),
    ],
)
def test_a_check_that_contradicts_keeps_the_verdict_from_people(
    name: str, outcome: Outcome, state: State, held: bool
) -> None:
    told = concluded(NAMED, Verification((proof(name, outcome),)))
    said = after(NAMED, told)
    assert said.state is state
    assert (said.culprit is None) is (state is not State.CULPRIT)
    assert bool(told.hold) is held


def test_a_proof_is_judged_by_a_search_with_one_candidate() -> None:
    sides = ([100.0, 101.0], [96.0])
    running = replace(NAMED, state=State.RUNNING)
    open_proof = replace(proof(REVERT, Outcome.CONFIRMED), check=None)
    assert judge(open_proof, running, sides, "") is None
    check = judge(open_proof, NAMED, sides, "")
    assert check is not None
    assert check.outcome is Outcome.CONFIRMED
    assert "without it 100.5 (2 runs); with it there again 96 (1 run)" in check.what
    other_way = judge(open_proof, replace(NAMED, effect=4.0), sides, "")
    assert other_way is not None
    assert other_way.outcome is Outcome.REFUTED
    alike = replace(NAMED, state=State.NOT_REPRODUCED)
    for name, outcome in ((REVERT, Outcome.REFUTED), (GROUP, Outcome.UNDECIDED)):
        found = judge(replace(open_proof, name=name), alike, sides, "")
        assert found is not None
        assert found.outcome is outcome
    broken = judge(open_proof, running, sides, "does not build: error")
    assert broken is not None
    assert broken.outcome is Outcome.UNDECIDED


def test_kernels_have_an_aligned_build_of_their_own_others_as_configured() -> None:
    kernel = replace(RECIPE, kernel=KernelRecipe("x86_64_defconfig"))
    aligned = aligned_recipe(VerifyPolicy(), kernel)
    assert aligned is not None
    assert aligned.kernel == KernelRecipe("x86_64_defconfig", variant="aligned")
    assert aligned.digest() != kernel.digest()
    assert aligned_recipe(VerifyPolicy(), RECIPE) is None
    told = aligned_recipe(VerifyPolicy(alignment={"CFLAGS": "-falign-functions=64"}), RECIPE)
    assert told is not None
    assert dict(told.environment) == {"CFLAGS": "-falign-functions=64"}
