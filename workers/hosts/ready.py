"""Ready before measuring: what is set on a machine and read back, and what disturbs a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bisectbot import config
from bisectbot.errors import InfraError
from bisectbot.jobs.assignment import Job
from workers.hosts.inventory import CPU, Expected, Files, measure, mismatches, throttled

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SMI = "smi"
"""Key, among a machine's files, of the count of system management interrupts (MSR 0x34) where it can be read."""


@dataclass(frozen=True)
class Ready:
    """How a machine is to be: "" and None are left as found."""

    governor: str = ""
    turbo: bool | None = None
    smt: bool | None = None
    thp: str = ""


class Knobs(Protocol):
    """A machine whose files can be looked at and written: a box over ssh, or this one."""

    def look(self) -> dict[str, str]: ...
    def write(self, values: Sequence[tuple[str, str]]) -> None: ...


def wanted(settings: config.ReadySpec, job: Job) -> Ready:
    """What the host's file says; the job's own governor is stronger."""
    governor = dict((*job.parameters, *job.params)).get("cpufreq_governor", "")
    return Ready(governor or settings.governor, settings.turbo, settings.smt, settings.thp)


def make_ready(name: str, machine: Knobs, want: Ready, expect: Expected) -> dict[str, str]:
    """Set what ``want`` says on the machine ``name`` and read it back: its files as they are now.

    Raises InfraError for a machine that is not as it should be, or not what its group's file says.
    """
    machine.write(writes(want, machine.look()))
    files = machine.look()
    if complaints := unready(want, files):
        raise InfraError(f"{name} is not ready: {'; '.join(complaints)}")
    if wrong := mismatches(expect, measure(files)):
        raise InfraError(f"{name} is not what hosts/*.yaml says: {'; '.join(wrong)}")
    return files


def writes(want: Ready, files: Files) -> list[tuple[str, str]]:
    """What to write where, (path, value), for a machine whose files are these; only what differs."""
    found = [(path, want.governor) for path in _governors(files)] if want.governor else []
    if want.turbo is not None:
        found += _turbo(want.turbo, files)
    if want.smt is not None and f"{CPU}/smt/control" in files:
        found.append((f"{CPU}/smt/control", "on" if want.smt else "off"))
    if want.thp and THP in files:
        found.append((THP, want.thp))
    return [(path, value) for path, value in found if value != _value(path, files)]


def unready(want: Ready, files: Files) -> list[str]:
    """What is not as it should be, a line each; read back after the writes. A machine without a knob cannot be asked
    for it: a governor on a machine without frequency scaling is a complaint, as is all else that is missing."""
    found = [f"{path} is {_value(path, files)}, not {value}" for path, value in writes(want, files)]
    if want.governor and not _governors(files):
        found.append(f"no frequency governor to set to {want.governor}")
    if want.turbo is not None and not _turbo(want.turbo, files):
        found.append("no switch for turbo")
    if want.smt is not None and _value(f"{CPU}/smt/control", files) in {"", "notsupported", "notimplemented"}:
        if want.smt:
            found.append("no switch for SMT")
        else:
            found = [line for line in found if "smt/control" not in line]  # off it is
    if want.thp and THP not in files:
        found.append("no switch for transparent huge pages")
    return found


def disturbances(before: Files, after: Files) -> list[str]:
    """What happened to the machine between two looks that makes its numbers worthless, a line each."""
    found = []
    if (heat := throttled(after) - throttled(before)) > 0:
        found.append(f"processors were slowed for heat {heat} times")
    if SMI in before and SMI in after and (count := int(after[SMI]) - int(before[SMI])) > 0:
        found.append(f"{count} system management interrupts")
    boot = "/proc/sys/kernel/random/boot_id"
    if before.get(boot) != after.get(boot):
        found.append("the machine was booted anew")
    return found


def parse_look(text: str) -> dict[str, str]:
    """The output of ``grep -H '' FILES``, lines ``path:content``, as texts by path."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        path, colon, content = line.partition(":")
        if colon and (path.startswith("/") or path == SMI):
            found.setdefault(path, []).append(content)
    return {path: "\n".join(lines) + "\n" for path, lines in found.items()}


def _governors(files: Files) -> list[str]:
    return sorted(path for path in files if path.endswith("/cpufreq/scaling_governor"))


def _turbo(on: bool, files: Files) -> list[tuple[str, str]]:
    if f"{CPU}/intel_pstate/no_turbo" in files:
        return [(f"{CPU}/intel_pstate/no_turbo", "0" if on else "1")]
    if f"{CPU}/cpufreq/boost" in files:
        return [(f"{CPU}/cpufreq/boost", "1" if on else "0")]
    return []


def _value(path: str, files: Files) -> str:
    """A file's value; of a choice like ``always [madvise] never`` the one that is chosen."""
    text = files.get(path, "").strip()
    chosen = text.partition("[")[2].partition("]")[0]
    return chosen or text
