"""proc-vmstat: /proc/vmstat once a second, each snapshot after a `time: N` line. Pages and events since boot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_LINE = re.compile(r"\s*([^\s:]+)\s+(-?\d{1,20})\s*", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield every counter under its own name."""
    for line in raw:
        if match := _LINE.fullmatch(line):
            yield match[1], match[2]
        elif time := raw.time_of(line):
            yield "time", time
        else:
            raw.warn_line(line)
