"""How long a table of 2,000 rows takes: two commits, 20 runs each, 3,000 stats.

    python -m tests.benchmarks.table [--quick]

Prints CPU seconds (the best and the median of several) and the process's largest resident size.
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import time

from bisectbot.results.compare import compare
from bisectbot.results.matrix import MatrixSet, RunMatrix
from bisectbot.results.table import layout

RUNS, STATS, ROWS = 20, 3000, 2000
PROGRAMS = (
    "will-it-scale",
    "meminfo",
    "numa-vmstat.node0",
    "proc-vmstat",
    "sched_debug.cfs_rq:/",
    "perf-stat.i",
    "perf-profile.calltrace.cycles-pp",
    "perf-profile.children.cycles-pp",
    "perf-profile.self.cycles-pp",
)


def matrices(rng: random.Random) -> MatrixSet:
    """Make two commits' runs of which ``ROWS`` stats moved by a tenth and the others not at all."""
    frames = "do_syscall_64.entry_SYSCALL_64_after_hwframe.__x64_sys_openat.do_sys_openat2"
    names = [f"{PROGRAMS[i % len(PROGRAMS)]}.some_counter_{i}.{frames if i % 3 == 0 else 'avg'}" for i in range(STATS)]

    def runs(factor: float) -> RunMatrix:
        levels = [10_000.0 * (1 + i % 7) * (factor if i < ROWS else 1) for i in range(STATS)]
        rows = {
            n: tuple(level * rng.gauss(1, 0.01) for _ in range(RUNS)) for n, level in zip(names, levels, strict=True)
        }
        return RunMatrix(RUNS, rows)

    return MatrixSet({"5" * 40: runs(1.0), "a" * 40: runs(1.1)}, {"test": "made", "tbox_group": "lkp-abc-2sp1"})


def main(repeats: int) -> None:
    made = matrices(random.Random(1))
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        text = layout(compare(made))
        seconds.append(time.process_time() - start)
    rows = sum("some_counter" in line for line in text.splitlines())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"2 x {RUNS} runs of {STATS} stats: {rows} rows, {len(text) / 1000:.0f} kB")
    print(f"CPU: best {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s of {repeats} (goal: under 0.3 s)")
    print(f"largest resident size of the process: {peak:.0f} MB (goal: under 200 MB)")


if __name__ == "__main__":
    main(3 if "--quick" in sys.argv else 15)
