"""last_state: how the run ended, as `key: value` lines (`is_incomplete_run: 1`, `test.PROG.exit_code.N: 1`)."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the pairs as they stand; 1 means that it happened."""
    for line in raw:
        words = line.split()
        if len(words) == 2 and words[0].endswith(":") and is_number(words[1]):
            yield words[0][:-1], words[1]
        else:
            raw.warn_line(line)
