"""What every benchmark adapter can do; an adapter is one file beside this one, registered in `workers.benchmarks`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bisectbot.jobs.assignment import Job
from bisectbot.results.delivery import Outcome
from bisectbot.results.logs import read_logs
from bisectbot.results.output import SKIP, Reading
from workers.hosts.base import Program
from workers.process import Ended


@dataclass(frozen=True)
class Output:
    """What a run left: what it printed, and the ``files`` of its results folder by name."""

    stdout: Path
    stderr: Path
    files: Mapping[str, Path] = field(default_factory=dict)


class Benchmark(Protocol):
    """From a job to a program, and from what it printed to numbers. No state, no I/O but the output's files."""

    def program(self, job: Job) -> Program:
        """What to run on the host."""

    def read(self, job: Job, ended: Ended, output: Output) -> Reading:
        """What a program that ended by itself said about the job's KPIs."""


def variables(job: Job) -> dict[str, str]:
    """The job's parameters as shell variables; of a job file's they hold what they come to on the host: 64 for 50% of
    128 CPUs."""
    return {re.sub(r"\W", "_", name): value for name, value in (*job.parameters, *job.params)}


class Known:
    """A benchmark whose output a parser of its name reads: a shell line is all that is left to tell.

    The line sees the job's parameters as variables, runs in the benchmark's own folder if the job has a source, and
    prints what the parser knows, nothing else.
    """

    def __init__(self, name: str, line: str, defaults: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._line = line
        self._defaults = dict(defaults or {})

    def program(self, job: Job) -> Program:
        told = {**self._defaults, **variables(job)}
        return Program(job.command or self._line, told, job.timeout_s, job.output_limit)

    def read(self, job: Job, ended: Ended, output: Output) -> Reading:
        if ended.status == SKIP:
            return Reading(Outcome.UNTESTABLE, message=f"{self.name} said skip (exit status {SKIP})")
        if ended.status:
            message = f"{self.name} ended with status {ended.status}: {last_line(output.stderr)}"
            return Reading(Outcome.FAILED, message=message)
        found = read_logs({self.name: output.stdout})
        return chosen(job, found.stats, self.name, output)


def chosen(job: Job, stats: Mapping[str, int | float], name: str, output: Output) -> Reading:
    """The job's KPIs out of ``stats``; one that is missing is a failed run."""
    missing = [kpi.name for kpi in job.kpis if kpi.name not in stats]
    if missing:
        have = ", ".join(sorted(stats)[:5]) or f"no number; its last line: {last_line(output.stdout)}"
        return Reading(Outcome.FAILED, message=f"{name} printed no {missing[0]}, but {have}")
    samples = tuple((kpi.name, float(stats[kpi.name])) for kpi in job.kpis)
    wanted = {kpi.name for kpi in job.kpis}
    return Reading(
        Outcome.DONE, samples, tuple((key, float(value)) for key, value in stats.items() if key not in wanted)
    )


def last_line(file: Path) -> str:
    """The last line of a log that says something, cut to 200 characters."""
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n") if file.exists() else []
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it printed nothing")
