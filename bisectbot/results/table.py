"""LKP's comparison table: what a row says, and how it is laid out to the byte.

    Table.axes        (key, value) pairs, in the order printed; none: no block of axes
    Table.columns     what is compared, base first; ``Column.label`` stands above the numbers
    Table.fails       failure rows, in the order printed: how often a failure showed up
    Table.rows        rows of averages, in the order printed
    Table.edits       where a table that was read differs from what this module would print (see ``Edit``)

A cell says what is printed, not how it came about: ``bisectbot.results.compare`` chooses and computes. Widths and
formats are LKP's, including that averages and deviations are cut off, not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

RULER = "=" * 89
STARS = "*" * 99
FIRST_LABEL, LABEL = 16, 27  # widths of the labels above the base and above the others


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a row of averages.

    ``mean`` in the stat's unit, None when it was not measured there; ``spread`` the standard deviation in whole
    percent of the mean, None when it is not shown; ``change`` against the base, in percent or, in rows of
    percentages, in points; None in the base column, where a side is missing, and where the base is zero.
    """

    mean: float | None
    spread: int | None = None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A stat's averages, base first. With ``points``, changes are differences and carry no percent sign."""

    name: str
    cells: tuple[Cell, ...]
    points: bool = False


@dataclass(frozen=True, slots=True)
class FailCell:
    """How many of ``runs`` showed the failure; ``change`` against the base in points of per cent of the runs."""

    fails: float
    runs: int
    change: float | None = None


@dataclass(frozen=True, slots=True)
class FailRow:
    """A failure's counts, base first."""

    name: str
    cells: tuple[FailCell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """What is compared: ``label`` (a commit's id or tag, whole or cut) and its line in the list above the table.

    ``text`` None leaves it out of that list; a mail says ``31255e072b ("subject")`` there.
    """

    label: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines that somebody changed in a table: from ``line`` on, ``count`` laid-out lines read ``lines`` instead."""

    line: int
    count: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One comparison; see the module's docstring. ``dimension`` is what the columns differ in.

    ``machine`` introduces a further table of a mail, below a line of stars: ``host group: its hardware``.
    """

    columns: tuple[Column, ...]
    axes: tuple[tuple[str, str], ...] = ()
    fails: tuple[FailRow, ...] = ()
    rows: tuple[Row, ...] = ()
    machine: str | None = None
    dimension: str = "commit"
    edits: tuple[Edit, ...] = ()


def layout(table: Table) -> str:
    """Lay the table out as LKP prints it, each line ended; the empty string when it has no rows."""
    if not (table.fails or table.rows or table.edits):
        return ""
    return "".join(f"{line}\n" for line in lines(table))


def lines(table: Table) -> list[str]:
    """Give the table's lines, without line ends; ``Table.edits`` applied."""
    laid_out = [*_head(table), *_body(table)]
    for edit in sorted(table.edits, key=lambda edit: edit.line, reverse=True):
        laid_out[edit.line : edit.line + edit.count] = edit.lines
    return laid_out


def row_text(row: Row) -> str:
    """Lay out one row of averages."""
    parts = []
    for index, cell in enumerate(row.cells):
        if index:
            parts.append(" " * 12 if cell.change is None else change_text(cell.change, points=row.points))
        parts.append(" " * 16 if cell.mean is None else f"{mean_text(cell.mean)}{spread_text(cell.spread)}")
    return f"{''.join(parts)}  {row.name}"


def fail_text(row: FailRow) -> str:
    """Lay out one failure row."""
    parts = []
    for index, cell in enumerate(row.cells):
        if index:
            parts.append(" " * 12 if cell.change is None else f"{cell.change:10.0f}% ")
        fails = f"{int(cell.fails):11d}" if cell.fails else " " * 11
        parts.append(f"{fails}:{cell.runs:<4d}")
    return f"{''.join(parts)}  {row.name}"


def mean_text(mean: float) -> str:
    """Right-align in 10: two decimals below 1000, four digits above 100000000, else cut to an integer."""
    if abs(mean) < 1000:
        return f"{mean:10.2f}"
    if abs(mean) > 100_000_000:
        return f"{mean:10.4g}"
    return f"{int(mean):10d}"


def spread_text(spread: int | None) -> str:
    """Six characters for the deviation in percent; it may overflow them from 1000 % on."""
    return " " * 6 if spread is None else f" ±{spread:3d}%"


def change_text(change: float, *, points: bool) -> str:
    """Twelve characters for the change, signed, one decimal; two digits from 100000 on."""
    number = f"{change:+10.2g}" if abs(change) >= 100_000 else f"{change:+10.1f}"
    return number + ("  " if points else "% ")


def _head(table: Table) -> Iterator[str]:
    if table.machine is not None:
        yield from ("", "", STARS, table.machine)
    if table.axes:
        yield RULER
        yield "/".join(key for key, _ in table.axes) + ":"
        yield "  " + "/".join(value for _, value in table.axes)
        yield ""
    listed = [column.text for column in table.columns if column.text is not None]
    if listed:
        yield f"{table.dimension}: "
        yield from (f"  {text}" for text in listed)
        yield ""
    widths = [FIRST_LABEL] + [LABEL] * (len(table.columns) - 1)
    yield _spaced(column.label[:width].rjust(width) for column, width in zip(table.columns, widths, strict=True))
    yield _spaced("-" * width for width in widths)


def _body(table: Table) -> Iterator[str]:
    others = len(table.columns) - 1
    if table.fails:
        yield "       fail:runs" + "  %reproduction    fail:runs" * others
        yield "           |    " + "         |             |    " * others
        yield from map(fail_text, table.fails)
    if table.rows:
        yield "         %stddev" + "     %change         %stddev" * others
        yield "             \\  " + "        |                \\  " * others
        yield from map(row_text, table.rows)


def _spaced(words: Iterable[str]) -> str:
    return "".join(f"{word} " for word in words)
