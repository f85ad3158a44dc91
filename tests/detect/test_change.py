"""Steps of several series at the same heads are one change."""

from __future__ import annotations

import pytest

from bisectbot.detect import Direction, Finding, Step, changes
from bisectbot.jobs.kpi import Better, Kpi

OPS = Kpi("will-it-scale.per_process_ops", better=Better.MORE)
TIME = Kpi("aim9.time", better=Better.LESS)
FAULTS = Kpi("vmstat.pgfault")


def finding(
    kpi: Kpi, low: int, high: int, effect: float = 1.0, p: float = 0.9, job: str = "a", group: str = "g"
) -> Finding:
    direction = Direction.of(effect, kpi)
    step = Step(
        (low + high) // 2,
        10.0,
        10.0 + effect,
        effect,
        (effect, effect),
        10 * effect,
        p,
        (low, high),
        0.1,
        0.1,
        direction,
    )
    return Finding(step, kpi, job, group)


def test_findings_that_share_a_head_are_one_change():
    (change,) = changes([finding(OPS, 10, 14, job="a"), finding(TIME, 12, 18, job="b")])
    assert change.interval == (12, 14)
    assert change.probability == pytest.approx(1 - 0.1 * 0.1)
    assert change.bisectable
    assert change.direction is Direction.REGRESSION


def test_findings_apart_are_changes_of_their_own():
    one, other = changes([finding(OPS, 20, 22), finding(TIME, 5, 6)])
    assert (one.interval, other.interval) == ((5, 6), (20, 22))


def test_kpis_of_one_run_are_no_independent_witnesses():
    (change,) = changes([finding(OPS, 10, 14), finding(TIME, 10, 14)])
    assert change.probability == pytest.approx(0.9)


def test_host_groups_are_witnesses():
    (change,) = changes([finding(OPS, 10, 14, group="icl"), finding(OPS, 10, 14, group="ivb")])
    assert change.probability == pytest.approx(0.99)


def test_monitors_explain_but_start_nothing():
    alone, explained = changes(
        [
            finding(FAULTS, 3, 4, p=0.999),
            finding(OPS, 10, 14, p=0.8),
            *(finding(FAULTS, 9, 11, p=0.999, job=str(at)) for at in range(100)),
        ]
    )
    assert not alone.bisectable
    assert explained.bisectable
    assert explained.interval == (10, 14)
    assert explained.probability == pytest.approx(0.8)
    assert len(explained.findings) == 101
    assert explained.findings[0].kpi is OPS


def test_a_chain_of_overlaps_does_not_become_one_change():
    found = changes([finding(OPS, 0, 10, p=0.99), finding(TIME, 9, 20, p=0.9), finding(OPS, 19, 30, p=0.8)])
    assert [change.interval for change in found] == [(9, 10), (19, 30)]


def test_the_order_of_findings_does_not_matter():
    found = [
        finding(OPS, 0, 10, p=0.99),
        finding(TIME, 9, 20, job="x"),
        finding(OPS, 19, 30, p=0.8),
        finding(FAULTS, 9, 9),
    ]
    assert changes(found) == changes(found[::-1])


def test_improvement_if_nothing_regressed():
    (change,) = changes([finding(OPS, 1, 2), finding(FAULTS, 1, 2)])
    assert change.direction is Direction.IMPROVEMENT
    assert change.index == 1
