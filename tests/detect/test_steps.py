"""Named series: what must be found in them, and what not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bisectbot.detect import Detector, Origin, find_steps
from bisectbot.errors import UserError
from bisectbot.jobs.kpi import Better, Kpi
from tests.benchmarks.detection.families import NULLS, STEPPED, Family
from tests.benchmarks.detection.score import Tally

CHILD = [75636, 75623, 75642, 75613, 75592, 75628, 74016, 75637, 75622, 75617]
CHILD += [75605, 74013, 75629, 75618, 75595, 75614, 75611, 75619, 75629, 75619]
PARENT = [72665, 72628, 72665, 72656, 72668, 72642, 72660, 72642, 72648, 72661]
PARENT += [72650, 72648, 72651, 72639, 72630, 72641, 72655, 72650, 72624, 72649]


def indexes(series: list[list[float]]) -> list[int]:
    return [step.index for step in find_steps(series)]


@pytest.mark.parametrize("runs", [2, 3, 5, 10])
def test_the_seed_report_is_one_step(runs: int):
    """Two of the child's 20 runs are in a second mode: one step all the same, in place unless they hide it."""
    rng = np.random.default_rng(runs)
    for _ in range(25):
        series = [rng.choice(PARENT, runs).tolist() for _ in range(10)] + [
            rng.choice(CHILD, runs).tolist() for _ in range(10)
        ]
        (index,) = indexes(series)
        assert index == 10 if runs > 2 else abs(index - 10) <= 1


def test_nothing_alarms_before_the_sixth_head():
    series = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [9.0, 9.0], [9.0, 9.0], [9.0, 9.0]]
    assert [indexes(series[:heads]) for heads in range(7)] == [[], [], [], [], [], [], [3]]


def test_one_odd_head_is_no_step_wherever_it_is():
    rng = np.random.default_rng(5)
    for at in (0, 1, 20, 38, 39):
        series = [[100 + float(rng.standard_normal())] for _ in range(40)]
        series[at] = [150.0]
        assert indexes(series) == []


def test_a_large_step_alarms_with_its_second_head():
    rng = np.random.default_rng(6)
    series = [[level + float(rng.standard_normal())] for level in [100.0] * 60 + [130.0] * 2]
    assert indexes(series) == [60]


@pytest.mark.parametrize(("heads", "waves"), [(200, 1.75), (260, 1.25), (300, 2.5)])
def test_a_slow_wave_has_none(heads: int, waves: float):
    """Ten standard deviations from crest to trough: much differs far apart, nothing from one head to the next."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 44])
        wave = np.sin(2 * np.pi * (waves * np.arange(heads) / heads + rng.random()))
        found += len(indexes([[value] for value in (100 + 5 * wave + rng.standard_normal(heads)).tolist()]))
    assert found <= 5


@pytest.mark.parametrize("value", [0.0, -3.0, 1e9, 1e-9])
def test_a_constant_series_has_none(value: float):
    assert indexes([[value]] * 100) == []


def test_a_counter_that_moves_by_one_is_seen():
    assert indexes([[41.0]] * 20 + [[42.0]] * 20) == [20]


def test_an_environment_change_is_no_step():
    rng = np.random.default_rng(8)
    series = [[level + float(rng.standard_normal())] for level in [100.0] * 30 + [120.0] * 30 + [140.0] * 30]
    assert [step.index for step in find_steps(series, breaks=[30])] == [60]


def test_an_accepted_step_is_normal_from_then_on():
    rng = np.random.default_rng(9)
    series = [[level + float(rng.standard_normal())] for level in [100.0] * 30 + [120.0] * 30 + [140.0] * 30]
    assert [step.index for step in find_steps(series, anchors=[30])] == [60]
    detector = Detector()
    detector.extend(series)
    detector.accept(30)
    assert [step.index for step in detector.steps()] == [60]


def test_the_least_interesting_effect_is_the_kpis():
    rng = np.random.default_rng(10)
    series = [[level + float(rng.standard_normal()) / 10] for level in [100.0] * 30 + [101.0] * 30 + [110.0] * 30]
    kpi = Kpi("k", better=Better.LESS, least_effect=3.0)
    assert [step.index for step in find_steps(series, kpi=kpi)] == [60]


def test_runs_of_one_boot_are_one_result():
    """Two boots a head, one of them in a slow mode now and then: twenty runs in it weigh no more than one."""
    rng = np.random.default_rng(11)
    series, sessions = [], []
    for head in range(60):
        slow = 10.0 * (head % 7 == 0)
        series.append([*(100 + slow + rng.standard_normal(9)).tolist(), 100 + float(rng.standard_normal())])
        sessions.append([Origin("h", f"{head}a")] * 9 + [Origin("h", f"{head}b")])
    assert find_steps(series, sessions=sessions) == []


@pytest.mark.parametrize("every", [1, 7, 30])
def test_a_change_of_host_is_no_step(every: int):
    """Two hosts 5 % apart, taking turns every so many heads, the last time for good: and one real step of 3 %."""
    rng = np.random.default_rng(12)
    series, sessions = [], []
    for head in range(90):
        host = "ab"[head // every % 2]
        series.append((100 + 5.0 * (host == "b") + 3.0 * (head >= 50) + 0.3 * rng.standard_normal(2)).tolist())
        sessions.append([Origin(host, head)] * 2)
    (step,) = find_steps(series, sessions=sessions)
    assert step.index == 50
    detector = Detector()
    assert [detector.append(*pair) for pair in zip(series, sessions, strict=True)][-1] == [step]


def test_runs_on_two_hosts_at_each_head_are_levelled():
    rng = np.random.default_rng(13)
    series, sessions = [], []
    for head in range(60):
        hosts = ["a", "b"] if head % 3 else ["a", "a"]
        series.append([100 + 8.0 * (host == "b") + 0.5 * float(rng.standard_normal()) for host in hosts])
        sessions.append([Origin(host, f"{head}.{at}") for at, host in enumerate(hosts)])
    assert find_steps(series, sessions=sessions) == []


def test_sessions_must_fit_the_runs():
    with pytest.raises(UserError, match="head 1: 2 runs but sessions for 1"):
        find_steps([[1.0], [1.0, 2.0]], sessions=[[("h", 1)], [("h", 1)]])


@pytest.mark.parametrize("at", [-1, 3])
def test_breaks_and_anchors_lie_within(at: int):
    with pytest.raises(UserError, match="the series has heads 0 to 2"):
        find_steps([[1.0], [1.0], [1.0]], breaks=[at])


@pytest.mark.parametrize("family", STEPPED, ids=lambda family: family.name)
def test_every_family_of_steps(family: Family):
    tally = Tally()
    for seed in range(2000, 2004 if family.name != "long" else 2001):
        sample = family.sample(seed)
        tally.add(indexes(sample.series), sample)
    assert tally.f1(3) >= (0.6 if family.name == "drift" else 0.8)


@pytest.mark.parametrize("family", NULLS, ids=lambda family: family.name)
def test_every_family_of_noise(family: Family):
    tally = Tally()
    for seed in range(2000, 2004):
        sample = family.sample(seed)
        tally.add(indexes(sample.series), sample)
    # a burst that hits every run of three heads or more cannot be told from a step and its revert
    assert tally.found <= {"null_drift": 4, "null_bursts": 8, "null_bursts_short": 3}.get(
        family.name, max(1, 3 * tally.heads // 10_000)
    )


def test_real_repeats_are_quiet():
    """Five little programs on a busy machine, three passes over the same heads: nothing changed but the noise."""
    found = heads = 0
    for path in sorted((Path(__file__).parent / "data").glob("*.csv")):
        values = [float(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        third = len(values) // 3
        series = [
            list(runs) for runs in zip(values[:third], values[third : 2 * third], values[2 * third :], strict=False)
        ]
        found += len(find_steps(series))
        heads += len(series)
    assert heads >= 4000
    assert found <= heads * 30 / 10_000


DISTURBED_A = """617407 420820 617643|1203493 617649 616231|1207208 1133013 1127355|859094 1254476 1286681
1197868 1214794 1160918|1280918 1207415 1252420|1167741 1228860 1208801|1246958 1291970 1200443
997820 1045476 1104144|866384 981563 1082812|1090574 1087030 1127552|1111136 1113431 1044224
1070760 1081879 1107566|1104545 1022802 1111487|1144326 1096469 1048339|1081211 1148025 1079576
1088166 1081903 1040689|1069498 1143343 1109254"""
DISTURBED_B = """618723 1183583 1192884|415938 623101 415267|1109798 1162689 1152236|1172021 1165715 1220358
1142363 1141870 1195934|1209072 1267419 1225301|1172704 1173330 1209061|1232752 1220997 1182363
1064786 950557 1107894|1013054 1044701 1047007|1108322 1018748 1117231|1154373 1077688 1042696
1073391 1034231 1080848|1035395 1050740 1075130|1142196 1128737 952826|1113341 1089531 1155105
1004636 1096346 1109331|1124436 1114630 1120768"""


@pytest.mark.parametrize("text", [DISTURBED_A, DISTURBED_B], ids=["a", "b"])
def test_a_disturbed_start_hides_no_plain_step(text: str):
    """A machine at half speed for a third of the runs of the first heads; the step of 11 % is at head 8."""
    series = [[float(run) for run in head.split()] for head in text.replace("\n", "|").split("|")]
    assert indexes(series) == [8]
