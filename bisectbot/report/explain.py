"""What might explain a change: what only one side's kernel logged, was configured with, or did with memory.

Nothing here proves anything; it shows the reader where to look, or says that these places show nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bisectbot.report.model import Difference, Explanation, Moved
from bisectbot.results.stat_names import program
from bisectbot.results.table import Row, Table


@dataclass(frozen=True, slots=True)
class Traces:
    """What one side left behind: the kernel log of each boot, the kconfig, the kernel command line; or nothing."""

    boot_logs: tuple[str, ...] = ()
    config: str = ""
    command_line: str = ""


def explain(
    parent: Traces,
    culprit: Traces,
    table: Table | None = None,
    touched: Collection[str] = (),
    measured: Iterable[str] = (),
) -> Explanation:
    """Compare two sides' traces, and look in the table of averages for memory that moved between NUMA nodes and for
    the functions that the commit ``touched``.

    ``measured`` names all stats, also those that did not change and are in no table: ``Explanation.compared`` says
    only what was there to be compared.
    """
    rows = table.rows if table else ()
    programs = {program(name) for name in [*measured, *(row.name for row in rows)]}
    profile = [row for row in rows if row.name.startswith("perf-profile.")]
    numa = [row for row in rows if row.name.startswith(("numa-numastat.", "numa-meminfo."))]
    looked_at = [
        ("boot logs", bool(parent.boot_logs and culprit.boot_logs)),
        ("kernel configs", bool(parent.config and culprit.config)),
        ("kernel command lines", bool(parent.command_line and culprit.command_line)),
        ("NUMA counters", not programs.isdisjoint(("numa-numastat", "numa-meminfo"))),
        ("the profile of the functions that the commit touches", bool(touched) and "perf-profile" in programs),
    ]
    there = {name for name, was_there in looked_at if was_there}
    found = [
        ("boot logs", _logs(parent.boot_logs, culprit.boot_logs)),
        ("kernel configs", _words(_config(parent.config), _config(culprit.config))),
        ("kernel command lines", _words(_command_line(parent.command_line), _command_line(culprit.command_line))),
        ("NUMA counters", _placement(numa)),
    ]
    differences = [Difference(name, *sides) for name, sides in found if name in there and any(sides)]
    compared = tuple(name for name, was_there in looked_at if was_there)
    return Explanation(tuple(differences), tuple(_moved(profile, touched)), compared)


def touched_functions(patch: str) -> frozenset[str]:
    """Name the functions that a unified diff changes, as far as its hunks' headings tell."""
    return frozenset(match[1] for match in _HUNK.finditer(patch))


_HUNK = re.compile(r"^@@ [^@\n]*@@ (?:[\w *]*[ *])?(\w+)\(", re.MULTILINE)

Sides = tuple[tuple[str, ...], tuple[str, ...]]

# Before the message: the level, as dmesg or the log daemon writes it, the time since boot, the task or CPU.
_STAMP = re.compile(r"^(?:<\d+>)?(?:\w+ +:\w+ +: )?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")
# Differ in every boot or with every build, and say nothing.
_ALWAYS = re.compile(
    r"Linux version|(?:Kernel )?[Cc]ommand line|Memory: |Freeing |Write protecting|random: |tsc: |Calibrating|audit: "
    r"|percpu: |ftrace: allocat|Loaded X\.509|\S*: *Loaded X\.509|PM: |input: |printk: |initcall|BTF|RAMDISK: |x86/mm: "
    r"|Initmem|  node +\d|  DMA|systemd\[|rtc|clocksource: |sched_clock: |ACPI: .* 0x"
)
_ADDRESS = re.compile(
    r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+")


def _logs(parent: Sequence[str], culprit: Sequence[str]) -> Sides:
    """Give the lines that every log of one side has and none of the other; as they stand in the side's first log.

    With a single boot on a side, numbers may differ by chance and are left out of the comparison.
    """
    if not (parent and culprit):
        return (), ()
    by_chance = min(len(parent), len(culprit)) == 1
    keys = [[_messages(log, by_chance) for log in side] for side in (parent, culprit)]
    ever = [{key for log in side for key in log} for side in keys]
    always = [set.intersection(*(set(log) for log in side)) for side in keys]
    first, second = (
        tuple(line for key, line in keys[side][0].items() if key in always[side] and key not in ever[1 - side])
        for side in (0, 1)
    )
    return first, second


def _messages(log: str, mask_numbers: bool) -> dict[str, str]:
    """Map each message, without what differs by nature, to its line; in the order of the log."""
    messages: dict[str, str] = {}
    for line in log.splitlines():
        message = _STAMP.sub("", line).strip()
        if not message or _ALWAYS.match(message):
            continue
        key = _ADDRESS.sub("#", message)
        messages.setdefault(_NUMBER.sub("#", key) if mask_numbers else key, line.rstrip())
    return messages


def _words(parent: Collection[str], culprit: Collection[str]) -> Sides:
    """Give what only one side has, in order."""
    return tuple(w for w in parent if w not in culprit), tuple(w for w in culprit if w not in parent)


def _config(text: str) -> dict[str, None]:
    """Give the options that are set, in order; an unset one is as good as absent."""
    options = (line.strip() for line in text.splitlines())
    return dict.fromkeys(o for o in options if o.startswith("CONFIG_") and not o.startswith("CONFIG_LOCALVERSION"))


# What names the run and not the kernel's behaviour.
_RUN_ONLY = (
    *("BOOT_IMAGE=", "initrd=", "root=", "ip=", "user="),
    *("RESULT_ROOT=", "job=", "commit=", "branch=", "max_uptime="),
)


def _command_line(text: str) -> dict[str, None]:
    """Give the words that shape the kernel, without those that name the run."""
    return dict.fromkeys(word for word in text.split() if not word.startswith(_RUN_ONLY))


_NODE = re.compile(r"[\w-]+\.(node\d+)\.(.+)")


def _placement(rows: Iterable[Row]) -> Sides:
    """Give counters that rose on some nodes and fell on others, a line each: memory moved between the nodes."""
    counters: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for row in rows:
        if match := _NODE.fullmatch(row.name):
            counters[match[2]].append((match[1], row))
    moved = {counter: nodes for counter, nodes in counters.items() if _both_ways([row for _, row in nodes])}
    first, second = (
        tuple(
            f"{counter}: {', '.join(f'{node} {int(row.cells[side].mean or 0)}' for node, row in nodes)}"
            for counter, nodes in moved.items()
        )
        for side in (0, 1)
    )
    return first, second


def _both_ways(rows: Sequence[Row]) -> bool:
    changes = [row.cells[1].change or 0 for row in rows]
    return min(changes) < 0 < max(changes)


def _moved(profile: Iterable[Row], touched: Collection[str]) -> Iterable[Moved]:
    for row in profile:
        _, kind, _, function = (*row.name.split(".", 3), "", "", "")[:4]
        parent, culprit = row.cells[0].mean, row.cells[1].mean
        if kind in {"self", "children"} and function in touched and parent is not None and culprit is not None:
            yield Moved(row.name, parent, culprit)
