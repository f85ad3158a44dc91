"""sched_debug: the scheduler's debug file once a minute, each snapshot after a `time: N` line.

Per-CPU values are `PREFIX.KEY.CPU`; at the end of a snapshot each of them is summed up over CPUs as `.max`, `.min`,
`.avg` and `.stddev` (population). Units are the kernel's: ms for times and clocks, counts otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, printed

_VALUE = re.compile(r"(\s*\.)?(\S+)\s+:\s+([-+]?\d{1,40}(?:\.\d{1,40})?)(?:\s.*)?", re.ASCII)
_NUMBERED = re.compile(r"(\w+)(?:\[(\d{1,9})\]|#(\d{1,9}))(\S*)", re.ASCII)


class _Place:
    """Where in the file we are: the section's prefix and CPU, and the values of this snapshot by key."""

    def __init__(self, exact: bool) -> None:
        self.prefix = ""
        self.cpu: str | None = None
        self.per_cpu: dict[str, list[float]] = {}
        self._exact = exact

    def enter(self, header: str) -> None:
        word = header.split(maxsplit=1)[0].rstrip(",")
        if match := _NUMBERED.fullmatch(word):
            self.prefix, self.cpu = match[1] + match[4], match[2] or match[3]
        else:
            self.prefix, self.cpu = word, None

    def pair(self, in_section: bool, key: str, value: str) -> Pair:
        """Name one value. LKP gives a key outside all sections the number of the section before it."""
        name = f"{self.prefix}.{key}" if in_section else key
        if self.cpu is None or not (in_section or self._exact):
            return name, value
        self.per_cpu.setdefault(name, []).append(float(value))
        return f"{name}.{self.cpu}", value

    def summary(self) -> Iterator[Pair]:
        for name, values in self.per_cpu.items():
            mean = sum(values) / len(values)
            spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
            yield f"{name}.max", printed(max(values))
            yield f"{name}.min", printed(min(values))
            yield f"{name}.avg", printed(mean)
            yield f"{name}.stddev", printed(spread)
        self.per_cpu = {}


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `cpu.nr_running.0`, `cfs_rq:/.load_avg.0`, `ktime`, `sysctl_sched.KEY` …, and each snapshot's summary.

    Autogroups are left out. ``raw.exact`` lets keys outside all sections inherit the last CPU (`ktime.1`).
    """
    place = _Place(raw.exact)
    for line in raw:
        if match := _VALUE.fullmatch(line):
            if ":/autogroup" not in place.prefix or not match[1]:
                yield place.pair(bool(match[1]), match[2], match[3])
        elif time := raw.time_of(line):
            yield from place.summary()
            yield "time", time
        elif "a" <= line[:1] <= "z":
            place.enter(line)
    yield from place.summary()
