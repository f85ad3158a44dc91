"""Comparison tables out of text: the inverse of ``bisectbot.results.table``.

What is read prints back to the same bytes. Where a table was edited by hand, cut off or laid out in another way,
the lines that differ are kept as ``Table.edits``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bisectbot.results import table as layout
from bisectbot.results.table import Cell, Column, Edit, FailCell, FailRow, Row, Table

_DASHES = re.compile(r"-{15,17}(?: {1,2}-{25,28})+ ?")  # 26 and not 27 before February 2019
_ROW_LIKE = re.compile(r"[ \d-]")
_JOBS = "testcase/testparams/testbox"
_RULER = re.compile(r"={40,} ?")
_STARS = re.compile(r"\*{40,} ?")
_LISTED = re.compile(r"(\w[\w ]*): ?")
_STAT = re.compile(r"[\w-]+\.\S+")
_TITLES = re.compile(r" +(?:fail:runs|%stddev)[ %\w:]*| +[|\\] +\|[ |\\]*")
_SECTION = re.compile(r"(?: +(?:fail:runs|%reproduction|%stddev|%change))+ *")

_MEAN = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)"
_SPREAD = r"(?: ± *(\d+)%)?"
_CHANGE = r"([+-]\d+(?:\.\d+)?(?:e[+-]\d+)?|\d+(?=%))(%?)"  # LKP's older tool leaves out the plus
_LOOSE = re.compile(rf" *{_MEAN}{_SPREAD}((?: +{_CHANGE} +{_MEAN}{_SPREAD})*) +(\S.*)")
_LOOSE_CELL = re.compile(rf" +{_CHANGE} +{_MEAN}{_SPREAD}")
_NAMELESS = re.compile(rf" +{_MEAN}{_SPREAD}((?: +{_CHANGE} +{_MEAN}{_SPREAD})+) *")
_FAIL = re.compile(r" *(\d*):(\d+)((?: +-?\d+% +\d*:\d+)*) +(\S.*)")
_FAIL_CELL = re.compile(r" +(-?\d+)% +(\d*):(\d+)")


@dataclass(frozen=True, slots=True)
class Found:
    """A table and the lines it takes up: ``start`` to before ``end``."""

    start: int
    end: int
    table: Table


def read_tables(text: str) -> list[Table]:
    """Read every comparison table in a text."""
    return [found.table for found in find_tables(text.split("\n"))]


def find_tables(lines: Sequence[str]) -> list[Found]:
    """Find every comparison table in these lines, top to bottom.

    Rows that somebody pasted without their head are a table too, one whose columns have no labels.
    """
    headed: list[Found] = []
    for index, line in enumerate(lines):
        above = headed[-1].end if headed else 0
        if index > above and _DASHES.fullmatch(line) and lines[index - 1].strip():
            headed.append(_read(lines, index, above))
    inside = {index for found in headed for index in range(found.start, found.end)}
    return sorted([*headed, *_headless(lines, inside)], key=lambda found: found.start)


def _headless(lines: Sequence[str], inside: set[int]) -> Iterator[Found]:
    """Find runs of lines, outside of other tables, that are rows, and their titles."""
    pasted = ((index, _pasted_row(line)) for index, line in enumerate(lines) if index not in inside and line)
    rows = [(index, row) for index, row in pasted if row]
    start = 0
    for end in range(1, len(rows) + 1):
        if end < len(rows) and rows[end][0] == rows[end - 1][0] + 1 and _width(rows[end]) == _width(rows[start]):
            continue
        first, last = rows[start][0], rows[end - 1][0]
        while first > 0 and first - 1 not in inside and _TITLES.fullmatch(lines[first - 1]):
            first -= 1
        columns = (Column(""),) * _width(rows[start])
        table = Table(columns, rows=tuple(row for _, row in rows[start:end]))
        edits = _edits(layout.lines(table), lines[first : last + 1])
        yield Found(first, last + 1, replace(table, edits=edits))
        start = end


def _width(numbered: tuple[int, Row]) -> int:
    return len(numbered[1].cells)


def _pasted_row(line: str) -> Row | None:
    """Read a row of two or more columns that stands alone: to the byte as laid out, or of a stat's name at least."""
    match = _LOOSE.fullmatch(line)
    columns = 1 + len(_LOOSE_CELL.findall(match[3])) if match else 0
    row = read_row(line, columns) if columns > 1 else None
    return row if row and (layout.row_text(row) == line or _STAT.fullmatch(row.name)) else None


def _read(lines: Sequence[str], dashes: int, above: int) -> Found:
    start, table = _read_head(lines, dashes, above)
    columns = len(table.columns)
    end = dashes + 1
    fails: list[FailRow] = []
    rows: list[Row] = []
    while end < len(lines) and (size := _goes_on(lines, end, columns)):
        for line in lines[end : end + size]:
            if fail := read_fail_row(line, columns):
                fails.append(fail)
            elif row := read_row(line, columns):
                rows.append(row)
        end += size
    while end > dashes + 1 and not _ROW_LIKE.match(lines[end - 1]):
        end -= 1  # what somebody wrote right below
    table = replace(table, fails=tuple(fails), rows=tuple(rows))
    return Found(start, end, replace(table, edits=_edits(layout.lines(table), lines[start:end])))


def _goes_on(lines: Sequence[str], at: int, columns: int) -> int:
    """Count the lines from ``at`` on that still belong to the table: one, or a gap and the row after it."""
    if lines[at].strip():
        return 0 if _RULER.fullmatch(lines[at]) or _STARS.fullmatch(lines[at]) else 1
    below = next((i for i in range(at, min(at + 4, len(lines))) if lines[i].strip()), None)
    if below is None or _DASHES.fullmatch((*lines, "")[below + 1]):
        return 0
    line = lines[below]
    goes_on = _SECTION.fullmatch(line) or read_row(line, columns) or read_fail_row(line, columns)
    return below - at + 1 if goes_on else 0


def _read_head(lines: Sequence[str], dashes: int, above: int) -> tuple[int, Table]:
    """Read what stands above the rows; give the first line of it."""
    labels = lines[dashes - 1].split()
    count = len(lines[dashes].split())
    labels = labels if len(labels) == count else _cut_by_width(lines[dashes - 1], lines[dashes])
    if labels[-1] == _JOBS:  # LKP's older tool has jobs in place of stats
        labels, count = labels[:-1], count - 1
    start, dimension, texts = _read_list(lines, dashes - 1, above, count)
    columns = tuple(Column(label, text) for label, text in zip(labels, texts, strict=True))
    start, axes = _read_axes(lines, start, above)
    start, machine = _read_lead(lines, start, above)
    return start, Table(columns, axes, machine=machine, dimension=dimension)


def _cut_by_width(labels: str, dashes: str) -> list[str]:
    return [labels[match.start() : match.end()].strip() for match in re.finditer("-+", dashes)]


def _read_list(lines: Sequence[str], labels: int, above: int, count: int) -> tuple[int, str, list[str | None]]:
    """Read the list of what is compared, which ends above the line of labels."""
    nothing: list[str | None] = [None] * count
    end = _above_gap(lines, labels, above)
    start = end
    while start > above and lines[start - 1].startswith("  "):
        start -= 1
    title = _LISTED.fullmatch(lines[start - 1]) if start > above else None
    if not (title and start < end):
        return labels, "commit", nothing
    texts: list[str | None] = [line[2:] for line in lines[start:end]]
    return start - 1, title[1], (texts + nothing)[:count]


def _read_axes(lines: Sequence[str], start: int, above: int) -> tuple[int, tuple[tuple[str, str], ...]]:
    ruler = next((i for i in range(start - 1, max(above, start - 12) - 1, -1) if _RULER.fullmatch(lines[i])), None)
    if ruler is None:
        return start, ()
    keys = lines[ruler + 1].strip().removesuffix(":").split("/")
    values = lines[ruler + 2].strip().split("/") if ruler + 2 < len(lines) else []
    return ruler, tuple(zip(keys, values, strict=True)) if len(keys) == len(values) else ()


def _read_lead(lines: Sequence[str], start: int, above: int) -> tuple[int, str | None]:
    """Read the machine of a further table, which stands below a line of stars."""
    if start - 2 < above or not _STARS.fullmatch(lines[start - 2]):
        return start, None
    return max(_above_gap(lines, start - 2, above), above), lines[start - 1]


def _above_gap(lines: Sequence[str], at: int, above: int) -> int:
    """Go up over empty lines: the line after the last one with text."""
    while at > above and not lines[at - 1].strip():
        at -= 1
    return at


def wrapped_rows_joined(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Join rows, in numbered lines, that a mail reader broke before their name, which has no blank to break at."""
    joined: list[tuple[int, str]] = []
    for number, line in lines:
        if joined and line and " " not in line and (numbers := _NAMELESS.fullmatch(joined[-1][1])):
            width = 16 + 28 * len(_LOOSE_CELL.findall(numbers[3]))
            joined[-1] = joined[-1][0], f"{joined[-1][1].rstrip():<{width}}  {line}"
        else:
            joined.append((number, line))
    return joined


def read_row(line: str, columns: int) -> Row | None:
    """Read a row of averages; None if the line is none."""
    return _read_by_width(line, columns) or _read_loosely(line, columns)


def _read_by_width(line: str, columns: int) -> Row | None:
    """Read a row by its fixed columns: the only way to see a cell that was left blank."""
    width = 16 + 28 * (columns - 1)
    if line[width : width + 2] != "  " or not line[width + 2 : width + 3].strip():
        return None
    cells = []
    signs = set()
    for index in range(columns):
        at = 28 * index
        change = None
        if index:
            change, sign = _number(line[at - 12 : at - 2]), line[at - 2 : at].strip()
            if (change is None) != (not line[at - 12 : at].strip()):
                return None
            signs |= {sign} if change is not None else set()
        cell = _read_cell(line[at : at + 10], line[at + 10 : at + 16], change)
        if cell is None:
            return None
        cells.append(cell)
    if all(cell.mean is None for cell in cells) or len(signs) > 1 or not signs <= {"%", ""}:
        return None
    return Row(line[width + 2 :], tuple(cells), points="" in signs)


def _read_cell(mean: str, spread: str, change: float | None) -> Cell | None:
    number = _number(mean)
    percent = re.fullmatch(r" ± *(\d+)%", spread)
    if (number is None and (mean + spread).strip()) or not (percent or not spread.strip()):
        return None
    return Cell(number, int(percent[1]) if percent else None, change)


def _number(text: str) -> float | None:
    try:
        return float(text) if text.strip() and "_" not in text else None
    except ValueError:
        return None


def _read_loosely(line: str, columns: int) -> Row | None:
    """Read a row whose numbers overflowed their columns or were shifted by an editor."""
    match = _LOOSE.fullmatch(line)
    if not match:
        return None
    others = list(_LOOSE_CELL.finditer(match[3]))
    if len(others) != columns - 1:
        return None
    first = Cell(float(match[1]), _percent(match[2]))
    cells = [Cell(float(other[3]), _percent(other[4]), float(other[1])) for other in others]
    return Row(match[match.re.groups], (first, *cells), points=any(not other[2] for other in others))


def _percent(text: str | None) -> int | None:
    return int(text) if text else None


def read_fail_row(line: str, columns: int) -> FailRow | None:
    """Read a failure row; None if the line is none."""
    match = _FAIL.fullmatch(line)
    if not match:
        return None
    others = list(_FAIL_CELL.finditer(match[3]))
    if len(others) != columns - 1:
        return None
    first = FailCell(int(match[1] or 0), int(match[2]))
    cells = [FailCell(int(other[2] or 0), int(other[3]), float(other[1])) for other in others]
    return FailRow(match[4], (first, *cells))


def _edits(laid_out: Sequence[str], printed: Sequence[str]) -> tuple[Edit, ...]:
    if list(laid_out) == list(printed):
        return ()
    matcher = difflib.SequenceMatcher(None, laid_out, printed, autojunk=False)
    return tuple(
        Edit(old, old_end - old, tuple(printed[new:new_end]))
        for tag, old, old_end, new, new_end in matcher.get_opcodes()
        if tag != "equal"
    )
