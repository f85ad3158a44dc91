"""One number per stat and run, and the matrix of runs: each rule on figures worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.results.matrix import RunMatrix
from bisectbot.results.parsers import RawLog, parse
from bisectbot.results.series import Samples, Series, collect
from bisectbot.results.stats import Window, averages, deviations, run_matrix, run_stats, with_dropped_zeros
from tests.results.parsers.logs import samples


def stats(name: str, *values: float | None, exact: bool = False) -> dict[str, float]:
    monitor = name.partition(".")[0]
    return run_stats([Series(monitor, {name: tuple(values)})], exact=exact)


def test_one_sample_stays_as_it_is():
    assert stats("aim9.exec_test.ops_per_sec", 1251.2) == {"aim9.exec_test.ops_per_sec": 1251.2}
    assert type(stats("dmesg.boot_failures", 1)["dmesg.boot_failures"]) is int


@pytest.mark.parametrize(
    "name",
    [
        "perf-stat.ps.cpu-cycles",
        "perf-stat.total.instructions",
        "perf-stat.overall.ipc",
        "pmu-tools.x",
        "time.file_system_inputs",
        "time.voluntary_context_switches",
        "time.minor_page_faults",
        "time.system_time",
        "time.swaps",
    ],
)
def test_independent_counters_add_up(name: str):
    assert stats(name, 0, 0, 5) == {name: 5}


@pytest.mark.parametrize(
    "name",
    [
        "cpuidle..time",
        "interrupts.CPU0.NMI:Non-maskable_interrupts",
        "numa-numastat.node0.numa_hit",
        "diskstats.sda.read_ios",
        "diskstats.io_ticks",
        "proc-vmstat.pgfault",
        "proc-vmstat.numa_hit",
        "proc-vmstat.nr_dirtied",
        "numa-vmstat.node1.numa_local",
        "numa-vmstat.nr_written",
        "numa-vmstat.node0.pgfault",
    ],
)
def test_event_counters_are_last_minus_first(name: str):
    assert stats(name, 1000, 5000, 7000) == {name: 6000}


@pytest.mark.parametrize(
    "name",
    [
        "proc-vmstat.nr_free_pages",
        "numa-vmstat.node0.nr_slab_unreclaimable",
        "softirqs.CPU0.RCU",
        "meminfo.MemFree",
        "time.elapsed_timer",
    ],
)
def test_everything_else_is_averaged(name: str):
    assert stats(name, 1, 2, 6) == {name: 3.0}


def test_some_also_give_their_maximum():
    assert stats("iostat.sda.await", 1.0, 4.0) == {"iostat.sda.await": 2.5, "iostat.sda.await.max": 4.0}
    assert stats("aim9.time.elapsed_time", 300.5) == {
        "aim9.time.elapsed_time": 300.5,
        "aim9.time.elapsed_time.max": 300.5,
    }
    assert "numa-meminfo.node0.AnonPages.max" in stats("numa-meminfo.node0.AnonPages", 1, 2)
    assert "meminfo.AnonPages.max" not in stats("meminfo.AnonPages", 1, 2)


def test_a_shorter_series_is_divided_by_the_longest_only_by_lkp():
    series = Series("sched_debug", {"sched_debug.time": (1, 2, 3, 4), "sched_debug.ktime": (10, 30)})
    assert run_stats([series], exact=True) == {"sched_debug.ktime": 10.0}
    assert run_stats([series]) == {"sched_debug.ktime": 20.0}


def test_what_was_not_printed_does_not_count():
    assert stats("meminfo.Late", None, None, 4, 6) == {"meminfo.Late": 5.0}
    assert stats("proc-vmstat.pgfault", None, 100, 150) == {"proc-vmstat.pgfault": 50}
    assert stats("meminfo.Never", None, None) == {}


def test_a_window_counts_seconds_from_the_first_record():
    series = Series(
        "meminfo", {"meminfo.time": (100, 101, 102, 103), "meminfo.MemFree": (1, 2, 4, 8), "meminfo.Once": (9,)}
    )
    assert run_stats([series], window=Window(1, 2)) == {"meminfo.MemFree": 3.0, "meminfo.Once": 9}
    assert run_stats([series], window=Window(begin=2)) == {"meminfo.MemFree": 6.0, "meminfo.Once": 9}


def test_a_window_takes_a_second_per_record_where_no_time_is_printed():
    series = Series("vmstat", {"vmstat.cpu.us": (1, 2, 4, 8)})
    assert run_stats([series], window=Window(1, 2)) == {"vmstat.cpu.us": 3.0}


def test_a_window_cannot_cut_the_whole_run():
    late: dict[str, Samples] = {"perf-stat.time": (1.0, 2.0), "perf-stat.ps.ipc": (0, 7), "perf-stat.i.ipc": (4, 6)}
    assert run_stats([Series("perf-stat", late)], window=Window(0, 0)) == {"perf-stat.ps.ipc": 7, "perf-stat.i.ipc": 4}


def test_path_length_needs_exactly_one_workload():
    perf = Series("perf-stat", {"perf-stat.total.instructions": (6000,)})
    work = Series("unixbench", {"unixbench.workload": (4.0,)})
    more = Series("other", {"other.workload": (4.0,)})
    assert run_stats([perf, work])["perf-stat.overall.path-length"] == 1500.0
    assert "perf-stat.overall.path-length" not in run_stats([perf])
    assert "perf-stat.overall.path-length" not in run_stats([perf, work, more])
    assert "perf-stat.overall.path-length" not in run_stats([perf, Series("u", {"u.workload": (0,)})])


def test_per_second_and_whole_run_of_perf_stat_agree_when_mended():
    log = b"".join(b"%d.000000000,5498000000,,cpu-cycles,1000000000,100.00,,\n" % second for second in range(1, 301))

    def read(exact: bool) -> dict[str, float]:
        raw = RawLog.of(log, exact=exact)
        return run_stats([collect("perf-stat", parse("perf-stat", raw), exact=exact)], exact=exact)

    mended, exact = read(exact=False), read(exact=True)
    assert mended["perf-stat.i.cpu-cycles"] == mended["perf-stat.ps.cpu-cycles"] == pytest.approx(5.498e9)
    assert exact["perf-stat.i.cpu-cycles"] == pytest.approx(5.498e9)
    assert exact["perf-stat.ps.cpu-cycles"] == pytest.approx(5.498e9 * 299 / 300)


def test_the_most_that_mpstat_saw_survives_the_averaging():
    series = collect("mpstat", parse("mpstat", RawLog.of(samples()["mpstat"])), exact=True)
    result = run_stats([series], exact=True)
    assert result["mpstat.max_utilization_pct"] == 30.5
    assert result["mpstat.max_utilization.seconds"] == 2
    assert result["mpstat.cpu.all.usr%"] == pytest.approx((2.0 + 2.5 + 2.75) / 3)


def test_lkps_matrix_fills_gaps_and_drops_what_is_always_zero():
    runs: list[dict[str, float]] = [
        {"a.x": 1, "a.zero": 0, "a.zerof": 0.0},
        {"a.y": 2, "a.zero": 0, "sched_debug.cpu.clock.12": 5},
    ]
    assert run_matrix(runs, exact=True).stats == {"a.x": (1, 0), "a.zerof": (0.0, 0), "a.y": (0, 2)}
    assert run_matrix(runs).stats == {"a.x": (1, None), "a.zero": (0, 0), "a.zerof": (0.0, None), "a.y": (None, 2)}


def test_zeros_that_lkp_dropped_are_put_back_where_the_monitor_ran():
    runs: list[dict[str, float]] = [
        {"proc-vmstat.pgfault": 5, "aim9.exec_test.ops_per_sec": 1251.2, "aim9.time.system_time": 1.0},
        {"proc-vmstat.pgmigrate_fail": 2, "aim9.time.system_time": 1.0},
        {"aim9.time.system_time": 1.0},
    ]
    filled = with_dropped_zeros(runs, range(3))
    assert [run.get("proc-vmstat.pgmigrate_fail") for run in filled] == [0, 2, None]
    assert [run.get("aim9.exec_test.ops_per_sec") for run in filled] == [1251.2, None, None]
    assert with_dropped_zeros(runs, []) == runs


def test_averages_and_deviations_count_what_is_missing_as_zero():
    matrix = RunMatrix(4, {"a.x": (2, 4, 4, None), "a.y": (1, 1, 1, 1)})
    assert averages(matrix) == {"a.x": 2.5, "a.y": 1.0}
    assert deviations(matrix) == {"a.x": pytest.approx(2.75**0.5), "a.y": 0.0}
    assert averages(RunMatrix(0, {"a.x": ()})) == deviations(RunMatrix(0, {"a.x": ()})) == {}


numbers = st.integers(-(10**6), 10**6)


@given(st.lists(numbers, min_size=2))
def test_where_nothing_is_missing_both_ways_agree(values: list[int]):
    for name in ("meminfo.MemFree", "proc-vmstat.pgfault", "time.system_time"):
        assert stats(name, *values) == stats(name, *values, exact=True)


@given(st.lists(st.dictionaries(st.sampled_from("abcd").map("m.{}".format), numbers), min_size=1))
def test_the_exact_matrix_is_the_honest_one_with_zeros(runs: list[dict[str, int]]):
    exact, honest = run_matrix(runs, exact=True), run_matrix(runs).zero_filled()
    assert exact.stats == {name: row for name, row in honest.stats.items() if any(row)}
