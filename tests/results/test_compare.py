"""Which rows a comparison lists, in which order, with which figures."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisectbot.results.compare import Order, compare
from bisectbot.results.matrix import MatrixSet, RunMatrix
from bisectbot.results.table import Cell, Table, layout, row_text
from bisectbot.results.table_reader import read_tables

SHARED = Path(__file__).parents[2].parent / "shared" / "lkp"
Runs: TypeAlias = Sequence[int | float | None]
Stats: TypeAlias = Mapping[str, Runs]


def table(base: Stats, other: Stats, *, host: str = "lkp-abc-2sp1", **how: Any) -> Table:
    data = {"axes": {"tbox_group": host}, "matrices": {"b" * 40: base, "a" * 40: other}}
    return compare(MatrixSet.from_json(data), **how)


def names(base: Stats, other: Stats, **how: Any) -> list[str]:
    found = table(base, other, **how)
    return [row.name for row in found.fails] + [row.name for row in found.rows]


def listed(base: Runs, other: Runs, name: str = "bench.score", **how: Any) -> bool:
    return name in names({name: base}, {name: other}, **how)


@pytest.mark.parametrize(
    ("base", "other", "told"),
    [
        ([10, 11, 12], [13, 14, 15], True),
        ([10, 11, 12, 13], [13, 13, 14, 15], True),  # ranges touch, but each median is outside the other's
        ([10, 11, 12], [11, 14, 15], False),  # the other's smallest is the base's median
        ([10, 11, 14], [12, 14, 15], False),  # the other's median is within the base's range
        ([10, 12], [13, 14], False),  # two runs on both sides
        ([10, 12, 11], [13], True),  # three on one side are enough
        ([1000, 1000, 1000], [1010, 1010, 1010], False),  # one per cent is no more than one per cent
        ([1000, 1000, 1000], [1011, 1011, 1011], True),
        ([0, 0, 0], [1, 1, 1], True),
        ([-5, -5, -5], [-9, -9, -9], True),
        ([-1, 10, 11, 12], [13, -1, 14, 15], True),  # -1 was not measured
        ([-1, -1, -1], [13, 14, 15], False),
    ],
)
def test_median_against_range(base: Runs, other: Runs, told: bool):
    assert listed(base, other, exact=True) is told


def test_an_even_number_of_runs_takes_the_upper_median():
    assert not listed([10, 20], [15, 15, 15, 15])  # 20 is not below 15
    assert listed([10, 20], [21, 21, 21, 21])


def test_outliers_are_trimmed_from_32_runs_on():
    assert not listed([10] * 30 + [99], [20] * 31)
    assert listed([10] * 31 + [99], [20] * 32)
    assert not listed([10] * 30 + [99, 99], [20] * 32)
    assert listed([10] * 93 + [99] * 3, [20] * 96)
    assert not listed([10, 10, 10], [20] * 62 + [1, 1])  # the base's three runs allow one only
    assert listed([10, 10, 10], [20] * 63 + [1])


@pytest.mark.parametrize(
    ("name", "base", "other", "told"),
    [
        ("meminfo.Slab", 100_000, 104_900, False),  # a monitor's change needs 5 %
        ("meminfo.Slab", 100_000, 105_100, True),
        ("meminfo.Slab", 900, 999, False),  # below 1000 kB
        ("proc-vmstat.pgfree", 100_000, 101_100, True),  # counted among the metrics
        ("proc-vmstat.nr_dirty", 20, 90, False),  # largest below 100
        ("proc-vmstat.nr_dirty", 100, 149, False),  # difference below 50
        ("proc-vmstat.nr_dirty", 100, 151, True),
        ("vmstat.cpu.us", 5, 9.5, False),
        ("vmstat.cpu.us", 5, 10.5, True),
        ("vmstat.cpu.sy", 20, 49, False),
        ("bench.time.system_time", 4, 9.9, False),
        ("bench.time.system_time", 20, 24, False),
        ("bench.time.minor_page_faults", 400, 999, False),
        ("bench.time.file_system_outputs", 3, 9_999, False),
        ("iostat.sda.util", 3, 9, False),
        ("iostat.cpu.user", 0.2, 0.9, False),
        ("iostat.cpu.user", 0.2, 1.1, True),
        ("perf-c2c.HITM.total", 100, 2_999, False),
        ("perf-profile.self.cycles-pp.x", 0.50, 0.5001, True),  # a profile's rows are never small
        ("xfstests.generic.001.seconds", 2, 9, False),
        ("xfstests.generic.001.score", 100, 104, False),  # no metric: the suite passes or fails
        ("turbostat.PkgWatt", 100, 102, True),
        ("turbostat.IRQ", 100, 102, False),
        ("own-benchmark.latency", 100, 102, True),
        ("interrupts.CPU0.LOC", 1_000, 90_000, False),  # denied
        ("softirqs.RCU", 1_000, 90_000, False),
        ("slabinfo.dentry.active_objs", 1_000, 90_000, False),
        ("perf-sched.wait_time.avg.ms.kthread", 10, 20, True),
    ],
)
def test_small_changes(name: str, base: float, other: float, told: bool):
    assert listed([base] * 4, [other] * 4, name, exact=True) is told
    assert listed([other] * 4, [base] * 4, name, exact=True) is told


def test_hosts_that_are_virtual():
    assert not listed([1, 1, 1], [2, 2, 2], host="vh-abc")
    assert listed([1, 1, 1], [2, 2, 2], host="vm-abc")
    assert not listed([10_000] * 3, [20_000] * 3, "meminfo.Slab", host="vm-abc")


def test_what_only_one_side_has():
    other: Stats = {"bench.new": [5, 5, 5], "perf-profile.self.cycles-pp.f": [0.5, 0.5, 0.5]}
    assert names({"bench.old": [1, 1, 1]}, other, exact=True) == ["bench.old"]
    profiled: Stats = {"bench.old": [1, 1, 1], "perf-profile.self.cycles-pp.g": [1.0, 1.0, 1.0]}
    assert names(profiled, other, exact=True) == [
        "bench.old",
        "perf-profile.self.cycles-pp.g",
        "perf-profile.self.cycles-pp.f",
    ]


FAILS: Stats = {"t.a.pass": [1, 1, 1, 1], "t.b.fail": [0, 1, 0, 0], "dmesg.boot_failures": [0] * 4}


def test_failures_are_compared_by_occurrence_and_need_their_test_in_the_base():
    other: Stats = {
        "t.a.fail": [1, 0, 1, 1],
        "t.a.pass": [0, 1, 0, 0],
        "t.b.fail": [1, 1, 1, 1],  # failed before too
        "t.c.fail": [1, 1, 1, 1],  # never ran before
        "t.b.pass": [1, 0, 0, 0],
        "dmesg.WARNING:at_x": [1, 0, 0, 0],
        "dmesg.boot_failures": [1, 0, 0, 0],
        "dmesg.timestamp:WARNING:at_x": [17.1, 0, 0, 0],
        "stderr.oops": [1, 1, 1, 1],
        "perf-profile.children.cycles-pp.error_entry": [1.0, 1.0, 1.0, 1.0],
    }
    assert names(FAILS, other) == ["dmesg.WARNING:at_x", "stderr.oops", "t.a.fail", "t.b.pass"]
    rows = layout(table(FAILS, other)).splitlines()
    assert rows[-2] == "           :4           75%           3:4     t.a.fail"


def test_incomplete_runs_count_for_failures_only():
    base: Stats = {"bench.score": [10, 10, 10, 10]}
    other: Stats = {
        "bench.score": [20, 20, 20, 0],
        "last_state.is_incomplete_run": [0, 0, 0, 1],
        "dmesg.BUG:at_y": [0, 0, 0, 1],
        "stderr.late": [0, 1, 0, 0],
    }
    found = table(base, other, exact=True)
    assert [row.name for row in found.fails] == ["dmesg.BUG:at_y", "last_state.is_incomplete_run", "stderr.late"]
    assert [cell.runs for cell in found.fails[0].cells] == [4, 4]
    assert found.rows[0].cells[1] == Cell(20.0, None, 100.0)


def test_zero_base():
    base: Stats = {"bench.n": [0, 0, 0], "vmstat.cpu.us%": [0, 0, 0]}
    other: Stats = {"bench.n": [120, 120, 120], "vmstat.cpu.us%": [50, 50, 50]}
    assert "+1.2e+104%" in layout(table(base, other, exact=True))
    assert layout(table(base, other)).splitlines()[-2:] == [
        "      0.00                      120.00        bench.n",
        "      0.00           +50.0       50.00        vmstat.cpu.us%",
    ]


def test_zero_against_zero_in_a_third_column():
    data = {"matrices": {"b": {"x.n": [0] * 3}, "a": {"x.n": [7] * 3}, "c": {"x.n": [0] * 3}}}
    exact = compare(MatrixSet.from_json(data), exact=True).rows[0]
    mended = compare(MatrixSet.from_json(data)).rows[0]
    assert [cell.change for cell in exact.cells[1:]] == pytest.approx([7e102, -100])
    assert [cell.change for cell in mended.cells[1:]] == [None, 0.0]


def test_a_missing_value_is_no_zero():
    base: Stats = {"perf-stat.ps.instructions": [26.0] * 6, "bench.score": [5] * 6}
    other: Stats = {"perf-stat.ps.instructions": [17.0, None, 17.0, 17.0, None, 17.0], "bench.score": [5] * 6}
    assert row_text(table(base, other, exact=True).rows[0]) == (
        "     26.00           -56.4%      11.33 ± 70%  perf-stat.ps.instructions"
    )
    assert row_text(table(base, other).rows[0]) == (
        "     26.00           -34.6%      17.00        perf-stat.ps.instructions"
    )


def test_a_stat_that_vanished_is_not_compared():
    base: Stats = {"bench.score": [5] * 3, "bench.other": [1] * 3}
    other: Stats = {"bench.other": [2] * 3}
    assert names(base, other, exact=True) == ["bench.other", "bench.score"]
    assert names(base, other) == ["bench.other"]


def test_a_profile_leaves_out_what_is_next_to_nothing():
    base: Stats = {"perf-profile.self.cycles-pp.f": [0.1] * 3, "perf-profile.self.cycles-pp.g": [9.0] * 3}
    other: Stats = {"perf-profile.self.cycles-pp.g": [9.0, 9.0, 9.0]}
    assert row_text(table(base, other).rows[0]) == (
        "      0.10            -0.1        0.00        perf-profile.self.cycles-pp.f"
    )
    assert names(base, {"bench.x": [1, 1, 1]}) == []  # no profile at all says nothing about functions
    unprofiled: Stats = {"perf-profile.self.cycles-pp.g": [8.0, 8.0, 8.0, None]}
    assert table(base, unprofiled).rows[0].cells[1] == Cell(8.0, None, -1.0)


def test_reproduction_divides_by_the_runs_of_its_own_column():
    base: Stats = {"dmesg.KCSAN": [0] * 60}
    other: Stats = {"dmesg.KCSAN": [1] * 63 + [0] * 48}
    assert table(base, other, exact=True).fails[0].cells[1].change == pytest.approx(105)
    assert table(base, other).fails[0].cells[1].change == pytest.approx(100 * 63 / 111)


def test_deviation_is_cut_and_hidden_up_to_two_per_cent():
    def spread(values: Runs) -> int | None:
        return table({"bench.score": [1, 1, 1]}, {"bench.score": values}).rows[0].cells[1].spread

    assert spread([98, 102]) is None
    assert spread([97.9, 102.1]) == 2
    assert spread([93.01, 106.99]) == 6
    assert spread([100]) is None
    assert spread([-193, -207, -200]) is None


def test_order_by_size_of_the_group_and_tests_first():
    base: Stats = {
        "bench.a": [100] * 3,
        "bench.b": [100] * 3,
        "vmstat.system.in": [1000] * 3,
        "uptime.boot": [100] * 3,
        "meminfo.Slab": [10_000] * 3,
        "meminfo.Active": [10_000] * 3,
        "meminfo.Dirty": [10_000] * 3,
        "perf-profile.self.cycles-pp.aaa": [1.0] * 3,
        "perf-profile.self.cycles-pp.bbb": [1.0] * 3,
        "perf-profile.children.cycles-pp.zzz": [1.0] * 3,
    }
    other: Stats = {name: [2 * (run or 0) for run in runs] for name, runs in base.items()}
    other = {**other, "perf-profile.self.cycles-pp.bbb": [0.5] * 3}
    bench, rest = ["bench.a", "bench.b"], ["uptime.boot", "vmstat.system.in"]
    large = [
        "meminfo.Active",
        "meminfo.Dirty",
        "meminfo.Slab",
        "perf-profile.children.cycles-pp.zzz",
        "perf-profile.self.cycles-pp.bbb",
        "perf-profile.self.cycles-pp.aaa",
    ]
    assert names(base, other) == [*bench, *rest, *large]
    assert names(base, other, order=Order.GROUPS) == [*rest, *bench, *large]


def test_three_columns_compare_with_the_first():
    data = {
        "axes": {"fs": "xfs", "fs2": "nfsv4"},
        "matrices": {
            "v6.3-rc1": {"bench.score": [100] * 3, "bench.other": [7] * 3},
            "v6.3-rc2": {"bench.score": [50] * 3, "bench.other": [7] * 3},
            "c" * 40: {"bench.score": [100] * 3, "bench.other": [7] * 3},
        },
    }
    expected = """\
=========================================================================================
fs2/fs:
  nfsv4/xfs

commit:_
  v6.3-rc1
  v6.3-rc2
  cccccccccccccccccccccccccccccccccccccccc

        v6.3-rc1                    v6.3-rc2 ccccccccccccccccccccccccccc_
---------------- --------------------------- ---------------------------_
         %stddev     %change         %stddev     %change         %stddev
             \\          |                \\          |                \\__
    100.00           -50.0%      50.00            +0.0%     100.00        bench.score
"""
    assert layout(compare(MatrixSet.from_json(data))) == expected.replace("_\n", " \n").replace("_ \n", "  \n")


def test_a_stat_that_is_shown_however_few_its_runs():
    assert names(
        {"bench.score": [10], "bench.other": [1]}, {"bench.score": [9]}, always=("bench.score", "no.such")
    ) == ["bench.score"]
    assert names({"bench.score": [10] * 3}, {"bench.score": [9] * 3}, always=("bench.score",)) == ["bench.score"]


def test_no_runs_at_all():
    nothing = MatrixSet({"b": RunMatrix(0, {}), "a": RunMatrix(0, {})})
    assert layout(compare(nothing, exact=True)) == ""
    one = MatrixSet({"b": RunMatrix(0, {}), "a": RunMatrix.from_runs([{"stderr.x": 1}])})
    assert layout(compare(one)).splitlines()[-1] == "           :0          100%           1:1     stderr.x"


@st.composite
def _matrices(draw: st.DrawFn) -> MatrixSet:
    rng = random.Random(draw(st.integers(0, 2**32)))
    columns = draw(st.integers(2, 4))
    programs = ["bench", "meminfo", "perf-profile.self", "proc-vmstat", "perf-stat.i", "stderr", "dmesg"]

    def stats() -> dict[str, Runs]:
        runs = rng.randint(1, 40)
        measured = [program for program in programs if rng.random() < 0.8]
        unfinished: dict[str, Runs] = {
            "last_state.is_incomplete_run": [rng.choice([0, 0, 1]) for _ in range(rng.randint(0, 1) * runs)]
        }
        return unfinished | {
            f"{program}.s{index}": [
                rng.choice([0, None, rng.gauss(2.0**level, 1.0), rng.randint(0, 10**level)]) for _ in range(runs)
            ]
            for index, level in enumerate(range(1, 10))
            for program in measured
            if rng.random() < 0.8
        }

    data = {"axes": {"test": "x", "tbox_group": "h"}, "matrices": {f"{c:016x}": stats() for c in range(columns)}}
    return MatrixSet.from_json(data)


@given(_matrices(), st.booleans(), st.sampled_from(Order))
@settings(max_examples=60, deadline=None)
def test_what_is_printed_is_read_back_as_printed(matrices: MatrixSet, exact: bool, order: Order):
    made = compare(matrices, exact=exact, order=order)
    text = layout(made)
    if not text:
        assert not made.rows
        return
    (read,) = read_tables(text)
    assert layout(read) == text
    assert [row.name for row in read.rows] == [row.name for row in made.rows]
    assert [[cell.spread for cell in row.cells] for row in read.rows] == [
        [cell.spread for cell in row.cells] for row in made.rows
    ]
    for ours, theirs in zip(made.rows, read.rows, strict=True):
        for cell, again in zip(ours.cells, theirs.cells, strict=True):
            assert (cell.mean is None) == (again.mean is None)
            if cell.mean is not None and again.mean is not None:
                assert again.mean == pytest.approx(cell.mean, rel=2e-3, abs=0.006)


def test_lkps_own_output():
    """The oracle's cases, where they are at hand: our table is LKP's to the byte."""
    for path in sorted(SHARED.glob("oracle/case*.json")):
        made = layout(compare(MatrixSet.loads(path.read_bytes()), exact=True))
        expected = path.with_suffix(".txt").read_text(encoding="utf-8")
        assert (made and f"{made}\n") == expected, path.name
        assert json.loads(path.read_text())["axes"]
