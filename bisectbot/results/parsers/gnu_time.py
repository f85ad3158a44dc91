"""time: what GNU `time -v` says of a command. Seconds, counts, kB."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number, printed

_BRACKETS = re.compile(r"\([^)]*\)")
_ELAPSED = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
_NO_STAT = ("Command being timed", "Command exited", "Command terminated", "Command stopped")


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the printed names in lower case, without what is in brackets, joined by `_`.

    `elapsed_time` is in seconds, made from [h:]m:s; `percent_of_cpu_this_job_got` has lost its `%`.
    """
    for line in raw:
        if line.strip().startswith(_NO_STAT):
            continue
        name, _, text = line.rpartition(": ")
        value = _value(text.strip())
        if name and value is not None:
            yield "_".join(_BRACKETS.sub(" ", name).lower().split()), value
        else:
            raw.warn_line(line)


def _value(text: str) -> str | None:
    if elapsed := _ELAPSED.fullmatch(text):
        hours, minutes, seconds = elapsed.groups()
        return printed(int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds))
    text = text.removesuffix("%")
    return text if is_number(text) else None
