"""meminfo: /proc/meminfo once a second, each snapshot after a `time: N` line. Values in kB (HugePages_* in pages)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_LINE = re.compile(r"\s*(\S+):\s*(\d{1,20})(?:\s+kB)?\s*", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield every counter under its own name, and after MemFree: Memused and its maximum so far.

    Memused = MemTotal of the first snapshot - MemFree, in kB.
    """
    total: int | None = None
    most = 0
    for line in raw:
        if time := raw.time_of(line):
            yield "time", time
        elif match := _LINE.fullmatch(line):
            key, value = match.groups()
            yield key, value
            if key == "MemTotal" and total is None:
                total = int(value)
            elif key == "MemFree" and total is not None:
                used = total - int(value)
                most = max(most, used)
                yield "Memused", str(used)
                yield "max_used_kB", str(most)
        else:
            raw.warn_line(line)
