"""turbostat: the summary over the whole run. MHz, percent, counts, °C, W: each as its column is named."""

from __future__ import annotations

from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the columns of the first row below the first title row (the one that holds `Busy%`).

    Titles and values are matched from the right; `-` and `*` say that there is no value.
    """
    titles: list[str] = []
    for line in raw:
        words = line.split()
        if not titles:
            titles = words if "Busy%" in words else []
        elif words:
            shared = min(len(titles), len(words))
            for title, value in zip(titles[-shared:], words[-shared:], strict=True):
                if is_number(value):
                    yield title, value
                elif value not in {"-", "*"}:
                    raw.warn(f"{title} is no number: {value[:40]!r}")
            return
    raw.warn("no summary row below a title row with Busy%")
