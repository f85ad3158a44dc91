"""Parsers of raw logs, one file each, registered by name.

A parser is a module with ``parse(raw: RawLog) -> Iterator[Pair]``: it reads the log's lines once, in order, and
yields (key, value) pairs as soon as they are known, in the order in which LKP prints them. It raises nothing,
whatever the bytes: what it cannot read it reports with ``raw.warn`` and goes on. A key `#` marks a comment, an
empty one a blank line; only the kernel log has them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from bisectbot.errors import UserError
from bisectbot.results.parsers.rawlog import Notice, Pair, RawLog

__all__ = ["PARSERS", "Notice", "Pair", "RawLog", "as_line", "names", "parse"]

# monitor or benchmark → (module in this package, one line for `bisectbot parse --list`)
PARSERS: dict[str, tuple[str, str]] = {
    "aim9": ("aim9", "aim9's result table"),
    "boot-time": ("boot_time", "kernel log with printk times, /proc/uptime"),
    "cpuidle": ("cpuidle", "cpuN.STATE.time and .usage, at start and end"),
    "dmesg": ("dmesg", "serial console or kernel log: error ids"),
    "fio": ("fio", "fio --output-format=json"),
    "hackbench": ("hackbench", "hackbench's output, any number of runs"),
    "interrupts": ("interrupts", "snapshots of /proc/interrupts"),
    "iostat": ("iostat", "iostat -tkx"),
    "kmsg": ("dmesg", "/dev/kmsg or dmesg: error ids"),
    "last_state": ("last_state", "how the run ended, as `key: 1` lines"),
    "meminfo": ("meminfo", "snapshots of /proc/meminfo"),
    "mpstat": ("mpstat", "mpstat -o JSON"),
    "numa-meminfo": ("numa_meminfo", "snapshots of every node's meminfo"),
    "numa-numastat": ("node_counters", "snapshots of every node's numastat"),
    "numa-vmstat": ("node_counters", "snapshots of every node's vmstat"),
    "perf-bench": ("perf_bench", "perf bench, any number of runs"),
    "perf-c2c": ("perf_c2c", "perf c2c report --stats"),
    "perf-profile": ("perf_profile", "perf report --children -g folded,callee"),
    "perf-sched": ("perf_sched", "perf sched timehist"),
    "perf-stat": ("perf_stat", "perf stat -I 1000, with or without -x ,"),
    "proc-vmstat": ("proc_vmstat", "snapshots of /proc/vmstat"),
    "sched_debug": ("sched_debug", "snapshots of the scheduler's debug file"),
    "slabinfo": ("slabinfo", "snapshots of /proc/slabinfo"),
    "softirqs": ("interrupts", "snapshots of /proc/softirqs"),
    "stderr": ("stderr", "what the job wrote to stderr"),
    "stress-ng": ("stress_ng", "stress-ng --metrics"),
    "sysbench": ("sysbench", "sysbench's report"),
    "time": ("gnu_time", "GNU time -v; also TEST.time"),
    "turbostat": ("turbostat", "turbostat's summary of the whole run"),
    "unixbench": ("unixbench", "UnixBench's report"),
    "uptime": ("uptime", "/proc/uptime at the end of the run"),
    "vmstat": ("vmstat", "vmstat --timestamp -n 1"),
    "will-it-scale": ("will_it_scale", "runtest.py's CSV"),
}


def names() -> list[str]:
    """Give all parsers' names, sorted."""
    return sorted(PARSERS)


def parse(name: str, raw: RawLog) -> Iterator[Pair]:
    """Yield (key, value) of ``raw`` as the parser ``name`` reads it; ``aim9.time`` and the like are ``time``.

    Values are text as printed: an integer, or a decimal number (in the unit of the raw log unless the parser says
    otherwise). Warnings gather in ``raw.warnings``. Raises UserError for a name that is not registered.
    """
    known = "time" if name.endswith(".time") else name
    if known not in PARSERS:
        raise UserError(f"no parser named {name!r}: one of {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{PARSERS[known][0]}")
    pairs: Iterator[Pair] = module.parse(raw)
    return pairs


def as_line(key: str, value: str) -> str:
    """Lay a pair out as LKP prints it."""
    if key == "#":
        return f"# {value}"
    return f"{key}: {value}" if key else ""
