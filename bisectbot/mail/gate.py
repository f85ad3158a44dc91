"""The last look at a letter before it may leave: reasons to hold it and tell the operators.

A held mail costs a day, a mail with an empty table on a public list costs the robot its readers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bisectbot.mail import body
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Letter

LARGEST = 64_000  # octets; more than lists take without a moderator
MOST_RECIPIENTS = 12

_MARKS = re.compile(r"\{\{|\}\}|\{%|%\}|<%|%>|\{#\s|\$\{\w+\}|%\(\w+\)s|<no value>")
_NONSENSE = re.compile(r"(?<![\w.])[-+±]?\s*(?:nan|inf)%?(?![\w.:/-])", re.IGNORECASE)
_TABLE_HEAD = re.compile(r"^\s*%stddev\s+%change\s+%stddev")
_TABLE_RULE = re.compile(r"^[\s\\|]+$")
_ROW = re.compile(r"^\s*[-+]?\d")
# Other robots' names and addresses: mail that carries them misleads people and filters.
_OTHERS = re.compile(
    r"kernel test robot|\b0-?day\b(?!s)|\blkp@|\boe-lkp@|intel-lab-lkp|\b01\.org\b",
    re.IGNORECASE,
)
_ROBOT = re.compile(
    r"(?:lkp|oe-lkp|kbuild-all|kbuild)@|(?:syzbot|syzkaller)[\w+.-]*@|bot@kernelci\.org|.*\bci@|(?:no-?reply|do-?not-?reply)@"
)
_INTEL = re.compile(r"\bIntel\b(?!\(R\)|\s*Xeon|\s*Core)")
_QUOTED_TITLE = re.compile(r'\("(?:(?!\n\n).)*?"\)', re.DOTALL)
_FACT_LINE = re.compile(r"\||\s|test machine:|lkp-[\w-]+:")  # quoted logs, tables and machines are indented or barred


@dataclass(frozen=True)
class Sample:
    """One side of a comparison in a letter: how many runs were promised, and how many its numbers rest on."""

    label: str  # "will-it-scale.per_process_ops, parent"
    promised: int
    given: int


@dataclass(frozen=True)
class Contents:
    """What the writer of a letter says it holds. ``tables`` are the rows in each comparison table."""

    tables: tuple[int, ...] = ()
    samples: tuple[Sample, ...] = ()


def reasons_to_hold(letter: Letter, contents: Contents | None = None) -> tuple[str, ...]:
    """Why ``letter`` must not leave, one line each; empty when it may."""
    text = body.clean(letter.body)
    contents = contents or Contents()
    return (
        *_marks(letter.subject, text),
        *_tables(text, contents),
        *_samples(contents),
        *_size(text),
        *_recipients(letter),
        *_identities(letter.subject, text),
    )


def _marks(subject: str, text: str) -> list[str]:
    reasons = []
    for place, part in (("subject", subject), ("body", _QUOTED_TITLE.sub("", text))):
        if mark := _MARKS.search(part):
            reasons.append(f"unresolved template mark {mark.group()!r} in the {place}")
        if number := _NONSENSE.search(part):
            reasons.append(f"{number.group().strip()!r} where a number belongs, in the {place}")
    if not subject.strip():
        reasons.append("empty subject")
    if not text.strip():
        reasons.append("empty body")
    return reasons


def _tables(text: str, contents: Contents) -> list[str]:
    reasons = [
        f"table {number} of {len(contents.tables)} is empty"
        for number, rows in enumerate(contents.tables, 1)
        if not rows
    ]
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not _TABLE_HEAD.match(line):
            continue
        after = [following for following in lines[number + 1 : number + 3] if not _TABLE_RULE.match(following)]
        if not after or not _ROW.match(after[0]):
            reasons.append(f"the table at line {number + 1} of the body has no rows")
    return reasons


def _samples(contents: Contents) -> list[str]:
    return [
        f"{sample.label}: {sample.given} samples where {sample.promised} were promised"
        for sample in contents.samples
        if sample.given < sample.promised
    ]


def _size(text: str) -> list[str]:
    octets = len(text.encode())
    return [f"body of {octets} octets, more than {LARGEST}"] if octets > LARGEST else []


def _recipients(letter: Letter) -> list[str]:
    everybody = (*letter.to, *letter.cc)
    reasons = [] if letter.to else ["nobody in To"]
    if len(everybody) > MOST_RECIPIENTS:
        reasons.append(f"{len(everybody)} recipients, more than {MOST_RECIPIENTS}")
    reasons += [f"another robot's address among the recipients: {box.address}" for box in everybody if is_robot(box)]
    return reasons


def is_robot(box: Mailbox) -> bool:
    """Whether a mailbox belongs to a test robot; robots get no mail from us."""
    return bool(_ROBOT.match(box.key)) or bool(_OTHERS.search(box.name))


def _identities(subject: str, text: str) -> list[str]:
    reasons = [f"names another robot: {found.group()!r}" for found in [_OTHERS.search(f"{subject}\n{text}")] if found]
    own = _own_words(text)
    if found := _INTEL.search(own):
        reasons.append(
            f"names {found.group()} in its own words, line {own.count(chr(10), 0, found.start()) + 1} of the body"
        )
    return reasons


def _own_words(text: str) -> str:
    """``text`` without what it quotes, commit titles and lines that state facts; its lines keep their numbers."""
    unquoted = _QUOTED_TITLE.sub(lambda title: "\n" * title.group().count("\n"), text)
    return "\n".join("" if _FACT_LINE.match(line) else line for line in unquoted.split("\n"))
