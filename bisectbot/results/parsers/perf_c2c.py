"""perf-c2c: `perf c2c report --stats`. Counts of loads that were served by another cache or by memory."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_count

_KEYS = {
    "Load Local HITM": "HITM.local",
    "Load Remote HITM": "HITM.remote",
    "Load Remote HIT": "HIT.remote",
    "Load Local DRAM": "DRAM.local",
    "Load Remote DRAM": "DRAM.remote",
}


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the five counts and, after the remote HITMs, `HITM.total` = local + remote."""
    local: int | None = None
    found = False
    for line in raw:
        name, _, count = line.rpartition(":")
        key, count = _KEYS.get(name.strip()), count.strip()
        if key is None:
            continue
        if not is_count(count):
            raw.warn_line(line)
            continue
        found = True
        yield key, count
        if key == "HITM.local":
            local = int(count)
        elif key == "HITM.remote" and local is not None:
            yield "HITM.total", str(local + int(count))
    if not found:
        raw.warn("no line of loads by HITM, HIT or DRAM")
