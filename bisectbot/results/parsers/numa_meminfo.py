"""numa-meminfo: nodeN/meminfo of every node once a second, after `time: N` and `node: N` lines. Values in kB."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_LINE = re.compile(r"\s*Node\s+(\d{1,6})\s+(\S+):\s*(\d{1,20})(?:\s+kB)?\s*", re.ASCII)
_NODE = re.compile(r"\s*node:\s*\d+\s*", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `nodeN.KEY`; the node is the one that each line names itself."""
    for line in raw:
        if match := _LINE.fullmatch(line):
            yield f"node{match[1]}.{match[2]}", match[3]
        elif time := raw.time_of(line):
            yield "time", time
        elif not _NODE.fullmatch(line):
            raw.warn_line(line)
