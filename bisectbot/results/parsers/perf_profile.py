"""perf-profile: `perf report --children -U -g folded,0.5,callee --sort=dso,symbol`. Percent of all samples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog

SMALLEST = 0.05  # percent: what is less is not worth a stat
FRAMES = 5

_EVENT = re.compile(r"# Samples: .* of events? (\S+)")
_PERCENT = r"(\d{1,3}(?:\.\d{1,4})?)%\s"
_ROW = re.compile(rf"\s*{_PERCENT}(?:\s*{_PERCENT})?(.*)", re.ASCII)
_SYMBOL = re.compile(r"\s\[\S\] ")  # `[k] ` or `[.] ` in front of it
_CLONE = re.compile(r"\.(?:isra|constprop|part)\.\d+")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `children.EVENT.SYMBOL`, `self.EVENT.SYMBOL` and `calltrace.EVENT.F1.F2…` (five frames, callee first).

    Equal names add up, GCC's clones of a function among them. Sorted by name, 2 decimals, none below 0.05.
    """
    totals: defaultdict[str, float] = defaultdict(float)
    event = "cycles"
    for line in raw:
        if raw.line == 1 and not (line.startswith("# ====") or "--header" in line):
            raw.warn("no header: perhaps not the output of perf report, or its begin is cut off")
        if line.startswith("#"):
            if match := _EVENT.match(line):
                event = match[1].strip("'\"").replace(":", "-")
            continue
        row = _ROW.match(line)
        if row and row[2] is None:
            frames = row[3].split(";")[:FRAMES]
            totals[f"calltrace.{event}.{'.'.join(map(_name, frames))}"] += float(row[1])
        elif row and (match := _SYMBOL.search(row[3])):
            symbol = _name(row[3][match.end() :])
            totals[f"children.{event}.{symbol}"] += float(row[1])
            totals[f"self.{event}.{symbol}"] += float(row[2])
        else:
            raw.warn_line(line)
    for name in sorted(totals):
        if totals[name] >= SMALLEST:
            yield name, f"{totals[name]:.2f}"


def _name(symbol: str) -> str:
    return "_".join(_CLONE.sub("", symbol).split())
