"""Any program that prints numbers: the job's command, its parameters as environment variables."""

from __future__ import annotations

from bisectbot.jobs.assignment import Job
from bisectbot.results.output import Reading, read_kpis
from workers.benchmarks.base import Output, variables
from workers.hosts.base import Program
from workers.process import Ended


class CommandBenchmark:
    """``command: ./bench -t $nr_task`` with ``parameters: {nr_task: 4}``. A printed ``ops`` of testcase ``demo`` is
    the stat ``demo.ops``, unless ``ops`` is itself the name of a KPI."""

    def program(self, job: Job) -> Program:
        return Program(job.command, variables(job), job.timeout_s, job.output_limit)

    def read(self, job: Job, ended: Ended, output: Output) -> Reading:
        def full_name(name: str) -> str:
            return name if name.startswith(f"{job.testcase}.") else f"{job.testcase}.{name}"

        text = output.stdout.read_text(encoding="utf-8", errors="replace")
        return read_kpis(text, ended.status, [kpi.name for kpi in job.kpis], full_name=full_name)
