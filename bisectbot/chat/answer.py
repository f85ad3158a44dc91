"""What is answered, before a transport gives it its own looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CALLS = re.compile(r"(?<![\w.+-])@(?=[\w*])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Answer:
    """One line that says it, more lines, a table, a link. All of it is plain text, whatever a commit's title holds.

    ``private`` is for the asker's eyes alone where a transport can; ``follow`` is the request (``Q12``) whose end is
    to be told in the same place.
    """

    head: str
    lines: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    link: str = ""
    private: bool = False
    follow: str = ""

    def safe(self) -> Answer:
        """The same with nothing in it that calls people or moves a terminal's cursor."""
        return Answer(
            _safe(self.head),
            tuple(_safe(line) for line in self.lines),
            tuple(tuple(_safe(cell) for cell in row) for row in self.table),
            self.link,
            self.private,
            self.follow,
        )


def _safe(text: str) -> str:
    """``text`` on one line; an @ that begins a word is kept apart from it."""
    return _CALLS.sub("@\u200b", _CONTROL.sub(" ", text.replace("\n", " ")))


def columns(table: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of equal columns, numbers to the right."""
    if not table:
        return []
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return ["  ".join(_cell(cell, width, at) for at, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
            for row in table]  # fmt: skip


def _cell(cell: str, width: int, at: int) -> str:
    return cell.ljust(width) if at == 0 else cell.rjust(width)


def plain(answer: Answer) -> str:
    """As text of several lines: mail, terminals."""
    answer = answer.safe()
    parts = [answer.head, *answer.lines, *columns(answer.table), *([answer.link] if answer.link else [])]
    return "\n".join(parts)
