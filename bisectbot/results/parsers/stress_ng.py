"""stress-ng: what `stress-ng --metrics` or `--metrics-brief` says. Bogo operations, and each stressor's own metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number

_LINE = re.compile(r"stress-ng: (\w+): +\[\d+\] (.*)")
_RESULT = re.compile(r"(passed|failed|skipped): \d+: (.*)")
_STRESSOR = re.compile(r"([\w-]{1,60}) \(\d+\)")
_VERDICTS = {"passed": "pass", "failed": "fail", "skipped": "skip"}


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield `STRESSOR.ops`, `STRESSOR.ops_per_sec` (by wall clock), then its own metrics by their words.

    `pipe  198.68 MB per sec pipe write rate (…)` is `pipe.MB_per_sec_pipe_write_rate`. Where the run is told to judge
    itself, `STRESSOR.pass`, `.fail` or `.skip` is 1.
    """
    for line in raw:
        match = _LINE.match(line)
        kind, text = match.groups() if match else ("", "")
        if kind in {"metrc", "metric", "info"}:
            yield from _result(text) if kind == "info" else _metric(text)


def _metric(text: str) -> Iterator[Pair]:
    words = text.split()
    if len(words) < 3 or not is_number(words[1]):
        return  # the table's head
    if len(words) >= 7 and all(map(is_number, words[1:7])):
        yield f"{words[0]}.ops", words[1]
        yield f"{words[0]}.ops_per_sec", words[5]
    else:
        yield f"{words[0]}.{'_'.join(' '.join(words[2:]).partition('(')[0].split())}", words[1]


def _result(text: str) -> Iterator[Pair]:
    if match := _RESULT.match(text):
        for stressor in _STRESSOR.findall(match[2]):
            yield f"{stressor}.{_VERDICTS[match[1]]}", "1"
