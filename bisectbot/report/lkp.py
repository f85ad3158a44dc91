"""Kernel test robot mails, 2016 to today, read into the record that we send ourselves.

Their wording changed over the years and people write into them, so every fact is looked for on its own and one
that is missing leaves its field empty. The least that makes a report is a stat and a commit, or a comparison table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bisectbot.errors import UserError
from bisectbot.report.mailfile import MailFile, layers, quoted_depth, read_mails, unquoted
from bisectbot.report.model import (
    Commit,
    Difference,
    Direction,
    Explanation,
    Finding,
    Machine,
    Report,
    Still,
    Tree,
)
from bisectbot.results import stat_names
from bisectbot.results.occurrences import Box, find_boxes
from bisectbot.results.parsers.error_id import error_id
from bisectbot.results.table import Row, Table
from bisectbot.results.table_reader import find_tables, wrapped_rows_joined

_MARKS = re.compile(r"commit: [0-9a-f]{7,40}|={60,}|.{0,60}(?:noticed an? [-+\d.]+%|we noticed )|-{16} -{26,27}")
_NOTICED = re.compile(r"noticed\s+an?\s+([-+]?\d+(?:\.\d+)?)%\s+(regression|improvement)\s+of\s+(\S+)")
_FAILED = re.compile(r'noticed\s+"([^"\n]+)"\s+on:|^FYI, we noticed\s+(\S+)\s+due\s+to\s+commit\b', re.MULTILINE)
_COMMIT = re.compile(
    r'^commit:[ \t]+([0-9a-f]{7,40})\s*?(?:\s\("((?:[^\n]|\n(?!\n)){0,400}?)"\))?[ \t]*$', re.MULTILINE
)
_TREE = re.compile(r"^(?:url: )?((?:https?|git|ssh)://\S+)(?: (\S+))?$", re.MULTILINE)
_STILL = re.compile(r"^\[(\D[^\[\]\n]*?) on +(\S[^\[\]\n]*?) *([0-9a-f]{12,40})?\]$", re.MULTILINE)
_PATCH = re.compile(r"^(?:base|patch link|patch subject|version): .+$", re.MULTILINE)
_ARCHIVE = re.compile(r"available at:\s+(https?://\S+)")
_THREAD = re.compile(r"^\|? ?(?:Closes|Link): (\S+)", re.MULTILINE)
_BOOT_LOG = re.compile(
    r"^for this commit[^\n]*:\n\n((?:[^\n]+\n)+)\nfor (?:its )?parent[^\n]*:\n\n((?:[^\n]+\n)+)", re.MULTILINE
)
_REPRODUCE = re.compile(r"^To reproduce:\n\n((?: {8}[^\n]*\n|\n)+)", re.MULTILINE)
_PARAMETERS = re.compile(r"^(?:with following )?parameters:\n\n?((?:[ \t]+[^\s:]+:[^\n]*\n)+)", re.MULTILINE)
_BOX_ROW = re.compile(r"[|>] (testcase: change|test machine|test parameters|) *\| (.*?) *\|")
_BOX_CHANGE = re.compile(r"(\S+?): (\S+)\s+(?:([-+]?\d+(?:\.\d+)?)%\s+)?(regression|improvement|\S+)")

_SUBJECT_TREE = re.compile(r"\[([^\]:\s]+):([^\]\s]+)\]")
_SUBJECT_AREA = re.compile(r"\[([^\]]+)\](?: \[confidence:[^\]]*\])?\s+[0-9a-f]{10,12}\b")
_SUBJECT = re.compile(r"\b([0-9a-f]{10,12}):\s+(\S+)(?:\s+([-+]?\d+(?:\.\d+)?)%\s+(regression|improvement))?\s*$")
_SUBJECT_FAILURE = re.compile(r"\b([0-9a-f]{10,12}):\s+(\S.*?)(?:\s+#\w+)*\s*$")
_RESULT = re.compile(r"\S+\.(?:fail|error|warn)")

# Paragraphs that every mail has: what is left of the text after them was written by somebody for this report.
_STANDARD = re.compile(
    r"(?:hello|hi|greetings?)\b[^\n]{0,40}$|(?:kernel test robot|fyi, we|bisectbot) noticed\b|commit: "
    r"|https?://\S+ \S+$"
    r"|\[(?:still|test failed|regression)|(?:in |on )?(?:testcase|test machine|config|compiler|url|base|patch link"
    r"|patch subject|version|test-description|test-url): |with following parameters|parameters:|[ \t]|\+-|\|"
    r"|in addition to that|if you fix|details are|-{20,}|best regards|thanks,|to reproduce|the kernel config"
    r"|besides below detailed|for this commit|for parent|\[ *\d+\.\d+\]|kern  :|>|on .* wrote:|\(please refer",
    re.IGNORECASE,
)


def parse_report(data: bytes, where: str = "mail") -> Report:
    """Read the first report in a mail, an mbox or a pasted text. Raises UserError if there is none."""
    for mail in read_mails(data):
        report = _report(mail)
        if report:
            return report
    raise UserError(f"{where}: no report in it: expected what was noticed on which commit, or a comparison table")


def _report(mail: MailFile) -> Report | None:
    lines = mail.text.split("\n")
    depth = quoted_depth(mail.text, _MARKS)
    found = _find_tables(lines)
    tables = tuple(each.table for each in found)
    headed = [each.table for each in found if each.table.columns[0].label]
    headed = [each.table for each in found if each.table in headed and each.depth == depth] or headed
    inside = {number for each in found for number in each.lines}
    outside = "".join(
        f"{line}\n" for number, line in wrapped_rows_joined(unquoted(lines, depth)) if number not in inside
    )
    commit = _commit(outside, mail.subject, headed)
    boxes = tuple(_boxes(lines))
    finding = _finding(outside, mail.subject, headed or tables, boxes)
    if commit is None or not finding.stat:
        return None
    return Report(
        commit,
        finding,
        _parent(headed),
        _tree(outside, mail.subject),
        _first(_SUBJECT_AREA, mail.subject),
        still=tuple(Still(*(group or "" for group in match.groups())) for match in _STILL.finditer(outside)),
        also=tuple(_also(outside, headed)),
        explanation=_explanation(outside),
        notes=tuple(_notes(outside)),
        tables=tables,
        boxes=boxes,
        archive=_first(_ARCHIVE, outside),
        thread=_first(_THREAD, outside),
        reproduce=_reproduce(outside),
        sender=mail.sender,
        date=mail.date,
        message_id=mail.message_id,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A table, how deep it was quoted, and the numbers of its lines in the mail."""

    table: Table
    depth: int
    lines: Sequence[int]


def _find_tables(lines: Sequence[str]) -> list[_Found]:
    """Find the tables of everybody who wrote in a mail, in its order: a reply adds its own to the one it quotes."""
    found: list[_Found] = []
    for depth, layer in layers(lines).items():
        numbered = wrapped_rows_joined(layer)
        for each in find_tables([line for _, line in numbered]):
            numbers = [number for number, _ in numbered[each.start : each.end]]
            found.append(_Found(each.table, depth, numbers))
    return sorted(found, key=lambda each: each.lines[0])


def _boxes(lines: Sequence[str]) -> Iterator[Box]:
    """Read the boxes of failures; their lines stay in the text, where nothing else is read from them."""
    for layer in layers(lines).values():
        yield from find_boxes([line for _, line in layer])


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return (match[1] or "") if match else ""


def _commit(text: str, subject: str, tables: Sequence[Table]) -> Commit | None:
    if match := _COMMIT.search(text):
        return Commit(match[1], " ".join((match[2] or "").split()))
    if match := _SUBJECT_FAILURE.search(subject):
        return Commit(match[1])
    return _column_commit(tables[0], -1) if tables else None


def _parent(tables: Sequence[Table]) -> Commit | None:
    return _column_commit(tables[0], 0) if tables else None


def _column_commit(table: Table, index: int) -> Commit:
    column = table.columns[index]
    match = re.fullmatch(r'(\S+) \("(.*)"\)', column.text or "")
    return Commit(column.label, match[2] if match else "")


def _tree(text: str, subject: str) -> Tree:
    """Take the address from the line below the commit's, and the tree's name from the subject."""
    start = _COMMIT.search(text)
    address = _TREE.search(text, start.end() if start else 0, (start.end() + 600) if start else len(text))
    name = _SUBJECT_TREE.search(subject)
    branch = (address[2] or "") if address else ""
    return Tree(address[1] if address else "", branch or (name[2] if name else ""), name[1] if name else "")


# Axes that say where and with what a job ran; the others are its parameters.
_SURROUNDINGS = frozenset(("compiler", "kconfig", "rootfs", "tbox_group", "testcase"))


def _finding(text: str, subject: str, tables: Sequence[Table], boxes: Sequence[Box]) -> Finding:
    """Read the headline and its job; what the mail does not say of the job, the first table's axes do."""
    axes = dict(tables[0].axes) if tables else {}
    machine = _folded_value(text, r"(?:on )?test machine")
    parameters = _parameters(text) or tuple((k, v) for k, v in axes.items() if k not in _SURROUNDINGS)
    return replace(
        _headline(text, subject, tables, boxes),
        testcase=_value(text, "(?:in )?testcase") or axes.get("testcase", ""),
        machine=Machine(machine, axes.get("tbox_group", "")) if machine or "tbox_group" in axes else None,
        parameters=parameters,
        config=_value(text, "config") or axes.get("kconfig", ""),
        compiler=_value(text, "compiler") or axes.get("compiler", ""),
    )


def _headline(text: str, subject: str, tables: Sequence[Table], boxes: Sequence[Box]) -> Finding:
    if match := _NOTICED.search(text):
        stat = match[3].rstrip(",:")
        return Finding(stat, Direction(match[2]), _signed(float(match[1]), stat, tables))
    if match := _FAILED.search(text):
        return Finding(match[1] or match[2], Direction.FAILURE)
    if match := _SUBJECT.search(subject):
        if match[4]:
            return Finding(match[2], Direction(match[4]), _signed(float(match[3]), match[2], tables))
        return Finding(match[2], Direction.FAILURE)
    if match := _SUBJECT_FAILURE.search(subject):
        return Finding(_error_id(match[2]), Direction.FAILURE)
    return _headline_of(tables, boxes)


def _error_id(words: str) -> str:
    """Name what failed: of several tests the first; an error that was folded, or told in words, as one id."""
    first = words.split(maxsplit=1)[0]
    return first if _RESULT.fullmatch(first) else error_id(words)


def _headline_of(tables: Sequence[Table], boxes: Sequence[Box]) -> Finding:
    """Take a mail without a sentence of its own by its table: its first benchmark row, or its first failure."""
    rows = [row for table in tables for row in table.rows]
    results = [row for row in rows if stat_names.is_benchmark(row.name)] or rows
    if results:
        return Finding(results[0].name, Direction.CHANGE, results[0].cells[-1].change)
    fails = [row.name for table in tables for row in table.fails]
    fails += [name for box in boxes for name, _ in box.rows if not name.startswith("boot_")]
    return Finding(fails[0] if fails else "", Direction.FAILURE)


def _signed(percent: float, stat: str, tables: Sequence[Table]) -> float:
    """Give the change its sign: since November 2024 a mail tells the size only, but the table has it."""
    rows: list[Row] = [row for table in tables for row in table.rows if row.name == stat]
    change = next((cell.change for row in rows for cell in row.cells[1:] if cell.change), 0.0)
    return -abs(percent) if change < 0 else percent


def _value(text: str, key: str) -> str:
    return _first(re.compile(rf"^{key}: (\S+)", re.MULTILINE), text)


def _folded_value(text: str, key: str) -> str:
    """Read a value that a mail reader may have folded: it goes on until the next key or an empty line."""
    match = re.search(rf"^{key}: (.+(?:\n(?!with following|\S+:|[ \t]*\n|\t).+)*)", text, re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    block = _first(_PARAMETERS, text)
    pairs = (line.strip().partition(":") for line in block.split("\n") if line.strip())
    return tuple((key, value.strip()) for key, _, value in pairs)


def _also(text: str, tables: Sequence[Table]) -> Iterator[Finding]:
    """Read the box of further tests: a finding per block, whose host group the table of the same place names."""
    groups = {index: dict(table.axes).get("tbox_group", "") for index, table in enumerate(tables)}
    blocks: list[list[tuple[str, str]]] = []
    for match in _BOX_ROW.finditer(text):
        if match[1] == "testcase: change":
            blocks.append([])
        if blocks:
            blocks[-1].append((match[1], match[2]))
    for index, block in enumerate(blocks, start=1):
        change = _BOX_CHANGE.fullmatch(block[0][1])
        if change is None:
            continue
        measured = change[4] in set(Direction)
        machine = next((text for key, text in block if key == "test machine"), "")
        pairs = [text.partition("=") for key, text in block[1:] if key != "test machine"]
        yield Finding(
            change[2],
            Direction(change[4]) if measured else Direction.FAILURE,
            float(change[3]) if change[3] else None,
            change[1],
            Machine(machine, groups.get(index, "")) if machine else None,
            tuple((key, value) for key, _, value in pairs if key),
        )


def _explanation(text: str) -> Explanation | None:
    match = _BOOT_LOG.search(text)
    if match is None:
        return None
    sides = [tuple(side.rstrip("\n").split("\n")) for side in match.groups()]
    return Explanation((Difference("boot logs", parent=sides[1], culprit=sides[0]),))


def _reproduce(text: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(" " * 8) for line in _first(_REPRODUCE, text).rstrip("\n").split("\n") if line)


def _notes(text: str) -> Iterator[str]:
    """Give the paragraphs that somebody wrote for this mail, and facts about a mailed patch."""
    head = re.split(
        r"^(?:If you fix the issue|Details are|Disclaimer|-- $|To reproduce)", text, maxsplit=1, flags=re.MULTILINE
    )[0]
    yield from (match[0] for match in _PATCH.finditer(head))
    for paragraph in re.split(r"\n\s*\n", head.strip("\n")):
        if paragraph.strip() and not _STANDARD.match(paragraph):
            yield paragraph.strip("\n")
