"""Re-testing a suspected step."""

from __future__ import annotations

import numpy as np
import pytest

from bisectbot.detect import Boot, Outcome, retest
from bisectbot.errors import UserError
from tests.benchmarks.detection.retests import run


def boots(*values: float, host: str = "h1") -> list[Boot]:
    return [Boot(host, at, [value]) for at, value in enumerate(values)]


def test_it_asks_for_both_heads_first():
    told = retest([], [], effect=5.0, noise=1.0)
    assert told.outcome is Outcome.MORE
    assert told.more_before == told.more_after >= 2
    assert told.effect is None


def test_a_clear_step_takes_two_boots_a_side():
    told = retest(boots(100.1, 99.8), boots(110.2, 109.9), effect=10.0, noise=0.3)
    assert told.outcome is Outcome.REAL
    assert told.effect == pytest.approx(10.1)
    assert (told.more_before, told.more_after) == (0, 0)


def test_no_difference_is_not_real():
    assert retest(boots(100.1, 99.8), boots(100.2, 99.9), effect=10.0, noise=0.3).outcome is Outcome.NOT_REAL


def test_a_step_the_other_way_is_not_the_one_suspected():
    assert retest(boots(100.0, 100.1), boots(90.0, 90.1), effect=10.0, noise=0.3).outcome is Outcome.NOT_REAL


def test_the_side_with_fewer_boots_catches_up():
    told = retest(boots(100.0, 101.0, 99.0), boots(102.0), effect=2.0, noise=1.0)
    assert told.outcome is Outcome.MORE
    assert told.more_after == told.more_before + 2


def test_hosts_are_compared_with_themselves():
    before = boots(100.0, 100.2) + boots(50.0, 50.1, host="h2")
    after = boots(110.0, 110.1) + boots(60.1, 60.2, host="h2")
    told = retest(before, after, effect=10.0, noise=0.3)
    assert told.outcome is Outcome.REAL
    assert told.effect == pytest.approx(10.0, abs=0.2)


def test_a_host_that_saw_one_side_only_decides_nothing():
    told = retest(boots(100.0, 100.1), boots(110.0, 110.1, host="h2"), effect=10.0, noise=0.3)
    assert told.outcome is Outcome.MORE
    assert told.odds == 0


def test_what_cannot_be_decided_ends_as_not_real():
    rng = np.random.default_rng(1)
    before, after = boots(*rng.normal(0, 50, 16)), boots(*rng.normal(0.5, 50, 16))
    assert retest(before, after, effect=1.0, noise=50.0, most=16).outcome is Outcome.NOT_REAL


@pytest.mark.parametrize(("effect", "noise"), [(0.0, 1.0), (float("nan"), 1.0), (1.0, float("inf")), (1.0, -1.0)])
def test_what_cannot_be_tested_is_refused(effect: float, noise: float):
    with pytest.raises(UserError, match="cannot re-test"):
        retest([], [], effect=effect, noise=noise)


def test_no_measurement_is_refused():
    with pytest.raises(UserError, match="NaN"):
        retest(boots(1.0), boots(float("nan")), effect=1.0, noise=1.0)


@pytest.mark.parametrize("outliers", [0.0, 0.08])
def test_error_rates_hold(outliers: float):
    rng = np.random.default_rng(11)
    false = sum(run(rng, 0.0, 4.0, 1.0, outliers=outliers)[0] for _ in range(150))
    missed = sum(not run(rng, 4.0, 4.0, 1.0, outliers=outliers)[0] for _ in range(150))
    assert false <= 5  # 1 % of 150, and what chance adds
    assert missed <= 15
