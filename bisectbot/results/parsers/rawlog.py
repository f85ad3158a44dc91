"""A raw log as a parser sees it: lines in bounded memory, and a place to say what could not be read."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import zstandard

Pair: TypeAlias = tuple[str, str]

READ_ERRORS = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
LONGEST_LINE = 1 << 16  # bytes; /proc/interrupts of 4,096 CPUs fits, binary junk does not
KEPT_WARNINGS = 100

# At most 40 digits and a small exponent: every number that matches is finite, and so are its square and product.
_NUMBER = re.compile(r"[-+]?\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Notice:
    """What could not be read, and where: ``line`` counts from 1."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


class Readable(Protocol):
    """What a raw log is read from: any binary file, compressed or not."""

    def readline(self, size: int, /) -> bytes: ...


class RawLog:
    """Lines of a binary stream, decoded and without their end, read once; ``exact`` keeps LKP's quirks.

    Never holds more than one line. Lines over 64 KiB are skipped with a warning; bytes that are no UTF-8 become
    U+FFFD. ``warnings`` holds the first hundred, ``unread`` counts all.
    """

    def __init__(self, stream: Readable, *, exact: bool = False) -> None:
        self.exact = exact
        self.warnings: list[Notice] = []
        self.unread = 0
        self.line = 0
        self._stream = stream
        self._time: float | None = None

    @classmethod
    def of(cls, raw: bytes | str, *, exact: bool = False) -> RawLog:
        """Wrap a log that is in memory already."""
        return cls(io.BytesIO(raw.encode() if isinstance(raw, str) else raw), exact=exact)

    def __iter__(self) -> Iterator[str]:
        try:
            while raw := self._stream.readline(LONGEST_LINE):
                self.line += 1
                if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                    self._skip_rest(raw)
                    continue
                yield raw.decode("utf-8", "replace").rstrip("\r\n")
        except READ_ERRORS as error:  # a cut or broken compressed file
            self.warn(f"the rest cannot be read: {error}")

    def pieces(self) -> Iterator[str]:
        """Like iterating, but for formats in which lines mean nothing: a longer line comes in pieces."""
        try:
            while raw := self._stream.readline(LONGEST_LINE):
                self.line += raw.endswith(b"\n")
                yield raw.decode("utf-8", "replace")
        except READ_ERRORS as error:
            self.warn(f"the rest cannot be read: {error}")

    def _skip_rest(self, raw: bytes) -> None:
        while raw and not raw.endswith(b"\n"):
            raw = self._stream.readline(LONGEST_LINE)
        self.warn("skipped: longer than 64 KiB")

    def warn(self, what: str) -> None:
        """Say what was not read at the current line."""
        self.unread += 1
        if len(self.warnings) < KEPT_WARNINGS:
            self.warnings.append(Notice(self.line, what))

    def warn_line(self, line: str) -> None:
        """Say that this line was not understood; a blank one needs no word."""
        if line and not line.isspace():
            self.warn(f"not understood: {line[:80]!r}")

    def time_of(self, line: str) -> str | None:
        """Give the time of a `time: N` line (seconds, as printed), else None; warn when the clock went back."""
        words = line.split() if "time:" in line else []
        if len(words) != 2 or words[0] != "time:" or not is_number(words[1]):
            return None
        now = float(words[1])
        if self._time is not None and now < self._time:
            self.warn(f"the clock went back from {self._time:.12g} to {words[1]}")
        self._time = now
        return words[1]


def is_number(text: str) -> bool:
    """Whether the text is a finite decimal number of sane length, so that int() or float() takes it."""
    return _NUMBER.fullmatch(text) is not None


def is_count(text: str) -> bool:
    """Whether the text is a whole number of at most 20 digits, as the kernel prints its counters."""
    return len(text) <= 20 and text.isdigit() and text.isascii()


def number(text: str) -> int | float:
    """Read text that ``is_number``: an int unless it has a point or an exponent, as LKP does."""
    return float(text) if "." in text or "e" in text or "E" in text else int(text)


def printed(value: float) -> str:
    """Print as Ruby does, LKP's language: shortest digits, always a point in a float (`1.0e+16`, `2.5e-07`)."""
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
