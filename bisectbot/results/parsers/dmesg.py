"""dmesg and kmsg: error ids of a kernel log (serial console, `dmesg`, `dmesg -x`, or /dev/kmsg). 1 each; times in s.

`ID` is 1 when an error was seen, `message:ID` is its first line, `pattern:ID` a regular expression that finds it in
another log, `timestamp:ID` when it was first seen. Functions where it happened are `RIP:`, `EIP:` and `calltrace:` ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.error_id import LONGEST, error_id, search_pattern
from bisectbot.results.parsers.rawlog import Pair, RawLog

MOST_IDS = 10_000

_LEVEL = re.compile(r"(?:kern|user|daemon|syslog)\s*:(\w+)\s*:\s*")
_DEV_KMSG = re.compile(r"(\d{1,4}),\d{1,20},(\d{1,20}),[^;]{0,40};", re.ASCII)
_STAMP = re.compile(r"(?:<\d+>)?\[\s*(\d{1,9}\.\d{1,9})\](?:\[[^\]]{0,40}\])?\s?", re.ASCII)
_ERROR_LEVELS = frozenset(("err", "crit", "alert", "emerg"))
_KERN_ERR = 3  # as /dev/kmsg numbers levels; smaller is worse

_TROUBLE = (
    r"\bBUG: |\bBUG at |\bBUG \S+ \(|\bPANIC: early exception|\bOops\b|Kernel panic|\bgeneral protection fault",
    r"\bWARNING: (?:CPU: |at |\S+:\d+ at |kernel stack|stack recursion|stack going|kmalloc bug)",
    r"\bWARNING: (?:possible |inconsistent |suspicious |bad unlock|lock held|held lock|nested lock)",
    r"\b(?:divide error|double fault|invalid opcode|stack segment|int3|page fault|Machine check): ",
    r"INFO: (?:task \S+ blocked|rcu|possible |inconsistent |suspicious |trying to register|Slab |Object )",
    r"INFO: \S+ (?:self-)?detected stall|detected hard LOCKUP|lockup suspected|RT throttling activated",
    r"\b(?:UBSAN|KASAN|KCSAN|KMSAN|KFENCE|NETDEV WATCHDOG|DEBUG_LOCKS_WARN_ON)\b",
    r"Out of memory|out of memory|invoked oom-killer|page allocation failure|\bMem-Info\b",
    r"inconsistent \{[\w-]+|list_(?:add|del) corruption|refcount_t: |stack-protector: |stack overflow",
    r"new suspected memory leaks|unreferenced object|Bad (?:page|rss-counter)|nobody cared|\[Hardware Error\]",
    r"\.[ch]:\d+ (?:suspicious rcu_|RCU-list traversed|rcu_\w+\(\) used illegally)|is trying to release lock \(",
    r"segfault at \S+ ip \S+ sp |tried to init an initialized object|cannot create duplicate filename",
    r"\bBad pagetable: |Unable to (?:handle kernel|mount root)|Cannot open root device|Attempted to kill init",
    r"\bEXT4-fs (?:\(\S+\): )?error|\bXFS.* (?:Internal error|Assertion failed)",
    r"\bBTRFS(?: \S+)?: (?:error|critical)",
    r"I/O error,? (?:dev|on dev)|Auto-configuration of network failed|kernel hang in|reboot-without-warning",
)
_OOPS = re.compile("|".join(_TROUBLE))
_POINTER = re.compile(r"\b([RE]IP): (?:[0-9a-f]{4}:)?(\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: (\[\w+\]))?")
_FRAME = re.compile(r"\s*(\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")


class _Seen:
    """The ids so far, each with the time of its first line."""

    def __init__(self) -> None:
        self.times: dict[str, str | None] = {}

    def add(self, name: str, message: str, time: str | None, pattern: str = "") -> Iterator[Pair]:
        if not name or name in self.times or len(self.times) >= MOST_IDS:
            return
        if not self.times:
            yield "boot_failures", "1"
        self.times[name] = time
        message, pattern = message.strip(), pattern or search_pattern(message)
        yield "", ""
        yield "#", pattern
        yield name, "1"
        yield f"message:{name}", message
        yield f"pattern:{name}", pattern


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield each error once, in the order of the log: an empty pair, a comment (key `#`), then what the module says."""
    seen = _Seen()
    in_trace = False
    for line in raw:
        level_is_error, time, message = _split(line)
        if in_trace and (frame := _FRAME.match(message)):
            yield from seen.add(f"calltrace:{frame[1]}", message, time, frame[1])
            in_trace = False
        elif pointer := _POINTER.search(message):
            kind, function, module = pointer.groups()
            yield from seen.add(f"{kind}:{function}{module or ''}", message, time, f"{kind}: .*{function}")
        elif level_is_error or _OOPS.search(message):
            yield from seen.add(error_id(message), message, time)
        if message.lstrip().startswith(("Call Trace:", "Call trace:")):
            in_trace = True
    if len(seen.times) >= MOST_IDS:
        raw.warn(f"more than {MOST_IDS:,} different errors: the rest is left out")
    for name, first in seen.times.items():
        if first is not None:
            yield f"timestamp:{name}", first


def _split(line: str) -> tuple[bool, str | None, str]:
    """Split a line into: whether its level is an error, its time in seconds as printed, and the message."""
    line = line[: 2 * LONGEST]
    if match := _DEV_KMSG.match(line):
        micros = int(match[2])
        time = f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
        return int(match[1]) % 8 <= _KERN_ERR, time, line[match.end() :][:LONGEST]
    is_error = False
    if match := _LEVEL.match(line):
        is_error = match[1] in _ERROR_LEVELS
        line = line[match.end() :]
    if match := _STAMP.match(line):
        return is_error, match[1], line[match.end() :][:LONGEST]
    return is_error, None, line[:LONGEST]
