"""What must hold of the steps of every series, whatever its numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bisectbot.detect import Detector, Step, find_steps

Series = list[list[float]]


@st.composite
def stepped(draw: st.DrawFn) -> Series:
    """Series of up to four levels with seeded noise: hypothesis shrinks the plan, not the noise."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.lists(st.tuples(st.integers(-20, 20), st.integers(3, 30)), min_size=1, max_size=4))
    runs = draw(st.integers(1, 4))
    whole = draw(st.booleans())
    series: Series = []
    for level, heads in levels:
        for _ in range(heads):
            values = level + rng.standard_normal(runs) * draw(st.sampled_from([0.5, 1.0]))
            series.append([float(np.rint(8 * value) / 8 if whole else value) for value in values])
    return series


def told(steps: list[Step]) -> list[tuple[int, tuple[int, int]]]:
    return [(step.index, step.interval) for step in steps]


def mapped(series: Series, scale: float, shift: float) -> Series:
    return [[value * scale + shift for value in runs] for runs in series]


# Powers of two and whole eighths change no bit of a difference, so that the answer must be the very same.
@settings(max_examples=40, deadline=None)
@given(stepped(), st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_does_not_matter(series: Series, scale: float):
    found, scaled = find_steps(series), find_steps(mapped(series, scale, 0.0))
    assert told(found) == told(scaled)
    assert [step.percent for step in found] == [step.percent for step in scaled]
    assert [step.effect * scale for step in found] == [step.effect for step in scaled]


@settings(max_examples=40, deadline=None)
@given(stepped())
def test_what_is_better_does_not_matter(series: Series):
    assert told(find_steps(series)) == told(find_steps(mapped(series, -1.0, 0.0)))


@settings(max_examples=40, deadline=None)
@given(stepped(), st.sampled_from([-300.0, 17.0, 4000.0]))
def test_the_zero_does_not_matter(series: Series, shift: float):
    whole = [[float(np.rint(8 * value) / 8) for value in runs] for runs in series]
    assert [step.index for step in find_steps(whole)] == [step.index for step in find_steps(mapped(whole, 1.0, shift))]


@settings(max_examples=40, deadline=None)
@given(stepped(), st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(series: Series, random: object):
    shuffled = [sorted(runs, key=lambda value: hash((value, str(random)))) for runs in series]
    assert find_steps(series) == find_steps(shuffled)


@settings(max_examples=30, deadline=None)
@given(stepped())
def test_appending_gives_the_same_answer(series: Series):
    detector = Detector()
    for count, runs in enumerate(series, 1):
        answer = detector.append(runs)
        if count % 7 == 0 or count == len(series):
            assert answer == find_steps(series[:count])


@settings(max_examples=40, deadline=None)
@given(st.integers(8, 30), st.integers(8, 30), st.integers(8, 30), st.integers(0, 2**32))
def test_backwards_is_the_mirror(first: int, second: int, third: int, seed: int):
    rng = np.random.default_rng(seed)
    levels = [100.0] * first + [130.0] * second + [90.0] * third
    series = [[level + rng.standard_normal()] for level in levels]
    forwards = [step.index for step in find_steps(series)]
    backwards = [len(series) - step.index for step in find_steps(series[::-1])]
    assert forwards == sorted(backwards) == [first, first + second]
