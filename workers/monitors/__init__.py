"""What is recorded beside a run, as LKP's monitors record it: `proc.py` the kernel's counters, `tools.py` programs that
watch, `perf.py` its counters and profiles. A new one is a line in one of them, or a file and a line here.

A monitor's raw log is kept as the artifact of its name; `bisectbot.results.parsers` make numbers of it. Monitors must
not disturb the run and never fail it: what cannot be watched on a host is a line in the log ``monitors``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from bisectbot.errors import InfraError
from bisectbot.jobs.assignment import Job
from workers.hosts.base import Program
from workers.monitors.base import Monitor, Sampled, Snapshot, Tool
from workers.monitors.logs import apart
from workers.monitors.perf import PERF
from workers.monitors.proc import SAMPLED, SNAPSHOTS
from workers.monitors.script import PATIENCE_S, script
from workers.monitors.tools import TIME, TOOLS

__all__ = ["MONITORS", "USUAL", "Monitor", "Sampled", "Snapshot", "Tool", "beside", "find", "logs"]

MONITORS: Mapping[str, Monitor] = {monitor.name: monitor for monitor in (*SAMPLED, *SNAPSHOTS, TIME, *TOOLS, *PERF)}
CHEAP = tuple(monitor.name for monitor in (*SAMPLED, *SNAPSHOTS, TIME))
"""Those of a job that names none and does not say that it runs for `LONG_S` or more: to start the others takes time."""
USUAL = (*CHEAP, "vmstat", "mpstat", "iostat", "turbostat", "perf-stat", "perf-profile")
"""Those of a job that names none. perf-sched and perf-c2c slow down what they watch: they run where a job asks."""
LONG_S = 20

_LENGTHS = ("runtime", "testtime", "period")


def find(names: Iterable[str]) -> list[Monitor]:
    """The monitors of these names. Raises InfraError: this worker is older than the job."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in MONITORS]
    if unknown:
        raise InfraError(f"no monitor {unknown[0]!r} in this worker; there are: {', '.join(MONITORS)}")
    return [MONITORS[name] for name in wanted]


def beside(program: Program, job: Job) -> Program:
    """``program`` with the job's monitors around it."""
    chosen = _chosen(job)
    if not chosen:
        return program
    told = {"BISECTBOT_LINE": _own(program) + program.line, "BISECTBOT_RUNTIME": str(_length(job))}
    environment = {**program.environment, **told}
    return replace(program, line=script(chosen), environment=environment, timeout_s=program.timeout_s + PATIENCE_S)


def _own(program: Program) -> str:
    """Shell lines that give the program its own variables back: the monitors' shell may have used the same names."""
    own = ((name, value) for name, value in sorted(program.environment.items()) if not name.startswith("BISECTBOT_"))
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in own)


def logs(results: Mapping[str, Path], job: Job, folder: Path) -> dict[str, Path]:
    """The raw logs by monitor, from what a run left in its results; some are written into ``folder``."""
    return apart(results, _chosen(job), folder)


def _chosen(job: Job) -> list[Monitor]:
    if job.monitors is not None:
        return find(job.monitors)
    return find(USUAL if _length(job) >= LONG_S else CHEAP)


def _length(job: Job) -> int:
    """How long the job says that it will run, in whole seconds, 0 if it does not say."""
    values = dict((*job.parameters, *job.params))
    text = next((values[name] for name in _LENGTHS if name in values), "")
    return int(text) if text.isdigit() else 0
