"""uptime: /proc/uptime read at the end of the run. Seconds since boot, idle seconds summed over CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `boot` and `idle`."""
    for line in raw:
        words = line.split()
        if len(words) == 2 and all(map(is_number, words)):
            yield "boot", words[0]
            yield "idle", words[1]
        else:
            raw.warn_line(line)
