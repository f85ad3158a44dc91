"""Where a line of a job came from: job files are assembled from many files, and an error names the right one."""

from __future__ import annotations

from dataclasses import dataclass

from bisectbot.errors import UserError

MAX_MESSAGE = 400  # characters: what is quoted from a file may be anything


@dataclass(frozen=True, slots=True)
class Origin:
    """A line (counted from 1) of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, what: str) -> UserError:
        """The error that says ``what`` is wrong here, in one line of bearable length."""
        line = " ".join(what.split())
        return UserError(f"{self}: {line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + '…'}")

    def down(self, lines: int) -> Origin:
        return Origin(self.file, self.line + lines)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text without its end, and where it was read."""

    text: str
    origin: Origin
