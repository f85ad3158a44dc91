"""The box of a boot or functional test's report: how many runs of each commit showed what.

+----------------+------------+------------+
|                | 6344c34cc2 | 9343f6818b |
+----------------+------------+------------+
| boot_successes | 12         | 0          |
+----------------+------------+------------+
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_RULER = re.compile(r"\+(?:-+\+){3,}\s*")


@dataclass(frozen=True, slots=True)
class Box:
    """``labels`` are commits, base first; a row is what showed up, and in how many runs of each, as printed.

    ``width`` is the least of the first column: rows that were taken out leave a box as wide as it was.
    """

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    width: int = 0


def layout(box: Box) -> str:
    """Lay the box out, each line ended; columns are as wide as their longest cell."""
    table = [("", *box.labels), *((name, *counts) for name, counts in box.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    widths[0] = max(widths[0], box.width)
    ruler = "".join(f"+{'-' * (width + 2)}" for width in widths) + "+"
    head, *rows = [
        "".join(f"| {cell:<{width}} " for cell, width in zip(cells, widths, strict=True)) + "|" for cells in table
    ]
    return "".join(f"{line}\n" for line in (ruler, head, ruler, *rows, ruler))


def find_boxes(lines: Sequence[str]) -> Iterator[Box]:
    """Find boxes that print back as they are; one that somebody edited is left in the text."""
    start = 0
    while start < len(lines):
        end = start + 1
        if _RULER.fullmatch(lines[start]):
            while end < len(lines) and lines[end].startswith(("|", "+")):
                end += 1
            box = _read(lines[start:end])
            if box and layout(box) == "".join(f"{line.rstrip()}\n" for line in lines[start:end]):
                yield box
        start = end


def _read(lines: Sequence[str]) -> Box | None:
    (head, *rows) = [_cells(line) for line in lines if line.startswith("|")] or [()]
    if len(head) < 2 or head[0] or any(len(row) != len(head) for row in rows):
        return None
    longest = max((len(row[0]) for row in rows), default=0)
    width = lines[0].index("+", 1) - 3
    return Box(head[1:], tuple((row[0], row[1:]) for row in rows), width if width > longest else 0)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.rstrip().strip("|").split(" | "))
