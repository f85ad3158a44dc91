"""The canary's drift alarm: rare on noise, quick on a shift, blind to one wild day."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.detect.drift import drift, passes


def days(rng: np.random.Generator, count: int, shift: float = 0.0, at: int = 0) -> list[list[float]]:
    return [[100.0 + rng.normal() + (shift if day >= at else 0.0)] for day in range(count)]


def test_noise_seldom_alarms():
    rng = np.random.default_rng(1)
    alarmed = sum(drift(days(rng, 60)) is not None for _ in range(150))
    assert alarmed <= 150 * 0.2  # 60 days of 465 are 13 %, by chance up to 20 %


def test_a_shift_of_three_sigma_is_found_within_a_week():
    rng = np.random.default_rng(2)
    late = 0
    for _ in range(40):
        found = drift(days(rng, 40, shift=-3.0, at=25))
        late += found is None or found.alarm > 32
    assert late <= 4


def test_it_tells_since_when_and_how_much():
    found = drift(days(np.random.default_rng(3), 40, shift=-10.0, at=30))
    assert found is not None
    assert abs(found.since - 30) <= 1
    assert found.percent == pytest.approx(-10.0, abs=1.5)


def test_one_wild_day_is_no_drift():
    story = days(np.random.default_rng(4), 30)
    story[20] = [20.0]
    assert drift(story) is None
    assert not passes(story[:20], story[20])


def test_a_machine_without_noise_may_move_by_nothing():
    assert drift([[7342.0]] * 30) is None
    found = drift([[7342.0]] * 10 + [[7343.0]] * 5)
    assert found is not None
    assert found.since == 10
    assert passes([[7342.0]] * 5, [7342.0])
    assert not passes([[7342.0]] * 5, [7343.0])


def test_the_trouble_is_not_what_later_days_are_held_against():
    story = [*days(np.random.default_rng(5), 20), [130.0], [131.0], [130.5]]
    assert not passes(story, [130.4])
    assert passes(story, [100.5])


@given(st.lists(st.lists(st.floats(), max_size=4), max_size=12))
def test_no_numbers_break_it(story: list[list[float]]):
    drift(story)
    passes(story, story[-1] if story else [])


@given(st.lists(st.integers(-50, 50), min_size=5, max_size=30), st.integers(1, 8))
def test_the_unit_makes_no_difference(values: list[int], power: int):
    story = [[1000.0 + value] for value in values]
    scaled = [[2.0**power * value for value in runs] for runs in story]
    one, other = drift(story), drift(scaled)
    assert (one and (one.since, one.alarm)) == (other and (other.since, other.alarm))
