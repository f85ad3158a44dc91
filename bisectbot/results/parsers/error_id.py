"""Error ids: what stays of an error message when everything that differs from run to run is taken out.

`watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [usemem:1234]` and the same on another CPU are one error,
`BUG:soft_lockup-CPU##stuck_for#s![usemem:#]`.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

LONGEST = 1000  # characters of a message that count

_ADDRESS = r"(?:0x)?[0-9a-f]+"
# Where a message's variable part begins in the middle, only the constant one counts. The first that matches wins.
_WELL_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(BUG: soft lockup - CPU#\d+ stuck for \d+s! \[[^\]/]*)(?:/\w+)?([^\]]*\])", r"\1\2"),
        (r"BUG: workqueue lockup - pool", r"\g<0>"),
        (r"BUG: spinlock [a-z ]+ on CPU", r"\g<0>"),
        (r"BUG: unable to handle kernel", r"\g<0>"),
        (r"BUG: unable to handle page fault for address", r"\g<0>"),
        (r"BUG: scheduling while atomic", r"\g<0>"),
        (r"BUG: Bad page (?:state|map) in process", r"\g<0>"),
        (r"BUG: non-zero \w+ on freeing mm", r"\g<0>"),
        (r"(BUG: sleeping function called from invalid context at \S+).*", r"\1"),
        (r"INFO: task \S+ blocked for more than (\d+) seconds", r"INFO: task blocked for more than \1 seconds"),
        (r"INFO: \S+ (?:self-)?detected stalls? on (?:CPUs/tasks|tasks|CPU)", r"\g<0>"),
        (
            rf"WARNING: (?:CPU: \d+ PID: \d+ )?at (\S+:\d+) (\w[\w.]*)(?:\+{_ADDRESS}/{_ADDRESS})?(?: (\[\w+\]))?.*",
            r"WARNING: at \1 \2 \3",
        ),
        (
            rf"WARNING: (\S+:\d+) at (\w[\w.]*)\+{_ADDRESS}/{_ADDRESS}(?: (\[\w+\]))?.*",
            r"WARNING: at \1 \2 \3",
        ),
        (r"WARNING: (?:possible|inconsistent|suspicious) [A-Za-z ]*(?:detected|state|usage)", r"\g<0>"),
        (r"Oops: (?!Oops)[A-Za-z][^\[]*\[#\d+\][ A-Z]*", r"\g<0>"),
        (r"(?<=non-)canonical address \w+: \w+ \[#\d+\]", r"\g<0>"),
        (r"(?:Oops|general protection fault|invalid opcode|divide error|double fault)\b[^\[]*\[#\d+\]", r"\g<0>"),
        (r"(?:stack segment|Bad pagetable)\b[^\[]*\[#\d+\]", r"\g<0>"),
        (r"PANIC: early exception", r"\g<0>"),
        (r"invoked oom-killer: gfp_mask=0x", r"\g<0>"),
        (r"page allocation failure: order:\d+, mode:.*", r"\g<0>"),
        (r"BUG: KASAN: [\w -]+ in \w[\w.]*", r"\g<0>"),
        (r"(?:BUG: )?(?:KASAN|KFENCE|KCSAN|KMSAN): .*", r"\g<0>"),
        (r"\bXFS.*: (Assertion failed):.*", r"\1"),
        (r"refcount_t: (?!underflow)(.*)", r"\1"),
        (r"segfault at \S+ ip \S+ sp \S+ error.*", "segfault at ip sp error"),
        (r"sysfs: cannot create duplicate filename", r"\g<0>"),
        (r"is trying to release lock \([^)]*\) at", r"\g<0>"),
        (r"ACPI (?:BIOS )?Error(?: \(bug\))?(?=:)", r"\g<0>"),
        (r"(?:BUG|INFO|WARNING|UBSAN|Kernel panic|kernel BUG at)\b.*", r"\g<0>"),
    )
)
_FLAG_FREE = "gfp_mask=0x"  # the one constant that ends in the beginning of a number

_VARIABLE = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"\+0x[0-9a-f]+/{_ADDRESS}", ""),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?\b", "#"),
        (r"\bv?\d+\.\d+(?:\.\d+)+(?:-[\w.+-]+)?|-v\d+\.", "#"),
        (
            r"\b(?:eth|ata|fd|hd[a-z]|sd[a-z]+|vd[a-z]+|nvme|loop|md|ram|pmem|sr|nbd|zram|ttyS|usb|scsi|host)(?=\d)",
            r"\g<0>@",
        ),
        (r"@\d+(?:[np.]\d+)*", "#"),
        (r"\b(?:0x[0-9a-f]+|[0-9a-f]{40}|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{8})\b", "#"),
        (r"\b\d+(?:\.\d+)*", "#"),
    )
)
_BLANKS_AT_PUNCTUATION = re.compile(
    rf"\s+(?=[{re.escape(string.punctuation)}])|(?<=[{re.escape(string.punctuation)}])\s+"
)
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d[0-9a-f]*\b|\d+)")
_SPECIAL = re.compile(r"[\\.^$*+?{}()|\[\]]")
_TRAILING = "#:.,;!?-_/'\"` "
_LEADING = "/"


@lru_cache(maxsize=1024)  # logs repeat themselves
def error_id(message: str) -> str:
    """Name the error: no blanks, numbers as `#`, no offsets, no punctuation at the end. May be empty."""
    text, _ = _naming_part(message)
    if not text.endswith(_FLAG_FREE):
        for pattern, replacement in _VARIABLE:
            text = pattern.sub(replacement, text)
    text = _BLANKS_AT_PUNCTUATION.sub("", text)
    return "_".join(text.split()).rstrip(_TRAILING).lstrip(_LEADING)


def search_pattern(message: str) -> str:
    """Give a regular expression that finds this error in another log: the naming part with its numbers left open."""
    _, part = _naming_part(message)
    return _NUMBER.sub(".*", _SPECIAL.sub(r"\\\g<0>", part))


def _naming_part(message: str) -> tuple[str, str]:
    """What names the error, and where it stands in the message; a message that is not well known names itself."""
    message = message[:LONGEST].strip()
    for pattern, replacement in _WELL_KNOWN:
        if match := pattern.search(message):
            return match.expand(replacement), match[0].strip()
    return message, message
