"""unixbench: the report of UnixBench's Run script. Score is its index, throughput in the test's own unit (lps, lpm)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number, printed

_RUN = re.compile(r"Benchmark Run: .* (\d\d):(\d\d):(\d\d) - (\d\d):(\d\d):(\d\d)\s*$", re.ASCII)
_SAMPLES = re.compile(r"\((\d{1,9}(?:\.\d{1,9})?) s, (\d{1,9}) samples\)", re.ASCII)
_DAY = 24 * 3600


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `score`, `throughput` (column RESULT), `workload`, and `test.pass` or `test.fail`.

    workload = throughput * duration, the duration of the run being that of its headline (start - end), else the
    seconds times the samples of the test.
    """
    duration = 0.0
    in_table = False
    score = throughput = None
    for line in raw:
        if match := _RUN.search(line):
            duration = _between(*map(int, match.groups()))
        elif (match := _SAMPLES.search(line)) and not duration:
            duration = float(match[1]) * int(match[2])
        elif "Benchmarks" in line and line.rstrip().endswith("INDEX"):
            in_table = True
        elif in_table:
            *name, result, index = ["", "", *line.split()]
            if " ".join(name).strip().startswith("System Benchmarks Index Score") and is_number(index):
                score = index
            elif len(name) > 3 and all(map(is_number, (name[-1], result, index))):
                throughput, score = result, index
    if score is not None:
        yield "score", score
    if throughput is not None:
        yield "throughput", throughput
        if duration:
            yield "workload", printed(float(throughput) * duration)
    if raw.line:
        yield ("test.fail" if score is None else "test.pass"), "1"


def _between(*clock: int) -> float:
    """Seconds between two times of day, the second of which may be tomorrow's."""
    start, end = (hours * 3600 + minutes * 60 + seconds for hours, minutes, seconds in (clock[:3], clock[3:]))
    return float((end - start) % _DAY)
