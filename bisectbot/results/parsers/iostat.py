"""iostat: `iostat -tkx` every second. Percent, requests per second, kB per second, ms."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `cpu.user` … and `DEVICE.util` …: the header's column names without `%`."""
    columns: list[str] = []
    of_cpu = False
    for line in raw:
        words = line.split()
        if not words:
            columns = []
        elif words[0] == "avg-cpu:":
            columns, of_cpu = _names(words[1:]), True
        elif words[0] in {"Device", "Device:"}:
            columns, of_cpu = _names(words[1:]), False
        elif not columns:
            continue  # the banner and the time of the report
        else:
            name, values = ("cpu", words) if of_cpu else (words[0], words[1:])
            if len(values) != len(columns) or not all(map(is_number, values)):
                raw.warn_line(line)
                continue
            for column, value in zip(columns, values, strict=True):
                yield f"{name}.{column}", value


def _names(columns: list[str]) -> list[str]:
    return [column.replace("%", "") for column in columns]
