"""Facts of a machine whose change makes numbers incomparable: a new one opens a new epoch of the host."""

from __future__ import annotations

import re
from collections.abc import Callable

Read = Callable[[str], str]
"""The text of a small file of the machine, "" if there is none."""


def environment(read: Read) -> tuple[tuple[str, str], ...]:
    """Processor, microcode, CPUs on line, memory (GiB), frequency governor, turbo, SMT, mitigations, clock source.

    The kernel that is measured does not belong here: it is what differs. A driver that boots none adds its own.
    """
    cpuinfo = read("/proc/cpuinfo")
    cpu = "/sys/devices/system/cpu"
    facts = {
        "cpu": _field(cpuinfo, "model name"),
        "microcode": _field(cpuinfo, "microcode"),
        "cpus": read(f"{cpu}/online").strip(),
        "memory_gib": _gib(_field(read("/proc/meminfo"), "MemTotal")),
        "governor": read(f"{cpu}/cpu0/cpufreq/scaling_governor").strip(),
        "no_turbo": read(f"{cpu}/intel_pstate/no_turbo").strip(),
        "smt": read(f"{cpu}/smt/control").strip(),
        "thp": read("/sys/kernel/mm/transparent_hugepage/enabled").strip(),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip(),
    }
    return tuple(sorted((name, value) for name, value in facts.items() if value))


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _gib(memory: str) -> str:
    """Rounded: how much of its memory a kernel reports differs a little from version to version."""
    match = re.match(r"(\d+) kB", memory)
    return str(round(int(match[1]) / 2**20)) if match else ""
