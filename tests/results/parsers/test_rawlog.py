"""Reading a raw log: bounded, decoded, and honest about what it skipped."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.results.parsers import RawLog, parse
from bisectbot.results.parsers.rawlog import KEPT_WARNINGS, LONGEST_LINE, number, printed
from tests.results.parsers.logs import samples


def warnings(raw: RawLog) -> list[str]:
    return [str(warning) for warning in raw.warnings]


def test_lines_without_their_end_and_bytes_that_are_no_text():
    assert list(RawLog.of(b"a\r\nb\xff\n\nlast")) == ["a", "b\N{REPLACEMENT CHARACTER}", "", "last"]


def test_a_line_too_long_is_skipped_and_the_next_one_read():
    raw = RawLog.of(b"a\n" + b"x" * (3 * LONGEST_LINE) + b"\nb\n")
    assert list(raw) == ["a", "b"]
    assert warnings(raw) == ["line 2: skipped: longer than 64 KiB"]


def test_a_cut_compressed_log_is_read_up_to_the_cut():
    whole = gzip.compress(b"".join(b"pgfault %d\n" % count for count in range(5000)))
    raw = RawLog(gzip.GzipFile(fileobj=io.BytesIO(whole[: len(whole) // 2])))
    pairs = list(parse("proc-vmstat", raw))
    assert 1000 < len(pairs) < 5000
    assert pairs[:2] == [("pgfault", "0"), ("pgfault", "1")]
    assert "the rest cannot be read" in warnings(raw)[-1]


def test_what_was_not_read_is_said_with_its_line():
    raw = RawLog.of("time: 5\nMemFree: 7 kB\nMemFr\nSlab: lots\ntime: 4\nMemFree: 8 kB\n")
    assert list(parse("meminfo", raw)) == [("time", "5"), ("MemFree", "7"), ("time", "4"), ("MemFree", "8")]
    assert warnings(raw) == [
        "line 3: not understood: 'MemFr'",
        "line 4: not understood: 'Slab: lots'",
        "line 5: the clock went back from 5 to 4",
    ]


def test_warnings_are_counted_but_not_hoarded():
    raw = RawLog.of("junk\n" * 5000)
    assert not list(parse("proc-vmstat", raw))
    assert len(raw.warnings) == KEPT_WARNINGS
    assert raw.unread == 5000


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"no parser named 'memnifo': one of aim9, .*will-it-scale"):
        list(parse("memnifo", RawLog.of("")))


class _Endless:
    """A log of a given size that is never in memory as a whole."""

    def __init__(self, sample: bytes, size: int) -> None:
        self._lines = self._repeat(sample.splitlines(keepends=True), size)

    @staticmethod
    def _repeat(lines: list[bytes], size: int) -> Iterator[bytes]:
        done = 0
        while done < size:
            for line in lines:
                done += len(line)
                yield line

    def readline(self, _size: int, /) -> bytes:
        return next(self._lines, b"")


@pytest.mark.parametrize("name", ["meminfo", "sched_debug", "perf-stat", "mpstat", "dmesg", "interrupts"])
def test_memory_does_not_grow_with_the_log(name: str):
    log = _Endless(samples()[name], 1_000_000)
    assert list(parse(name, RawLog.of(samples()[name])))  # the parser's module is imported before we measure
    tracemalloc.start()
    try:
        count = sum(1 for _ in parse(name, RawLog(log)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count
    assert peak < 500_000


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_printed_as_ruby_does_and_lose_nothing(value: float):
    text = printed(value)
    assert float(text) == value
    assert "." in text
    assert number(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (1e15, "1000000000000000.0"), (1e16, "1.0e+16"), (2.5e-05, "2.5e-05"), (1e-05, "1.0e-05"), (7, "7")],
)
def test_how_ruby_prints(value: float, text: str):
    assert printed(value) == text
