"""What a stat's name tells: whose it is, whether it counts failures, whether it is listed at all.

A stat is ``<program>.<key>``. LKP keeps lists of its programs; we keep the short list, of monitors, and take every
other program for a benchmark, so that a benchmark of one's own is treated like LKP's.
"""

from __future__ import annotations

import re

# Programs that watch a run. What they measure describes the run, it is not its result.
_MONITORS = """
bdi_dev_mapping boot-meminfo boot-memory boot-slabinfo boot-time buddyinfo cpufreq-stats cpuidle diskstats dmesg energy
ethtool ftrace heartbeat interrupts iostat kmemleak kmsg last_state latency_stats lock_stat meminfo mpstat nfsstat
numa-meminfo numa-numastat numa-vmstat oom-killer pagetypeinfo perf-c2c perf-profile perf-sched perf-stat pmeter
pmu-tools proc-stat proc-vmstat sched_debug slabinfo softirqs stderr time turbostat uptime vmstat watchdog zoneinfo
"""

# Test suites that pass or fail; what they measure is told from 5 % on, as a monitor's.
_FUNCTIONAL = """
blktests boot cpu-hotplug fwts igt kernel-selftests kselftest ktest kunit kvm-unit-tests libhugetlbfs locktorture ltp
mce-test mdadm-selftests ndctl nvml packetdrill piglit pmdk rcuscale rcutorture refscale suspend syzkaller trinity
xfstests
"""

# Monitors that a table always shows, whatever is denied elsewhere.
_REPORTED = """
boot-meminfo boot-slabinfo boot-time cpuidle iostat lock_stat meminfo mpstat numa-meminfo numa-numastat numa-vmstat
perf-profile perf-stat proc-vmstat sched_debug time turbostat uptime vmstat
"""

MONITORS = frozenset(_MONITORS.split())
FUNCTIONAL = frozenset(_FUNCTIONAL.split())
REPORTED = frozenset(_REPORTED.split())
MEMORY = REPORTED & {"boot-meminfo", "boot-slabinfo", "meminfo", "numa-meminfo", "numa-vmstat", "proc-vmstat"}

_DENIED = re.compile(
    r"(interrupts|softirqs|slabinfo|buddyinfo|pagetypeinfo|zoneinfo|diskstats)\."
    r"|(dmesg|kmsg)\.(boot_failures|timestamp:|bootstage|calltrace)"
    r"|aim7\.(cpu|jti|real)\b"
)

_FAILURE = re.compile(
    r".+killed_by"
    r"|.+\.(error|warn|fail)[^_]*$"
    r"|.+\.pass$"
    r"|(dmesg|kmsg|last_state|stderr)"
    r"|kmemleak.*unreferenced_object"
    r"|xfstests.*fail"
    r"|rcutorture.*rcu_hotplug"
    r"|locktorture.*lock_hotplug"
)
_NO_FAILURE = re.compile(r"\.time\.|\.timestamp:|\.bootstage:")

_METRIC = re.compile(
    r"(boot-time|energy|iostat|perf-stat|pmeter|proc-vmstat|boot-slabinfo)\."
    r"|vmstat\.(cpu|io|swap|system)"
    r"|interrupts\.CAL:Function_call_interrupts"
    r"|perf-c2c\.HITM\.total"
    r"|perf-profile\.children\.cycles-pp\.native_queued_spin_lock_slowpath"
    r"|turbostat\.(%Busy|Bzy_MHz|C1%|C1E%|CorWatt|Pk%pc10|Pkg%pc[2-9]|PkgTmp|PkgWatt|POLL%|RAMWatt|SYS%LPI)$"
    r"|(.*\.)?time..*"
)


def program(name: str) -> str:
    """Give the program that a stat belongs to: what stands before the first dot."""
    return name.partition(".")[0]


def is_benchmark(name: str) -> bool:
    """Say whether the stat is a benchmark's or test suite's own, and not a monitor's."""
    return program(name) not in MONITORS


def is_failure(name: str) -> bool:
    """Say whether the stat counts failures or passes: it is compared by occurrence, not by size."""
    return bool(_FAILURE.match(name)) and not _NO_FAILURE.search(name)


def is_denied(name: str) -> bool:
    """Say whether a table never lists the stat: too noisy to say anything."""
    return bool(_DENIED.match(name)) and program(name) not in REPORTED


def is_metric(name: str) -> bool:
    """Say whether changes from 1 % on are told, as of all benchmark results; other stats need 5 %."""
    owner = program(name)
    return (owner not in MONITORS and owner not in FUNCTIONAL) or bool(_METRIC.match(name))


def is_points(name: str) -> bool:
    """Say whether the stat is a percentage, so that a change is a difference in points."""
    return name.startswith("perf-profile") or name.endswith("%")
