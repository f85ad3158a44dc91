"""Properties of the detector: what must hold of every answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.detect import Detector, Direction, find_steps
from bisectbot.errors import UserError
from bisectbot.jobs.kpi import Better, Kpi


def noisy(levels: Sequence[float], runs: int = 3, sigma: float = 1.0, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [(level + sigma * rng.standard_normal(runs)).tolist() for level in levels]


RUNS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=5)


@given(st.lists(RUNS, max_size=30))
def test_any_finite_series_is_answered(series: list[list[float]]):
    for step in find_steps(series):
        assert 0 < step.interval[0] <= step.index <= step.interval[1] < len(series)
        assert 0 < step.probability <= 1


@pytest.mark.parametrize("length", [5, 40, 700, 1300])
def test_appending_gives_the_same_answer(length: int):
    levels = [100 + 3 * (at // 90 % 2) for at in range(length)]
    series = noisy(levels, seed=length)
    detector = Detector()
    answers = [detector.append(runs) for runs in series]
    for count in sorted({1, 5, 6, 39, 511, 512, 513, 640, 767, 768, 769, length} & set(range(length + 1))):
        assert answers[count - 1] == find_steps(series[:count])


def test_a_step_is_found_and_told():
    (step,) = find_steps(noisy([100] * 30 + [90] * 20), kpi=Kpi("ops", better=Better.MORE))
    assert step.index == 30
    assert step.direction is Direction.REGRESSION
    assert step.percent == pytest.approx(-10, abs=1)
    assert step.effect_interval[0] < -10 < step.effect_interval[1]
    assert step.interval[0] <= 30 <= step.interval[1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_measurement_is_refused_with_its_place(bad: float):
    with pytest.raises(UserError, match="head 1, run 2"):
        find_steps([[1.0], [1.0, 2.0, bad], [3.0]])


def test_a_head_without_runs_is_refused_with_its_place():
    with pytest.raises(UserError, match="head 1 has no runs"):
        find_steps([[1.0], [], [3.0]])


def test_a_weak_step_is_told_where_suspicions_are_asked_for():
    rng = np.random.default_rng(4)
    series = [list(rng.normal(1000 if head < 9 else 975, 20, 3)) for head in range(18)]
    assert find_steps(series) == []
    (step,) = find_steps(series, least_probability=0.02)
    assert abs(step.index - 9) <= 2
    assert 0.02 <= step.probability < 0.5


def test_who_asks_for_less_is_told_no_less():
    rng = np.random.default_rng(1)
    series = [list(rng.normal(1000 if head < 40 else 900, 20, 3)) for head in range(80)]
    sure, suspected = find_steps(series), find_steps(series, least_probability=0.02)
    assert {step.index for step in sure} <= {step.index for step in suspected}
    assert [step.probability for step in sure] >= [0.9]
