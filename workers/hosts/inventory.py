"""What a machine is, measured: processors, packages, nodes, memory, microcode; and what it should be.

Pure: the texts of the machine's files in, facts out. Sockets are counted from physical package ids, never from NUMA
nodes: sub-NUMA clustering makes two packages four nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bisectbot.errors import UserError

Files = Mapping[str, str]
"""Texts of a machine's files by their path."""

CPU = "/sys/devices/system/cpu"
FILES = (
    "/proc/version",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random/boot_id",
    f"{CPU}/online",
    f"{CPU}/smt/control",
    f"{CPU}/intel_pstate/no_turbo",
    f"{CPU}/cpufreq/boost",
    f"{CPU}/cpu*/topology/physical_package_id",
    f"{CPU}/cpu*/cpufreq/scaling_governor",
    f"{CPU}/cpu*/thermal_throttle/*_throttle_count",
    f"{CPU}/vulnerabilities/*",
    "/sys/devices/system/node/online",
    "/sys/devices/system/node/node*/numastat",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
"""Globs of what is read of a machine before and after a run, in one look."""

MEMORY_SHORT = 0.85
"""A kernel keeps some of a machine's memory for itself: less than this share of it and some is missing."""


@dataclass(frozen=True)
class Inventory:
    """``memory_kib`` is what the kernel manages; 0 and "" are what it does not tell."""

    release: str = ""
    cmdline: str = ""
    cpus: int = 0
    sockets: int = 0
    nodes: int = 0
    memory_kib: int = 0
    microcode: str = ""
    brand: str = ""


@dataclass(frozen=True)
class Expected:
    """What the host file says; 0 and "" are not compared."""

    cpus: int = 0
    sockets: int = 0
    nodes: int = 0
    memory_kib: int = 0
    microcode: str = ""
    brand: str = ""


def measure(files: Files) -> Inventory:
    """The inventory that a look at `FILES` tells."""
    cpuinfo = files.get("/proc/cpuinfo", "")
    packages = {text.strip() for path, text in files.items() if path.endswith("/topology/physical_package_id")}
    version = files.get("/proc/sys/kernel/osrelease") or _group(r"^Linux version (\S+)", files.get("/proc/version", ""))
    return Inventory(
        release=version.strip(),
        cmdline=files.get("/proc/cmdline", "").strip(),
        cpus=count_list(files.get(f"{CPU}/online", "")) or len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)),
        sockets=len(packages),
        nodes=count_list(files.get("/sys/devices/system/node/online", "")),
        memory_kib=int(_group(r"^MemTotal:\s*(\d+) kB", files.get("/proc/meminfo", "")) or 0),
        microcode=_group(r"^microcode\s*:\s*(\S+)", cpuinfo),
        brand=_group(r"^model name\s*:\s*(.+)$", cpuinfo).strip(),
    )


def expected(facts: Mapping[str, object]) -> Expected:
    """What a host group's file says (LKP's keys: nr_cpu, nr_socket, nr_node, memory, ucode, brand).

    Raises UserError for a value that is none.
    """
    try:
        return Expected(
            cpus=int(str(facts.get("nr_cpu", 0))),
            sockets=int(str(facts.get("nr_socket", 0))),
            nodes=int(str(facts.get("nr_node", 0))),
            memory_kib=_kib(str(facts.get("memory", "0"))),
            microcode=str(facts.get("ucode", "")),
            brand=str(facts.get("brand", "")),
        )
    except ValueError as error:
        raise UserError(f"a host group's file: {error}") from None


def missing(want: Expected, have: Inventory) -> list[str]:
    """What the machine has too little of: it came up by half, or parts of it are broken."""
    found = [
        f"{got} of {asked} {what}"
        for what, asked, got in (
            ("CPUs", want.cpus, have.cpus),
            ("sockets", want.sockets, have.sockets),
            ("nodes", want.nodes, have.nodes),
        )
        if asked and got and got < asked
    ]
    if want.memory_kib and have.memory_kib < MEMORY_SHORT * want.memory_kib:
        found.append(f"{have.memory_kib / 2**20:.1f} of {want.memory_kib / 2**20:.1f} GiB of memory")
    return found


def mismatches(want: Expected, have: Inventory) -> list[str]:
    """Where the host file does not fit the machine, a line each, with what to write there."""
    pairs = (
        ("nr_cpu", want.cpus, have.cpus),
        ("nr_socket", want.sockets, have.sockets),
        ("nr_node", want.nodes, have.nodes),
        ("ucode", want.microcode, have.microcode),
        ("brand", want.brand, have.brand),
    )
    found = [f"{key} is {asked}, the machine has {got}" for key, asked, got in pairs if asked and got and asked != got]
    short = want.memory_kib and have.memory_kib
    if short and not MEMORY_SHORT * want.memory_kib <= have.memory_kib <= 1.02 * want.memory_kib:
        found.append(f"memory is {want.memory_kib / 2**20:.0f}G, the machine has {have.memory_kib / 2**20:.0f}G")
    return found


def throttled(files: Files) -> int:
    """How often processors were slowed for heat since the machine started."""
    counts = (text.strip() for path, text in files.items() if path.endswith("_throttle_count"))
    return sum(int(count) for count in counts if count.isdigit())


def count_list(text: str) -> int:
    """How many a list of the kernel's holds: ``0-3,8`` are five. 0 for one that cannot be read."""
    total = 0
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match:
            return 0
        total += int(match[2] or match[1]) - int(match[1]) + 1
    return total


def _kib(memory: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", memory, re.IGNORECASE)
    if not match:
        raise ValueError(f"memory: {memory!r} is no size like 256G")
    return int(float(match[1]) * {"": 1 / 1024, "K": 1, "M": 2**10, "G": 2**20, "T": 2**30}[match[2].upper()])


def _group(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""
