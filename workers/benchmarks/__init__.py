"""Benchmark adapters, one a file. A new one: a file with a class like `Benchmark`, and its line here."""

from __future__ import annotations

from bisectbot.errors import InfraError
from workers.benchmarks.base import Benchmark
from workers.benchmarks.command import CommandBenchmark

__all__ = ["BENCHMARKS", "Benchmark", "find"]

BENCHMARKS: dict[str, Benchmark] = {
    "command": CommandBenchmark(),
}


def find(name: str) -> Benchmark:
    """The adapter called ``name``. Raises InfraError: this worker is older than the job."""
    if name not in BENCHMARKS:
        raise InfraError(f"no benchmark {name!r} in this worker; there are: {', '.join(sorted(BENCHMARKS))}")
    return BENCHMARKS[name]
