"""interrupts, softirqs: snapshots of the /proc file at start and end, after `time: N` lines. Events since boot.

`180:IR-PCI-MSI.512000-edge.ahci` is device interrupt 180 with its chip, line and device;
`NMI:Non-maskable_interrupts` is one of the architecture's own; `TIMER` is a softirq.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

_ROW = re.compile(r"\s*([^\s:]+):((?:\s+\d{1,20}(?!\S))+)(.*)", re.ASCII)
_CPU = re.compile(r"CPU\d{1,6}", re.ASCII)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `CPUn.NAME` for every CPU and then NAME, their sum, row by row."""
    cpus: list[str] = []
    for line in raw:
        words = line.split()
        if time := raw.time_of(line):
            yield "time", time
        elif words and all(map(_CPU.fullmatch, words)):
            cpus = words
        elif cpus and (match := _ROW.fullmatch(line)):
            counts, rest = match[2].split(), match[3].strip()
            if len(counts) > len(cpus):  # the description itself begins with a number
                rest = " ".join([*counts[len(cpus) :], rest])
                counts = counts[: len(cpus)]
            name = _name(match[1], rest)
            if len(counts) == len(cpus):
                for cpu, count in zip(cpus, counts, strict=True):
                    yield f"{cpu}.{name}", count
            yield name, str(sum(map(int, counts)))
        else:
            raw.warn_line(line)


def _name(interrupt: str, description: str) -> str:
    if not description:
        return interrupt
    glue = "." if interrupt.isdigit() else "_"
    return f"{interrupt}:{glue.join(description.split())}"
