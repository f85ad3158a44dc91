"""hackbench: one or more runs of the program in one log. Throughput in KB/s (KB = 1024 bytes)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number, printed

_TASKS = re.compile(r"\(== (\d{1,12}) tasks\)", re.ASCII)
_MESSAGES = re.compile(r"pass (\d{1,12}) messages of (\d{1,12}) bytes", re.ASCII)
_TIME = re.compile(r"\s*Time:\s*(\S+)\s*")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `throughput` (the best run's), `throughput_best`, `_avg`, `_worst` at the end of the log.

    KB = tasks * messages * bytes / 1024; each throughput is KB over the shortest, mean and longest time.
    """
    tasks = messages = size = 0
    best, worst, total, runs = float("inf"), 0.0, 0.0, 0
    for line in raw:
        if match := _TASKS.search(line):
            tasks = int(match[1])
        elif match := _MESSAGES.search(line):
            messages, size = int(match[1]), int(match[2])
        elif match := _TIME.fullmatch(line):
            seconds = float(match[1]) if is_number(match[1]) else 0.0
            if seconds <= 0:
                raw.warn_line(line)
                continue
            best, worst, total, runs = min(best, seconds), max(worst, seconds), total + seconds, runs + 1
    kilobytes = tasks * messages * size / 1024
    if not runs or not kilobytes:
        raw.warn("no throughput: the log lacks a time, the tasks or the messages")
        return
    yield "throughput", printed(kilobytes / best)
    yield "throughput_best", printed(kilobytes / best)
    yield "throughput_avg", printed(kilobytes / (total / runs))
    yield "throughput_worst", printed(kilobytes / worst)
