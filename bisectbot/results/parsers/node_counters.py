"""numa-numastat, numa-vmstat: a node's counters every second, after `time: N` and `node: N` lines. Pages, events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_LINE = re.compile(r"\s*([^\s:]+)\s+(-?\d{1,20})\s*", re.ASCII)
_NODE = re.compile(r"\s*node:\s*(\d{1,6})\s*", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `nodeN.KEY`. A counter before the first `node:` line belongs to nobody: warned of and left out."""
    node: str | None = None
    for line in raw:
        if node and (match := _LINE.fullmatch(line)):
            yield f"node{node}.{match[1]}", match[2]
        elif time := raw.time_of(line):
            yield "time", time
        elif match := _NODE.fullmatch(line):
            node = match[1]
        else:
            raw.warn_line(line)
