"""UnixBench: one test of the Byte benchmark, ``nr_task`` copies, ``runtime`` seconds in iterations of ten."""

from __future__ import annotations

from workers.benchmarks.base import Known

UNIXBENCH = Known("unixbench", './Run "$test" -c "$nr_task" -i $((runtime / 10))', {"runtime": "300", "nr_task": "1"})
