"""perf-stat: `perf stat -a -I 1000`, as CSV (`-x ,`) or in the old blank-separated form, one event per line.

What comes out: `i.*` once per interval (per second), and over the whole run `ps.*` (per second), `total.*` (a count)
and `overall.*` (ratios).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number, printed

NEW_INTERVAL = 0.010  # s: lines of one interval carry times that differ by less
_PMU = re.compile(r"[\w-]+/([^/]+)/\w*")
_SOCKET = re.compile(r"S\d+")
_UNIT = re.compile(r"[A-Z]\S*")
_NOT_COUNTED = frozenset(("<not counted>", "<not supported>"))
_VALUE_UNITS = frozenset(("msec", "ns", "Joules", "MiB"))


@dataclass(frozen=True, slots=True)
class _Count:
    time: float
    value: float | None
    event: str
    metric: tuple[str, float] | None


@dataclass
class _Sums:
    """Event counts and metric values, summed over sockets and PMUs, in order of first appearance."""

    events: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    def add(self, count: _Count) -> None:
        if count.value is not None:
            self.events[count.event] = self.events.get(count.event, 0) + count.value
        if count.metric:
            unit, value = count.metric
            self.metrics[unit] = self.metrics.get(unit, 0) + value

    def include(self, other: _Sums) -> None:
        for event, value in other.events.items():
            self.events[event] = self.events.get(event, 0) + value


@dataclass
class _Interval:
    """The lines that carry (almost) the same time; ``begin`` is None where the clock does not tell it."""

    begin: float | None = 0.0
    time: float = 0.0
    sums: _Sums = field(default_factory=_Sums)

    def pairs(self) -> Iterator[Pair]:
        yield "time", printed(self.time)
        for event, value in self.sums.events.items():
            yield f"i.{event}", printed(value / self.seconds)
        for name, ratio in _ratios(self.sums.events):
            yield f"i.{name}", printed(ratio)
        for unit, value in self.sums.metrics.items():
            yield f"i.metric.{unit}", printed(value)

    @property
    def seconds(self) -> float:
        return 0.0 if self.begin is None else self.time - self.begin

    @property
    def complete(self) -> bool:
        return self.seconds > 0 and bool(self.sums.events)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield every complete interval (the last one never is), then the whole run.

    `ps.*` divides by the time of the intervals that were yielded; ``raw.exact`` divides by the time of the log's
    last line, one interval too much, as LKP does. An interval before which the clock went back is left out.
    """
    interval, run, covered = _Interval(), _Sums(), 0.0
    for line in raw:
        count = _count(line)
        if count is None:
            if not line.lstrip().startswith("#"):
                raw.warn_line(line)
            continue
        step = count.time - interval.time
        if abs(step) > NEW_INTERVAL:
            if interval.complete:
                yield from interval.pairs()
                run.include(interval.sums)
                covered += interval.seconds
            if step < 0:
                raw.warn(f"the clock went back from {interval.time:.12g} to {count.time:.12g}")
            interval = _Interval(interval.time if step > 0 else None, count.time)
        interval.sums.add(count)
    yield from _run(run, interval.time if raw.exact else covered)


def _run(sums: _Sums, seconds: float) -> Iterator[Pair]:
    if seconds <= 0:
        return
    for event, value in sums.events.items():
        yield f"ps.{event}", printed(value / seconds)
    if "instructions" in sums.events:
        yield "total.instructions", printed(sums.events["instructions"])
    for name, ratio in _ratios(sums.events):
        yield f"overall.{name}", printed(ratio)


def _ratios(events: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Ratios of counts; one whose divisor is missing or 0 is left out."""
    for event, misses in events.items():
        if event.endswith("-misses"):
            kind = event.removesuffix("-misses")
            if all_of := _accesses(kind, misses, events):
                yield f"{kind}-miss-rate%", 100 * misses / all_of
    for name, factor, above, below in (
        ("instructions-per-iTLB-miss", 1, "instructions", "iTLB-load-misses"),
        ("cycles-between-cache-misses", 1, "cpu-cycles", "cache-misses"),
        ("MPKI", 1000, "cache-misses", "instructions"),
        ("ipc", 1, "instructions", "cpu-cycles"),
        ("cpi", 1, "cpu-cycles", "instructions"),
    ):
        if above in events and events.get(below):
            yield name, factor * events[above] / events[below]


def _accesses(kind: str, misses: float, events: dict[str, float]) -> float:
    """Count what `kind`-misses are a part of: 0 when unknown.

    perf's `dTLB-loads` and the like count hits only, `cache-references` and `branch-instructions` everything.
    """
    if hits := events.get(f"{kind}s"):
        return hits + misses
    return events.get(f"{kind}-references") or events.get(f"{kind}-instructions") or 0


def _count(line: str) -> _Count | None:
    fields = [part.strip() for part in line.split(",")]
    if len(fields) >= 4 and (is_number(fields[0]) or _SOCKET.fullmatch(fields[0])):
        return _csv(fields)
    return _blanks(line.split())


def _csv(fields: list[str]) -> _Count | None:
    """`time,[Sn,cpus,]value,unit,event,run_ns,percent,metric,metric-unit`, also with `Sn,cpus,` in front."""
    if _SOCKET.fullmatch(fields[0]):
        fields = fields[2:]
    elif _SOCKET.fullmatch(fields[1]):
        fields = fields[:1] + fields[3:]
    if len(fields) < 4 or not is_number(fields[0]):
        return None
    time, value, _, event = fields[:4]
    known = is_number(value)
    if not _is_event(event) or not (known or value in _NOT_COUNTED):
        return None
    metric = None
    if len(fields) >= 8 and is_number(fields[6]) and _UNIT.fullmatch(fields[7]):
        metric = fields[7], float(fields[6])
    return _Count(float(time), float(value) if known else None, _plain(event), metric)


def _blanks(words: list[str]) -> _Count | None:
    """`time value event …`; a value may be grouped by commas."""
    if len(words) >= 4 and words[1] == "<not":
        words[1:3] = [f"{words[1]} {words[2]}"]
    if len(words) >= 4 and words[2] in _VALUE_UNITS:
        del words[2]
    if len(words) < 3 or not is_number(words[0]):
        return None
    value, event = words[1].replace(",", ""), words[2]
    known = is_number(value)
    if not _is_event(event) or not (known or value in _NOT_COUNTED):
        return None
    return _Count(float(words[0]), float(value) if known else None, _plain(event), None)


def _is_event(text: str) -> bool:
    return text[:1].isalpha() and len(text.split()) == 1


def _plain(event: str) -> str:
    match = _PMU.fullmatch(event)
    return match[1] if match else event
