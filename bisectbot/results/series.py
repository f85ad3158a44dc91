"""From a parser's pairs to series: every value of a stat during one run, in order (LKP calls this dump-stat).

A record is what a monitor says at one time; its values share an index in their series. Two ways of reading differ,
both here and in ``stats``: ``exact`` does as LKP does, otherwise what it makes up is left out:

    what                                          exact                 mended
    a stat that appears late                      zeros before it       ``None`` before it
    a value that cannot be                        dropped: the series   ``None``
                                                  is one shorter
    a stat that is 0 throughout                   dropped               kept: it was measured
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bisectbot.results.matrix import Number
from bisectbot.results.parsers import Pair
from bisectbot.results.parsers.rawlog import is_number, number

Samples: TypeAlias = tuple[Number | None, ...]

# Monitors whose series may differ in length: no last record is taken for cut.
_RAGGED = frozenset(("ftrace", "perf-stat", "sched_debug", "slabinfo", "meminfo"))

# What no counter of these can be: a value outside came from a counter that wrapped or was reset.
_RANGES = (
    (re.compile(r"iostat\..*\.util$"), 0, 300),
    (re.compile(r"(?:iostat|vmstat)\.cpu\."), 0, 110),
    (re.compile(r"turbostat\..*Watt$"), 0, 10_000),
)
_RANGED = ("iostat", "vmstat", "turbostat")
_NO_VALUES = ("message:", "pattern:")  # of error ids: for people


@dataclass(frozen=True, slots=True)
class Series:
    """All samples of one monitor in one run: full stat name (`meminfo.MemFree`) -> values in time order.

    ``None`` is a value that was not printed. ``warnings`` say what was dropped.
    """

    monitor: str
    samples: Mapping[str, Samples]
    warnings: tuple[str, ...] = ()

    @property
    def longest(self) -> int:
        """Number of records: the length of the longest series."""
        return max(map(len, self.samples.values()), default=0)


def collect(monitor: str, pairs: Iterable[Pair], *, exact: bool = False) -> Series:
    """Make series of what a parser yields.

    A value that is no number invalidates its record: that index goes from every series. A last record that lacks
    values (some series are one shorter) is taken for cut and goes too, except where monitors are ragged by nature.
    """
    collector = _Collector(monitor, exact)
    for key, text in pairs:
        collector.add(key, text)
    return collector.series()


class _Collector:
    def __init__(self, monitor: str, exact: bool) -> None:
        self._monitor = monitor
        self._exact = exact
        self._ranged = monitor in _RANGED
        self._samples: dict[str, list[Number | None]] = {}
        self._records = 0
        self._invalid: set[int] = set()
        self._warnings: dict[str, None] = {}

    def add(self, key: str, text: str) -> None:
        if not key or key == "#" or not text or key.startswith(_NO_VALUES):
            return
        value = number(text) if is_number(text) else None
        possible = value is None or not self._ranged or self._in_range(key, value)
        if not possible:
            self._warn(f"{key}: {value} cannot be: dropped")
            if self._exact:
                return  # and what follows moves up by one record
        samples = self._samples.get(key)
        if samples is None:
            if len(key.split()) != 1:
                self._warn(f"{key!r}: a stat's name holds no blanks")
                return
            samples = self._samples[key] = [0 if self._exact else None] * (self._records - 1)
        if value is None:
            self._warn(f"{key}: {text[:40]!r} is no number: its record is left out")
            self._invalid.add(len(samples))
        samples.append(value if possible else None)
        self._records = max(self._records, len(samples))

    def _in_range(self, key: str, value: Number) -> bool:
        name = f"{self._monitor}.{key}"
        return all(low <= value <= high for pattern, low, high in _RANGES if pattern.match(name))

    def _warn(self, what: str) -> None:
        if len(self._warnings) < 100:
            self._warnings[f"{self._monitor}: {what}"] = None

    def series(self) -> Series:
        samples = {f"{self._monitor}.{key}": self._valid(values) for key, values in self._samples.items()}
        if self._exact:
            samples = {name: values for name, values in samples.items() if not _dropped(name, values)}
        lengths = {len(values) for values in samples.values()}
        if lengths and max(lengths) - min(lengths) == 1 and self._monitor not in _RAGGED:
            samples = {name: values[: min(lengths)] for name, values in samples.items()}
        return Series(self._monitor, {name: tuple(values) for name, values in samples.items()}, tuple(self._warnings))

    def _valid(self, values: list[Number | None]) -> list[Number | None]:
        if not self._invalid:
            return values
        return [value for record, value in enumerate(values) if record not in self._invalid]


def _dropped(name: str, values: list[Number | None]) -> bool:
    if not values:
        return True
    if name.startswith("dmesg.timestamp"):
        return False
    return values[0] == 0 and values[-1] == 0 and sum(value or 0 for value in values) == 0
