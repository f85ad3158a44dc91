"""boot-time: the kernel log with printk times, and /proc/uptime at the start of the test. Seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number

_PRINTK = re.compile(r"(?:<\d+>)?(?:kern\s*:\w+\s*:\s*)?\[\s*(\d{1,9}\.\d{1,9})\](?:\[[^\]]*\])?\s*(\S.*)")
_MARKS = (
    ("smp_boot", re.compile(r"Brought up \d+ (?:node|CPU)")),
    ("kernel_boot", re.compile(r"Freeing unused kernel (?:image|memory)|Run /\S+ as init process")),
    ("dhcp", re.compile(r"Sending DHCP requests|IP-Config: Got DHCP|IP-Config: Complete")),
)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield when each stage was first seen: `smp_boot`, `kernel_boot`, `dhcp`; `boot` and `idle` from /proc/uptime."""
    seen: set[str] = set()
    for line in raw:
        words = line.split()
        if len(words) == 2 and all(map(is_number, words)):
            yield "boot", words[0]
            yield "idle", words[1]
        elif match := _PRINTK.match(line):
            for name, mark in _MARKS:
                if name not in seen and mark.search(match[2]):
                    seen.add(name)
                    yield name, match[1]
