"""perf bench: ``test`` is a collection and a benchmark of it, ``sched-pipe``."""

from __future__ import annotations

from workers.benchmarks.base import Known

PERF_BENCH = Known("perf-bench", 'perf bench "${test%%-*}" "${test#*-}" ${loops:+-l "$loops"}', {"loops": ""})
