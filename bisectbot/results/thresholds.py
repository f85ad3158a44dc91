"""Which changes are too small to be listed: LKP's rule of ratio, size and difference."""

from __future__ import annotations

import re

from bisectbot.results.stat_names import is_metric

MOST_RATIO = 5.0

# The first pattern that matches the whole name decides. In the stat's own unit.
_THRESHOLDS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), threshold)
    for pattern, threshold in (
        (r".*\.time\.(elapsed_time.*|system_time|user_time)", 10),
        (r".*\.time\.(.*context_switches|.*_page_faults|swaps)", 1000),
        (r".*\.time\.(file_system_|socket_messages_).*", 10000),
        (r".*vmstat.*nr_.*", 100),
        (r"dd\..*_time", 10),
        (r"interrupts\..*", 100),
        (r"iostat\..*\.avgrq-sz", 200),
        (r"iostat\..*\.([rw]_)?await", 50),
        (r"iostat\..*\.util", 10),
        (r"iostat\..*\.[rw]/s", 50),
        (r"iostat\..*\.[rw]kB/s", 100),
        (r"perf-c2c\.HITM\.total", 3000),
        (r"proc-vmstat\.(allocstall.*|compact_(fail|stall)|htlb_buddy_alloc_fail|pgmigrate_fail)", 100),
        (r"proc-vmstat\.kswapd_.*_wmark_hit_quickly", 100),
        (r"sysbench-fileio\.latency_95th_ms", 10),
        (r"vmstat\.cpu\.(id|us|wa|st)", 10),
        (r"vmstat\.cpu\.sy", 50),
        (r"vmstat\.(io|system)\..*", 100),
        (r"xfstests\..*\.seconds", 10),
    )
)


def is_small(name: str, low: float, high: float, largest: float) -> bool:
    """Say whether a change is too small to tell.

    ``low`` and ``high`` are the two sides' medians, ``largest`` the largest value of either side, in the stat's
    unit. A profile's rows are never small.
    """
    if name.startswith("perf-profile."):
        return False
    ratio = min(high / low, MOST_RATIO) if low > 0 else MOST_RATIO
    if ratio <= 1.01 or (ratio <= 1.05 and not is_metric(name)):
        return True
    for pattern, threshold in _THRESHOLDS:
        if pattern.fullmatch(name):
            return largest < threshold or high - low < threshold / 2
    return _small_by_program(name, high - low, largest)


def _small_by_program(name: str, difference: float, largest: float) -> bool:
    if name.startswith("iostat"):
        return largest <= 1
    if name.startswith(("pagetypeinfo", "buddyinfo", "slabinfo")):
        return difference <= 100
    if name.startswith("proc-vmstat") or "meminfo" in name:
        return largest <= 1000
    if name.startswith(("interrupts", "softirqs")):
        return largest <= 10000
    return False
