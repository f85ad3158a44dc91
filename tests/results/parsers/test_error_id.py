"""Error ids: the same error gives the same id; ids that public reports carry come out of their messages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.results.parsers import RawLog, parse
from bisectbot.results.parsers.error_id import error_id, search_pattern
from tests.results.parsers.logs import GOLDEN


def messages(file: str) -> dict[str, str]:
    """Message -> id: a line each, one below the other."""
    lines = (GOLDEN / file).read_text().splitlines()
    return dict(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


KERNEL = messages("error-ids.kernel.txt")
KNOWN = KERNEL | messages("error-ids.other.txt")


@pytest.mark.parametrize("message", KNOWN)
def test_known_ids(message: str):
    assert error_id(message) == KNOWN[message]


@pytest.mark.parametrize("message", KNOWN)
def test_the_pattern_finds_the_message_and_its_repetition_elsewhere(message: str):
    pattern = re.compile(search_pattern(message))
    assert pattern.search(message)
    assert pattern.search(message.replace("5", "7").replace("0008", "0abc"))


@pytest.mark.parametrize("message", KERNEL)
def test_the_kernel_log_is_searched_for_them(message: str):
    stamped = f"[   12.345678][  T1] {message}\n"
    assert (KERNEL[message], "1") in list(parse("dmesg", RawLog.of(stamped)))


@given(st.sampled_from(sorted(KNOWN)), st.integers(0, 9), st.integers(0, 9))
def test_other_numbers_are_the_same_error(message: str, old: int, new: int):
    numbers = re.sub(rf"(?:(?<=[# :/])|(?<=0x)){old}(?=[\d\s:\]])", str(new), message)
    assert error_id(numbers) == KNOWN[message]


@given(st.text())
def test_ids_have_no_blanks(message: str):
    name = error_id(message)
    assert not any(letter.isspace() for letter in name)
    re.compile(search_pattern(message))
