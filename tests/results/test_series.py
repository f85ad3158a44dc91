"""From pairs to series: padding, invalid records, ranges, cut last records, zeros."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisectbot.results.parsers import Pair, RawLog, names, parse
from bisectbot.results.series import Series, collect
from tests.results.parsers.logs import samples


def pairs(text: str) -> list[Pair]:
    """`key value` words, two by two."""
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


def test_values_gather_by_full_name_and_keep_their_type():
    series = collect("meminfo", pairs("time 1 MemFree 7 Memused 7.0 time 2 MemFree 8 Memused 8.0"))
    assert series.samples == {"meminfo.time": (1, 2), "meminfo.MemFree": (7, 8), "meminfo.Memused": (7.0, 8.0)}
    assert [type(value) for value in series.samples["meminfo.MemFree"]] == [int, int]
    assert [type(value) for value in series.samples["meminfo.Memused"]] == [float, float]


def test_a_late_stat_is_padded_with_zeros_by_lkp_and_with_nothing_by_us():
    late = pairs("time 1 a 5 time 2 a 6 b 7 time 3 a 8 b 9")
    assert collect("m", late, exact=True).samples["m.b"] == (0, 7, 9)
    assert collect("m", late).samples["m.b"] == (None, 7, 9)


def test_a_value_that_is_no_number_takes_its_whole_record_along():
    series = collect("m", pairs("time 1 a 5 b 1 time 2 a n/a b 2 time 3 a 7 b 3"))
    assert series.samples == {"m.time": (1, 3), "m.a": (5, 7), "m.b": (1, 3)}
    assert series.warnings == ("m: a: 'n/a' is no number: its record is left out",)


def test_a_cut_last_record_goes():
    cut = pairs("time 1 a 5 b 1 time 2 a 6 b 2 time 3 a 7")
    assert collect("vmstat", cut).samples == {"vmstat.time": (1, 2), "vmstat.a": (5, 6), "vmstat.b": (1, 2)}


def test_where_monitors_are_ragged_by_nature_nothing_is_cut():
    cut = pairs("time 1 a 5 b 1 time 2 a 6 b 2 time 3 a 7")
    for monitor in ("ftrace", "perf-stat", "sched_debug", "slabinfo", "meminfo"):
        assert collect(monitor, cut).samples[f"{monitor}.a"] == (5, 6, 7)


def test_shorter_by_more_than_one_is_no_cut():
    series = collect("mpstat", pairs("max 5 a 1 a 2 a 3"))
    assert series.samples == {"mpstat.max": (5,), "mpstat.a": (1, 2, 3)}


def test_stats_that_are_zero_throughout_are_dropped_by_lkp():
    zeros = pairs("time 0 a 0 b 0.0 c 0 time 1 a 0 b 0.0 c 1 time 2 a 0 b 0.0 c 0")
    assert set(collect("m", zeros, exact=True).samples) == {"m.time", "m.c"}
    assert set(collect("m", zeros).samples) == {"m.time", "m.a", "m.b", "m.c"}
    assert collect("dmesg", [("timestamp:x", "0.0")], exact=True).samples == {"dmesg.timestamp:x": (0.0,)}


def test_impossible_values_are_dropped():
    disk = pairs("sda.util 301 cpu.user 111 sda.util 300 cpu.user 110")
    assert collect("iostat", disk, exact=True).samples == {"iostat.sda.util": (300,), "iostat.cpu.user": (110,)}
    assert collect("iostat", disk).samples == {"iostat.sda.util": (None, 300), "iostat.cpu.user": (None, 110)}
    cpu = pairs("cpu.us -1 cpu.us 3 procs.r 999")
    assert collect("vmstat", cpu, exact=True).samples == {"vmstat.cpu.us": (3,), "vmstat.procs.r": (999,)}
    series = collect("turbostat", pairs("PkgWatt 10001 IRQ 99999"), exact=True)
    assert series.samples == {"turbostat.IRQ": (99999,)}
    assert series.warnings == ("turbostat: PkgWatt: 10001 cannot be: dropped",)


def test_keys_with_blanks_and_pairs_without_value_are_no_stats():
    series = collect("m", [("a b", "1"), ("c", ""), ("", ""), ("#", "note"), ("message:x", "text"), ("d", "2")])
    assert series.samples == {"m.d": (2,)}
    assert series.warnings == ("m: 'a b': a stat's name holds no blanks",)


keys = st.sampled_from(["time", "a", "b", "c"])
values = st.sampled_from(["0", "1", "2.5", "-3", "x"])


@given(st.lists(st.tuples(keys, values)), st.booleans())
def test_every_series_is_of_one_length_or_shorter_than_the_records(told: list[Pair], exact: bool):
    series = collect("m", told, exact=exact)
    lengths = [len(values) for values in series.samples.values()]
    assert series.longest == max(lengths, default=0)
    assert max(lengths, default=0) - min(lengths, default=0) != 1
    if exact:
        assert all(value is not None for values in series.samples.values() for value in values)


def test_every_parser_feeds_it_without_a_word():
    for name in names():
        series = collect(name, parse(name, RawLog.of(samples()[name])))
        assert isinstance(series, Series)
        assert series.samples, name
        assert series.warnings == (), name
