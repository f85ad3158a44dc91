"""What a person is told whose builds were measured side by side."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.results.trial import Column, Outcome, compared, difference, patch_judged

TITLES = ("parent", "culprit", "culprit + patch")


def column(title: str, level: float, seed: int = 1, sigma: float = 0.5, boots: int = 3, runs: int = 3) -> Column:
    rng = random.Random(f"{title} {seed}")
    made = []
    for boot in range(boots):
        shift = rng.gauss(0, sigma)
        made += [(f"boot {boot}", level + shift + rng.gauss(0, sigma)) for _ in range(runs)]
    return Column(title, "0" * 40, tuple(made))


def judged(*levels: float, seed: int = 1):
    return patch_judged([column(title, level, seed) for title, level in zip(TITLES, levels, strict=True)])


@pytest.mark.parametrize(
    ("levels", "outcome", "said"),
    [
        ((100, 80, 100), Outcome.FIXED, "brings the parent's level back"),
        ((100, 80, 90), Outcome.PARTLY, "undoes [45]"),
        ((100, 80, 80), Outcome.NO_EFFECT, "makes no difference"),
        ((100, 80, 60), Outcome.WORSE, "widens the change"),
        ((100, 100, 100), Outcome.UNSURE, "does not show here"),
        ((100, 80, 120), Outcome.FIXED, "brings the parent's level back \\(19"),
        ((80, 100, 80), Outcome.FIXED, "brings the parent's level back"),
    ],
)
def test_a_patch_is_judged_in_a_sentence(levels: tuple[float, ...], outcome: Outcome, said: str) -> None:
    judgement = judged(*levels)
    assert judgement.outcome is outcome, judgement
    assert re.search(said, judgement.sentence)


def test_two_builds_are_the_same_different_or_not_told_apart() -> None:
    assert compared(column("a", 100), column("b", 90)).outcome is Outcome.DIFFERENT
    assert compared(column("a", 100, sigma=0.1), column("b", 100, sigma=0.1)).outcome is Outcome.SAME
    assert compared(column("a", 100, sigma=20), column("b", 104, sigma=20)).outcome is Outcome.UNSURE


def test_a_boot_counts_once_however_often_it_ran() -> None:
    """Three boots of a hundred runs each are three units: their shifts are not averaged away by more runs."""
    wide = difference(column("a", 100, runs=100), column("b", 100, runs=100))
    narrow = difference(column("a", 100, boots=100), column("b", 100, boots=100))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_a_patch_that_may_have_mended_only_a_part_is_not_said_to_have_mended_all() -> None:
    parent, culprit = column("parent", 100, sigma=0.1), column("culprit", 90, sigma=0.1)
    unclear = Column("culprit + patch", "", (("1", 95.5), ("2", 99.0), ("3", 97.0)))
    judgement = patch_judged([parent, culprit, unclear])
    assert judgement.outcome is Outcome.PARTLY
    assert "more runs would tell better" in judgement.sentence


def test_the_interval_holds_what_it_says() -> None:
    """Of 400 pairs without a difference about 5 % look different."""
    wrong = sum(difference(column("a", 100, seed), column("b", 100, seed)).real for seed in range(400))
    assert 4 <= wrong <= 36


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5))
def test_numbers_of_any_kind_are_judged(one: list[float], other: list[float]) -> None:
    made = [Column(t, "", tuple((f"run {i}", v) for i, v in enumerate(vs))) for t, vs in (("a", one), ("b", other))]
    assert compared(made[0], made[1]).sentence
    assert patch_judged([made[0], made[1], made[0]]).sentence
