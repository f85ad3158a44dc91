"""The comparison table's layout, and reading it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisectbot.results.table import (
    Cell,
    Column,
    Edit,
    FailCell,
    FailRow,
    Row,
    Table,
    layout,
    lines,
    mean_text,
    row_text,
)
from bisectbot.results.table_reader import find_tables, read_row, read_tables

GOLDEN = Path(__file__).parents[1] / "golden" / "table"
SHARED = Path(__file__).parents[2].parent / "shared" / "lkp"

TWO = (GOLDEN / "two.txt").read_text(encoding="utf-8")
THREE = (GOLDEN / "three.txt").read_text(encoding="utf-8")


def test_every_format_is_read_and_printed_back():
    (table,) = read_tables(TWO)
    assert layout(table) == TWO
    assert table.axes[2:4] == (("fs2", "nfsv4"), ("fs", "xfs"))
    assert table.columns[1] == Column("abcdef0123456789abcdef01234", 'abcdef0123 ("nfs: take "locks" later")')
    assert table.fails[1].cells == (FailCell(10, 10), FailCell(0, 10, -100.0))
    assert table.rows[1] == Row("proc-vmstat.nr_anon_transparent_hugepages", (Cell(52.21), Cell(125.62, 16, 140.6)))
    assert table.rows[5].points
    assert len(table.edits) == 1  # the odd row, which no layout of ours prints


def test_three_columns_and_a_tag():
    (table,) = read_tables(THREE)
    assert layout(table) == THREE
    assert table.edits == ()
    assert [column.label for column in table.columns] == [
        "fedcba9876543210",
        "v6.3-rc2",
        "abcdef0123456789abcdef01234",
    ]
    assert [cell.change for cell in table.rows[0].cells] == [None, -50.0, -0.0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(" \n", "\n"),  # a mail client that strips trailing blanks
        lambda text: text.replace("         %stddev ", "\n         %stddev ", 1),
        lambda text: text.replace("commit: \n", ""),
        lambda text: text.replace("fsmark.app_overhead", "fsmark.app_overhead   <== look"),
        lambda text: text.replace(" 2.134e+09", "2.134e+09"),
        lambda text: text.replace("  65542525", "\n\n  65542525"),
        lambda text: text.replace("         %stddev     %change         %stddev\n", ""),
        lambda text: "\n".join(line[:60] for line in text.split("\n")),
        lambda text: text.replace("=" * 89, "=" * 70),
        lambda text: text.replace("0123456789abcdef abcdef0123456789abcdef01234 ", "a b c d"),
    ],
)
def test_what_was_edited_prints_back(damage: Callable[[str], str]):
    text = damage(TWO)
    (table,) = read_tables(text)
    assert "\n".join(lines(table)) in text
    assert lines(table)[-1].split()[-1] == text.split()[-1]
    assert len(table.rows) + len(table.fails) >= 8


def test_several_tables_and_what_stands_between():
    text = f"Hello\n\n{TWO}\n\n{'*' * 99}\nlkp-abc-2sp1: 4 threads\n{TWO}\n\nand\n\n{THREE}\n-- \nbye\n"
    tables = read_tables(text)
    assert [table.machine for table in tables] == [None, "lkp-abc-2sp1: 4 threads", None]
    assert layout(tables[0]) + layout(tables[1]) in text
    assert layout(tables[2]) == THREE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "----------------\n",
        "A title\n--------------------\n",
        "a\n---------------- ---------------------------\n",
        "> quoted\n" * 3,
        "=" * 89,
    ],
)
def test_odd_text_is_no_reason_to_fail(text: str):
    for table in read_tables(text):
        assert "\n".join(lines(table)) in text
        assert len(table.columns) == 2


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (999.994, "    999.99"),
        (999.995, "   1000.00"),
        (1000.9, "      1000"),
        (75458.9, "     75458"),
        (-3074705.6, "  -3074705"),
        (100_000_000, " 100000000"),
        (100_000_001, "     1e+08"),
        (5.7064e9, " 5.706e+09"),
        (0, "      0.00"),
    ],
)
def test_averages_are_cut_not_rounded(mean: float, text: str):
    assert mean_text(mean) == text


def test_what_was_not_measured_is_blank():
    row = Row("a.b", (Cell(12.0), Cell(None), Cell(13.0, 5, 8.3)))
    assert row_text(row) == "     12.00" + " " * 34 + "      +8.3%      13.00 ±  5%  a.b"
    assert read_row(row_text(row), 3) == row


def test_a_row_that_a_reader_squeezed():
    row = read_row("   1652352           -12.6%    1444002 ±  2%     -13.3%    1431865 will-it-scale.per_thread_ops", 3)
    assert row == Row(
        "will-it-scale.per_thread_ops", (Cell(1652352), Cell(1444002, 2, -12.6), Cell(1431865, None, -13.3))
    )


def test_nothing_is_printed_for_nothing():
    assert layout(Table((Column("a"), Column("b")))) == ""


def test_edits_may_add_and_drop_lines():
    table = Table((Column("a"), Column("b")), fails=(FailRow("x", (FailCell(0, 1), FailCell(1, 1, 100.0))),))
    plain = lines(table)
    edited = Table(table.columns, fails=table.fails, edits=(Edit(0, 0, ("top",)), Edit(4, 1, ())))
    assert lines(edited) == ["top", *plain[:4]]


_names = st.from_regex(r"[a-z][-a-zA-Z0-9_.:/>\[\]]{0,40}", fullmatch=True)
_printed = (
    st.integers(-99_999_999, 99_999_999).filter(lambda n: abs(n) >= 1000).map(float)
    | st.integers(-99_999, 99_999).map(lambda n: n / 100)
    | st.integers(1001, 9999).map(lambda n: n * 1e10)
)
_changes = st.integers(-9999, 9999).map(lambda n: n / 10)


@st.composite
def _rows(draw: st.DrawFn, columns: int) -> Row:
    def cell(index: int) -> Cell:
        spread = draw(st.none() | st.integers(2, 999))
        return Cell(draw(_printed), spread, draw(_changes) if index else None)

    return Row(draw(_names), tuple(cell(index) for index in range(columns)), draw(st.booleans()))


@st.composite
def _tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(2, 4))
    labels = draw(st.lists(st.from_regex(r"[0-9a-f]{16}", fullmatch=True), min_size=columns, max_size=columns))
    words = st.from_regex(r"[a-z0-9=%.]{1,8}", fullmatch=True)
    return Table(
        tuple(Column(label, label[:10]) for label in labels),
        tuple(draw(st.lists(st.tuples(words, words), min_size=1, max_size=4))),
        rows=tuple(draw(st.lists(_rows(columns), min_size=1, max_size=6))),
    )


@given(_tables())
@settings(max_examples=80, deadline=None)
def test_any_table_is_read_back(table: Table):
    text = layout(table)
    assert read_tables(f"before\n\n{text}\nafter\n") == [table]


@given(_tables(), st.integers(0, 2**32), st.text(" ±%ax-=>\n", max_size=4))
@settings(max_examples=80, deadline=None)
def test_any_damage_prints_back(table: Table, where: int, what: str):
    text = layout(table)
    at = where % len(text)
    damaged = (text[:at] + what + text[at + 1 :]).split("\n")
    for found in find_tables(damaged):
        assert lines(found.table) == damaged[found.start : found.end]


def test_tables_of_public_mails_print_back():
    for path in sorted(SHARED.glob("reports/*.txt")):
        mail = path.read_text(encoding="utf-8").split("\n")
        found = find_tables(mail)
        assert found
        for each in found:
            assert lines(each.table) == mail[each.start : each.end]
            assert each.table.edits == ()
