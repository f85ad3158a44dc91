"""slabinfo: /proc/slabinfo (format 2.1), each snapshot after a `time: N` line. Counts of objects and slabs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_COUNT = r"\s+(\d{1,20})"
_LINE = re.compile(
    rf"\s*(\S+){_COUNT}{_COUNT}\s+\d+\s+\d+\s+\d+\s+: tunables .*: slabdata{_COUNT}{_COUNT}\s+\d+\s*", re.ASCII
)
_FIELDS = ("active_objs", "num_objs", "active_slabs", "num_slabs")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `CACHE.active_objs`, `.num_objs`, `.active_slabs`, `.num_slabs`."""
    for line in raw:
        if match := _LINE.fullmatch(line):
            cache, *counts = match.groups()
            for field, count in zip(_FIELDS, counts, strict=True):
                yield f"{cache}.{field}", count
        elif time := raw.time_of(line):
            yield "time", time
        elif not line.startswith(("slabinfo", "#")):
            raw.warn_line(line)
