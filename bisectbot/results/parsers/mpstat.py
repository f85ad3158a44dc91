"""mpstat: `mpstat -o JSON`, one sample a second. Percent of CPU time.

The file is one JSON document that may be huge, or cut when the run was killed: so it is read as a stream of its
innermost objects, of which each CPU's sample is one.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from math import isnan, nan

from bisectbot.results.parsers.rawlog import Pair, RawLog, printed

_OBJECT = re.compile(r"\{[^{}]*\}")
_LONGEST_OBJECT = 4096  # characters; a sample takes 200
_FIELDS = ("usr", "sys", "irq", "soft", "nice", "idle", "iowait")
_IDLE, _IOWAIT = _FIELDS.index("idle"), _FIELDS.index("iowait")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield how much the machine was used at most, then `cpu.all.usr%` … per sample.

    Utilization is 100 - idle - iowait; `max_utilization_pct` is the highest sample's, and
    `max_utilization.seconds` counts the samples whose utilization has the same whole percent. They come first, so
    that no sample of theirs is missed: a stat that appears late counts as 0 before (see ``series``).
    """
    samples = array("d")  # one after the other, _FIELDS each; NaN is a field that was not printed
    for record in _objects(raw):
        if record.get("cpu") == "all" and any(field in record for field in _FIELDS):
            samples.extend(_percent(record.get(field)) for field in _FIELDS)
    if samples:
        yield from _most(samples)
    for index, value in enumerate(samples):
        if not isnan(value):
            yield f"cpu.all.{_FIELDS[index % len(_FIELDS)]}%", printed(value)


def _most(samples: array[float]) -> Iterator[Pair]:
    idle, waiting = samples[_IDLE :: len(_FIELDS)], samples[_IOWAIT :: len(_FIELDS)]
    used = [round(100 - i - (0 if isnan(w) else w), 2) for i, w in zip(idle, waiting, strict=True) if not isnan(i)]
    if used:
        highest = int(max(used))
        yield "max_utilization_pct", printed(max(used))
        yield "max_utilization.seconds", str(sum(int(sample) == highest for sample in used))


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


def _percent(value: object) -> float:
    """Give a number as it is; what no percentage can be (text, 1e300, nothing) is NaN."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -1e4 < value < 1e4:
        return value
    return nan
