"""vmstat: `vmstat --timestamp -n 1`. Processes, kB, blocks per second, events per second, percent of CPU time."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number

_GROUP = {
    **dict.fromkeys(("r", "b"), "procs"),
    **dict.fromkeys(("swpd", "free", "buff", "cache", "inact", "active"), "memory"),
    **dict.fromkeys(("si", "so"), "swap"),
    **dict.fromkeys(("bi", "bo"), "io"),
    **dict.fromkeys(("in", "cs"), "system"),
    **dict.fromkeys(("us", "sy", "id", "wa", "st", "gu"), "cpu"),
}
_DEFAULT = ("r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `procs.r`, `memory.free`, `system.cs`, `cpu.us` … per line, named by the header's columns."""
    keys = [f"{_GROUP[column]}.{column}" for column in _DEFAULT]
    for line in raw:
        values = line.split()
        if len(values) > 2 and values[-1].count(":") == 2 and values[-2].count("-") == 2:
            del values[-2:]  # date and time of the sample
        if len(values) == len(keys) and all(map(is_number, values)):
            yield from zip(keys, values, strict=True)
        elif values[:2] == ["r", "b"]:
            keys = [f"{_GROUP[column]}.{column}" for column in values if column in _GROUP]
        elif not line.startswith("procs"):
            raw.warn_line(line)
