"""Every parser, line for line, on logs made for this project from what is known of the formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.results.parsers import RawLog, names, parse
from tests.results.parsers.logs import GOLDEN, ORACLE, pairs_of, printed, samples

PAIRS = list(pairs_of(GOLDEN))


@pytest.mark.parametrize(("name", "log", "expected", "exact"), PAIRS, ids=[str(pair[2].name) for pair in PAIRS])
def test_prints_line_for_line(name: str, log: Path, expected: Path, exact: bool):
    assert printed(name, log.read_bytes(), exact=exact) == expected.read_text().splitlines()


def test_lkps_own_pairs_match_too():
    for name, log, expected, exact in pairs_of(ORACLE):
        assert printed(name, log.read_bytes(), exact=exact) == expected.read_text().splitlines(), name


def test_every_parser_has_a_golden_log():
    assert set(samples()) == set(names())


@pytest.mark.parametrize("name", names())
def test_a_whole_log_gives_no_warning(name: str):
    raw = RawLog.of(samples()[name])
    assert list(parse(name, raw))
    assert [str(warning) for warning in raw.warnings] == []


def test_a_tests_own_time_is_read_as_time():
    assert printed("aim9.time", samples()["time"]) == printed("time", samples()["time"])
