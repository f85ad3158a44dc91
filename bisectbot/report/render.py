"""The mail: subject and body of a report. Headers, recipients and delivery belong to ``bisectbot.mail``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bisectbot.report import sections
from bisectbot.report.model import Direction, Report
from bisectbot.results import occurrences
from bisectbot.results import table as tables
from bisectbot.results.table import Table

MOST_BYTES = 40_000  # of a body, encoded; what does not fit is in the twin

_AREA = re.compile(r"(?:Revert \")?([^\s:\"]+(?:, ?[^\s:\"]+)*):\s")


@dataclass(frozen=True, slots=True)
class MailText:
    """What a mail says: one line of subject, and a body of lines that end in LF."""

    subject: str
    body: str


def render_mail(report: Report) -> MailText:
    """Word a report as a mail.

    At most ``MOST_BYTES`` of body: the last rows of the largest tables are left out, and the mail says how many.
    """
    before = [
        *sections.opening(report),
        *sections.evidence(report),
        *sections.run_values(report),
        *sections.job(report.finding),
        *sections.also(report.also),
        *sections.explanation(report),
        *sections.notes(report),
        *sections.boxes(report.boxes),
        *sections.tags(report),
        *sections.details(report),
    ]
    after = sections.footer(report.identity)
    before = _cut(before, MOST_BYTES - _size(after) - 200 * len(report.tables), report.archive)
    room = MOST_BYTES - _size(before) - _size(after)
    return MailText(subject(report), "".join(f"{line}\n" for line in [*before, *_tables(report, room), *after]))


def subject(report: Report) -> str:
    """Give the subject that people filter on, two blanks as LKP's; the size of the change without its sign."""
    finding, tree = report.finding, report.tree
    where = f"[{tree.name}:{tree.branch}] " if tree.name and tree.branch else ""
    area = f"[{report.area or area_of(report.commit.subject)}] "
    what = finding.stat if finding.direction is Direction.FAILURE else f"{finding.stat} {sections.change(finding)}"
    return f"{where}{area if area != '[] ' else ''} {report.commit.short}:  {what}".strip()


def area_of(commit_subject: str) -> str:
    """Give what stands before the colon of a commit's subject: ``x86/acpi``; empty if nothing does."""
    match = _AREA.match(commit_subject)
    return match[1] if match else ""


def tables_text(report: Report) -> str:
    """Lay out the report's boxes and tables alone, whole, with what introduces the second and later tables."""
    return "".join([*map(occurrences.layout, report.boxes), *map(tables.layout, report.tables)])


def _tables(report: Report, room: int) -> list[str]:
    """Lay out all tables in ``room`` bytes: each gets an equal share, what one leaves over goes to the others."""
    shown = [table for table in report.tables if table.fails or table.rows or table.edits]
    laid_out = [_introduced(index, table) for index, table in enumerate(shown)]
    shares = _shares([_size(lines) for lines in laid_out], room)
    return [line for lines, share in zip(laid_out, shares, strict=True) for line in _cut(lines, share, report.archive)]


def _introduced(index: int, table: Table) -> list[str]:
    machine = sections.hardware(table.machine or "") if index else None
    return tables.lines(replace(table, machine=machine))


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    shares = [0] * len(sizes)
    by_size = sorted(range(len(sizes)), key=sizes.__getitem__)
    for served, index in enumerate(by_size):
        shares[index] = min(sizes[index], max(room, 0) // (len(sizes) - served))
        room -= shares[index]
    return shares


def _cut(lines: list[str], room: int, archive: str) -> list[str]:
    if _size(lines) <= room:
        return lines
    notice = f"[… {{}} more lines in the machine-readable report {archive}".rstrip() + "]"
    room -= _size([notice.format(len(lines))])
    ends = itertools.accumulate(_size([line]) for line in lines)
    kept = sum(end <= room for end in ends)
    return [*lines[:kept], notice.format(len(lines) - kept)]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
