"""Measure real A/A series on this machine: the same little programs again and again, nothing changes.

``python -m tests.benchmarks.detection.measure FOLDER [REPEATS]`` writes one CSV per benchmark (CPU nanoseconds, one
repeat a line). The ones in tests/detect/data were made by it on a busy two-core virtual machine at nice 19.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

BLOCK = b"bisect" * 20_000
NUMBERS = np.random.default_rng(1).standard_normal(60_000)


def digest() -> None:
    hashlib.sha256(BLOCK).hexdigest()


def ordering() -> None:
    np.sort(NUMBERS)


def dictionary() -> None:
    sum({number: number for number in range(12_000)}.values())


def system_calls() -> None:
    for _ in range(3_000):
        os.getppid()


def process() -> None:
    subprocess.run(["/bin/true"], check=True)


BENCHMARKS: tuple[Callable[[], None], ...] = (digest, ordering, dictionary, system_calls, process)


def _spent() -> int:
    """CPU nanoseconds of this process and its children: on a busy machine the clock on the wall measures the others."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round(1e9 * (children.ru_utime + children.ru_stime))


def main(folder: str, repeats: str = "3000") -> None:
    """Interleave all benchmarks, so that each series sees the whole time."""
    taken: dict[str, list[int]] = {benchmark.__name__: [] for benchmark in BENCHMARKS}
    for _ in range(int(repeats)):
        for benchmark in BENCHMARKS:
            start = _spent()
            benchmark()
            taken[benchmark.__name__].append(_spent() - start)
        time.sleep(0.02)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, values in taken.items():
        Path(folder, f"{name}.csv").write_text("ns\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
