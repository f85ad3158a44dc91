"""The text of a mail: clean lines, and never a raw diff where tools would take it for a patch."""

from __future__ import annotations

import quopri
import re

QUOTE = "| "
LONGEST_LINE = 998  # octets, RFC 5322

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_STARTS = ("diff --git ", "diff -", "Index: ", "GIT binary patch")
_HEADER = (
    *_STARTS, "--- ", "+++ ", "@@ ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ",
    "similarity index ", "dissimilarity index ", "rename ", "copy ", "Binary files ", "\\ No newline",
)  # fmt: skip


def clean(text: str) -> str:
    """``text`` as a mail body: LF line ends, no control characters but tabs, diffs quoted, one line end at the end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    kept = [_printable(line) for line in lines]
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(_without_raw_diffs(kept)) + "\n"


def encode(text: str) -> tuple[str, bytes]:
    """Content-Transfer-Encoding and octets (LF line ends) of a cleaned body; readable in an archive where it can be."""
    octets = text.encode()
    if max(map(len, octets.split(b"\n"))) > LONGEST_LINE:
        return "quoted-printable", quopri.encodestring(octets)
    return ("7bit" if octets.isascii() else "8bit"), octets


def _printable(line: str) -> str:
    kept = "".join(
        c if c == "\t" or not (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0) else "\N{REPLACEMENT CHARACTER}" for c in line
    )
    return kept.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_raw_diffs(lines: list[str]) -> list[str]:
    """Quote each diff at column 0: b4, patchwork and syzbot would take it for a patch."""
    out: list[str] = []
    inside = False
    old = new = 0  # lines that the current hunk still owes
    for number, line in enumerate(lines):
        if old > 0 or new > 0:
            mark = line[:1] or " "
            if mark in " +-\\":
                old -= mark in " -"
                new -= mark in " +"
                out.append(QUOTE + line)
                continue
            old = new = 0
        following = lines[number + 1] if number + 1 < len(lines) else ""
        inside = _opens(line, following) or (inside and line.startswith(_HEADER))
        if hunk := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in hunk.groups())
        out.append(QUOTE + line if inside else line)
    return out


def _opens(line: str, following: str) -> bool:
    if line.startswith("--- "):
        return following.startswith("+++ ")
    return line.startswith(_STARTS) or bool(_HUNK.match(line))
