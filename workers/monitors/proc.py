"""Counters of the kernel's own, from /proc and /sys: they cost a process a second in all."""

from __future__ import annotations

from workers.monitors.base import Sampled, Snapshot

_NODE = "/sys/devices/system/node/node*"

SAMPLED = (
    Sampled("meminfo", "/proc/meminfo"),
    Sampled("proc-vmstat", "/proc/vmstat"),
    Sampled("numa-meminfo", f"{_NODE}/meminfo", nodes=True),
    Sampled("numa-vmstat", f"{_NODE}/vmstat", nodes=True),
    Sampled("numa-numastat", f"{_NODE}/numastat", nodes=True),
)

_CPUIDLE = """for f in /sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*; do
  [ -r "$f/time" ] || continue
  c=${f%/cpuidle/*}; c=${c##*/}
  read -r n < "$f/name"; read -r t < "$f/time"; read -r u < "$f/usage"
  n=$(echo "$n" | tr -c 'A-Za-z0-9_\\n' _)
  echo "$c.$n.time: $t"; echo "$c.$n.usage: $u"
done"""
_SCHED = "cat /sys/kernel/debug/sched/debug 2> /dev/null || cat /proc/sched_debug 2> /dev/null || true"

SNAPSHOTS = (
    Snapshot("interrupts", "cat /proc/interrupts"),
    Snapshot("softirqs", "cat /proc/softirqs"),
    Snapshot("cpuidle", _CPUIDLE),
    Snapshot("slabinfo", "cat /proc/slabinfo", interval=10),
    Snapshot("sched_debug", _SCHED, interval=60),
    Snapshot("boot-time", "dmesg; cat /proc/uptime", end=False, timed=False),
    Snapshot("uptime", "cat /proc/uptime", start=False, timed=False),
)
