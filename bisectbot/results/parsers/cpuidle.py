"""cpuidle: `cpuN.STATE.time` (us) and `cpuN.STATE.usage` (entries) at start and end, after `time: N` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_LINE = re.compile(r"\s*cpu\d+\.(\S+)\.(time|usage)(?:\s*[:=]\s*|\s+)(\d{1,20})\s*", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `.time` and `.usage` of each snapshot, summed over CPUs and idle states.

    The empty name in front of the point is LKP's: its shell loses the state, and reports know `cpuidle..time`.
    """
    sums: dict[str, int] = {}
    for line in raw:
        if match := _LINE.fullmatch(line):
            key = f".{match[2]}"
            sums[key] = sums.get(key, 0) + int(match[3])
        elif time := raw.time_of(line):
            yield from _flush(sums)
            yield "time", time
        else:
            raw.warn_line(line)
    yield from _flush(sums)


def _flush(sums: dict[str, int]) -> Iterator[Pair]:
    for key, total in sums.items():
        yield key, str(total)
    sums.clear()
