"""No parser raises on any bytes, and what it yields is always a key without blanks and a number."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisectbot.results.parsers import Pair, RawLog, names, parse
from bisectbot.results.parsers.rawlog import is_number
from tests.results.parsers.logs import samples

SAMPLES = samples()
PARSERS = st.sampled_from(names())


def assert_well_formed(pairs: list[Pair]) -> None:
    for key, value in pairs:
        if key in {"", "#"} or key.startswith(("message:", "pattern:")):
            continue
        assert not set(key) & set(string.whitespace), key
        assert is_number(value), (key, value)


@given(PARSERS, st.binary(max_size=400), st.booleans())
def test_any_bytes(name: str, raw: bytes, exact: bool):
    assert_well_formed(list(parse(name, RawLog.of(raw, exact=exact))))


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A real log, cut somewhere, with pieces of it doubled, moved or overwritten by junk."""
    name = draw(PARSERS)
    raw = SAMPLES[name]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, len(raw)))
        middle = draw(st.sampled_from([b"", raw[start:end] * 2, b"\0\xff\x85", b"-", b"9" * 60, b":", b"\n"]))
        raw = raw[:start] + middle + raw[end:]
    return name, raw


@settings(max_examples=300)
@given(damaged(), st.booleans())
def test_any_damage(log: tuple[str, bytes], exact: bool):
    name, raw = log
    assert_well_formed(list(parse(name, RawLog.of(raw, exact=exact))))


LONG = 60_000
LINES = [
    b" " * LONG,
    b"a" + b" " * LONG + b"x",
    b":" * LONG,
    b"a:" * (LONG // 2) + b" b",
    b"a : " * (LONG // 4),
    b"1 " * (LONG // 2),
    b"1," * (LONG // 2),
    b"S0," * (LONG // 3),
    b"{" * LONG,
    b"1% " + b"a;" * (LONG // 2),
    b"1% 1% " + b"[ " * (LONG // 2),
    b"WARNING: CPU: 1 PID: 1 at " * (LONG // 26),
    b"Oops: a " * (LONG // 8),
    b"Assertion failed " * (LONG // 17),
    b"CPU0 " * 100 + b"\n1: " + b"1 " * (LONG // 2) + b"x",
    b"Benchmarks INDEX\n" + b"1 " * (LONG // 2),
    b"1.0 [1] a 1.0 1.0 1.0 " + b"a <- " * (LONG // 5),
]


@pytest.mark.parametrize("name", names())
def test_lines_made_to_make_patterns_backtrack(name: str):
    for line in LINES:  # one that takes quadratic time runs into the suite's timeout
        assert_well_formed(list(parse(name, RawLog.of(line * 2 + b"\n" + line + b"\n"))))
