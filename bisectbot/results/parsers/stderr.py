"""stderr: what the job wrote to its standard error. Each different message is an error id with the value 1."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.error_id import error_id
from bisectbot.results.parsers.rawlog import Pair, RawLog

MOST_IDS = 10_000


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield every id once, and `has_stderr` if there was any."""
    seen: set[str] = set()
    for line in raw:
        name = error_id(line)
        if not name or name in seen:
            continue
        if len(seen) >= MOST_IDS:
            raw.warn(f"more than {MOST_IDS:,} different messages: the rest is left out")
            break
        seen.add(name)
        yield name, "1"
    if seen:
        yield "has_stderr", "1"
