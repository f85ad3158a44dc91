"""perf-bench: one or more runs of `perf bench`. Operations per second, µs per operation, seconds, GB per second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_RUNNING = re.compile(r"# Running '?([\w-]+)/([\w-]+)'? benchmark")
_FUNCTION = re.compile(r"# function '([\w-]+)'")
_VALUE = r"(\d{1,20}(?:\.\d{1,20})?)"
_RESULTS = tuple(
    (re.compile(pattern, re.ASCII), key)
    for pattern, key in (
        (rf"\s*Total time: {_VALUE} \[sec\]", "total_time"),
        (rf"\s*{_VALUE} usecs/op\b", "usecs_per_op"),
        (rf"\s*{_VALUE} ops/sec\b", "ops_per_sec"),
        (rf"Averaged {_VALUE} operations/sec", "ops_per_sec"),
        (rf"\s*{_VALUE} GB/sec\b", "GB_per_sec"),
        (rf"Wokeup \d+ of \d+ threads in {_VALUE} ms", "wakeup_ms"),
        (rf"\s*main,\s+{_VALUE}, GB/sec,\s+total-speed", "GB_per_sec"),
    )
)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `COLLECTION.BENCHMARK.ops_per_sec` and the like; what is per function carries the function's name too."""
    place = ""
    function = ""
    for line in raw:
        if match := _RUNNING.match(line):
            place, function = f"{match[1]}.{match[2]}.", ""
        elif match := _FUNCTION.match(line):
            function = f"{match[1]}."
        else:
            for pattern, key in _RESULTS:
                if match := pattern.match(line):
                    yield f"{place}{function}{key}", match[1]
                    break
