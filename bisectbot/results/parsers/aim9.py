"""aim9: the result table, `1 exec_test 300.00 58982 196.60667 1251.2 Program Loads/second`. Operations per second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number

_SKIPPED = re.compile(r"\s*\d+\s+(\w+)\s.*\bskip", re.IGNORECASE | re.ASCII)
_ROW = re.compile(r"\s*\d+\s+\w+\s+[\d.]", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `TEST.ops_per_sec`, the sixth column, and `TEST.skip` for a test that says it was skipped."""
    for line in raw:
        words = line.split()
        if len(words) >= 6 and words[0].isdigit() and all(map(is_number, words[2:6])):
            yield f"{words[1]}.ops_per_sec", words[5]
        elif match := _SKIPPED.match(line):
            yield f"{match[1]}.skip", "1"
        elif _ROW.match(line):
            raw.warn_line(line)
