"""sysbench: the report of sysbench 1.0 or 0.5. Events per second, seconds, milliseconds, MiB per second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number

_RATE = re.compile(r"([A-Za-z ]{1,40}): +(\d{1,20}) +\((\d{1,20}\.\d{1,9}) per (?:second|sec\.)\)", re.ASCII)
_MOVED = re.compile(r"\d{1,20}\.\d{1,9} MiB transferred \((\d{1,20}\.\d{1,9}) MiB/sec\)", re.ASCII)
_LATENCY = re.compile(r"(min|avg|max|sum|\d{1,3}th percentile)\Z", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `events_per_second`, `total_time`, `latency_avg_ms` …: the report's own words joined by `_`."""
    in_latency = False
    for line in raw:
        text = line.strip()
        name, _, value = text.partition(":")
        value = value.strip()
        if match := _RATE.match(text):
            yield f"{_joined(match[1])}", match[2]
            yield f"{_joined(match[1])}_per_second", match[3]
        elif match := _MOVED.match(text):
            yield "transferred_MiB_per_second", match[1]
        elif in_latency and _LATENCY.match(name) and is_number(value):
            yield f"latency_{_joined(name)}_ms", value
        elif name in {"total time", "total number of events", "events per second", "Number of threads"}:
            seconds = value.removesuffix("s")
            if is_number(seconds):
                yield _joined(name), seconds
            else:
                raw.warn_line(line)
        in_latency = name.startswith("Latency (ms)") or (in_latency and bool(text))


def _joined(words: str) -> str:
    return "_".join(words.lower().split())
