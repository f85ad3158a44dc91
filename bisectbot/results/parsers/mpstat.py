"""mpstat: `mpstat -o JSON`, one sample a second. Percent of CPU time.

The file is one JSON document that may be huge, or cut when the run was killed: so it is read as a stream of its
innermost objects, of which each CPU's sample is one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, printed

_OBJECT = re.compile(r"\{[^{}]*\}")
_LONGEST_OBJECT = 4096  # characters; a sample takes 200
_FIELDS = ("usr", "sys", "irq", "soft", "nice", "idle", "iowait")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `cpu.all.usr%` … per sample, and at the end how much the machine was used at most.

    Utilization is 100 - idle - iowait; `max_utilization_pct` is the highest sample's, and
    `max_utilization.seconds` counts the samples whose utilization has the same whole percent.
    """
    highest = -1.0
    seconds: Counter[int] = Counter()
    for record in _objects(raw):
        values = {field: value for field in _FIELDS if (value := _percent(record.get(field))) is not None}
        if record.get("cpu") != "all" or not values:
            continue
        for field, value in values.items():
            yield f"cpu.all.{field}%", printed(value)
        used = round(100 - values.get("idle", 0) - values.get("iowait", 0), 2)
        highest = max(highest, used)
        seconds[int(used)] += 1
    if seconds:
        yield "max_utilization_pct", printed(highest)
        yield "max_utilization.seconds", str(seconds[int(highest)])


def _objects(raw: RawLog) -> Iterator[dict[str, object]]:
    rest = ""
    for piece in raw.pieces():
        text = rest + piece
        end = 0
        for match in _OBJECT.finditer(text):
            end = match.end()
            record = _decoded(match[0])
            if record is None:
                raw.warn_line(match[0])
            else:
                yield record
        opening = text.rfind("{", end)
        rest = text[opening:] if opening >= 0 else ""
        if len(rest) > _LONGEST_OBJECT:
            raw.warn_line(rest)
            rest = ""
    if '"cpu"' in rest:
        raw.warn_line(rest)


def _decoded(text: str) -> dict[str, object] | None:
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _percent(value: object) -> float | None:
    """Give a number as it is; what no percentage can be (text, NaN, 1e300) is None."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -1e4 < value < 1e4:
        return value
    return None
