"""Benchmark adapters, one a file. A new one: a file with a class like `Benchmark`, and its line here."""

from __future__ import annotations

from bisectbot.errors import InfraError
from workers.benchmarks.aim9 import AIM9
from workers.benchmarks.base import Benchmark, Known, Output
from workers.benchmarks.command import CommandBenchmark
from workers.benchmarks.hackbench import HACKBENCH
from workers.benchmarks.lkp import LkpBenchmark
from workers.benchmarks.perf_bench import PERF_BENCH
from workers.benchmarks.unixbench import UNIXBENCH
from workers.benchmarks.will_it_scale import WILL_IT_SCALE

__all__ = ["BENCHMARKS", "Benchmark", "Output", "find"]

KNOWN: tuple[Known, ...] = (AIM9, HACKBENCH, PERF_BENCH, UNIXBENCH, WILL_IT_SCALE)
BENCHMARKS: dict[str, Benchmark] = {
    "command": CommandBenchmark(),
    "lkp": LkpBenchmark(),
    **{known.name: known for known in KNOWN},
}


def find(name: str) -> Benchmark:
    """The adapter called ``name``. Raises InfraError: this worker is older than the job."""
    if name not in BENCHMARKS:
        raise InfraError(f"no benchmark {name!r} in this worker; there are: {', '.join(sorted(BENCHMARKS))}")
    return BENCHMARKS[name]
