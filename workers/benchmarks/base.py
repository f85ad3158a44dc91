"""What every benchmark adapter can do; an adapter is one file beside this one, registered in `workers.benchmarks`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bisectbot.jobs.assignment import Job
from bisectbot.results.output import Reading
from workers.hosts.base import Program
from workers.process import Ended


class Benchmark(Protocol):
    """From a job to a program, and from what it printed to numbers. No state, no I/O but the output's files."""

    def program(self, job: Job) -> Program:
        """What to run on the host."""

    def read(self, job: Job, ended: Ended, stdout: Path, stderr: Path) -> Reading:
        """What a program that ended by itself said about the job's KPIs."""
