"""fio: `fio --output-format=json`. MiB per second, operations per second, µs; sums and means over all jobs.

Latencies are those of completion (clat).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from bisectbot.results.parsers.rawlog import Pair, RawLog, printed

LARGEST = 1 << 24  # characters; fio's report of a thousand jobs takes a few millions
_DIRECTIONS = ("read", "write", "trim")
_PERCENTILES = ("50.000000", "90.000000", "95.000000", "99.000000", "99.900000")
_BUCKETS = (("latency_ns", "ns"), ("latency_us", "us"), ("latency_ms", "ms"))


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `read_bw_MBps`, `read_iops`, `read_clat_mean_us`, `read_clat_99%_us` … for directions that did anything.

    `workload` is the number of operations; `latency_100us%` the share of those that took up to that long, but longer
    than the next smaller share's. Means and percentiles are weighted by each job's operations.
    """
    jobs = _jobs(raw)
    total = 0.0
    for direction in _DIRECTIONS:
        parts = [part for job in jobs if _number(part := _object(job.get(direction)), "total_ios") > 0]
        if not parts:
            continue
        total += sum(_number(part, "total_ios") for part in parts)
        yield f"{direction}_bw_MBps", printed(sum(_number(part, "bw") for part in parts) / 1024)
        yield f"{direction}_iops", printed(sum(_number(part, "iops") for part in parts))
        yield from _latency(f"{direction}_clat", parts)
    if total:
        yield from _shares(jobs)
        yield "workload", str(int(total))


def _latency(name: str, parts: Sequence[Mapping[str, object]]) -> Iterator[Pair]:
    clats = [(_number(part, "total_ios"), _object(part.get("clat_ns"))) for part in parts]
    weight = sum(count for count, _ in clats)
    yield f"{name}_mean_us", printed(sum(count * _number(clat, "mean") for count, clat in clats) / weight / 1000)
    for percentile in _PERCENTILES:
        values = [(count, _object(clat.get("percentile"))) for count, clat in clats]
        if all(percentile in value for _, value in values):
            mean = sum(count * _number(value, percentile) for count, value in values) / weight
            yield f"{name}_{float(percentile):g}%_us", printed(mean / 1000)


def _shares(jobs: Sequence[Mapping[str, object]]) -> Iterator[Pair]:
    for field, unit in _BUCKETS:
        shares = [_object(job.get(field)) for job in jobs]
        for bound in dict.fromkeys(bound for share in shares for bound in share if bound.lstrip(">=").isdecimal()):
            mean = sum(_number(share, bound) for share in shares) / len(jobs)
            if mean:
                yield f"latency_{bound}{unit}%", printed(mean)


def _jobs(raw: RawLog) -> list[Mapping[str, object]]:
    text: list[str] = []
    size = 0
    for line in raw:  # fio may write notes before its report
        if text or line.startswith("{"):
            size += len(line)
            if size > LARGEST:
                break
            text.append(line)
    try:
        report, _ = json.JSONDecoder().raw_decode("\n".join(text))
    except (ValueError, RecursionError) as error:
        raw.warn(f"no JSON report: {error}")
        return []
    jobs = _object(report).get("jobs")
    return [_object(job) for job in jobs] if isinstance(jobs, list) else []


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _number(values: Mapping[str, object], key: str) -> float:
    value = values.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30 and isfinite(value):
        return float(value)
    return 0.0
