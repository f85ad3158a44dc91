"""Speed and memory of every parser: `python -m tests.benchmarks.results [--quick] [NAME …]`.

Each reads a log of the given size that repeats the parser's golden log and is never in memory as a whole. Printed are
megabytes of log per second of CPU, and the peak of Python's memory while reading (measured in a second, shorter pass:
tracing slows it down), for two sizes: a parser in bounded memory has the same peak for both.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Iterator

from bisectbot.results.parsers import RawLog, names, parse
from tests.results.parsers.logs import samples

MEGABYTE = 1_000_000


class Repeated:
    """A log of ``size`` bytes or a little more, made of copies of one."""

    def __init__(self, sample: bytes, size: int) -> None:
        self.bytes = 0
        self._lines = self._repeat(sample.splitlines(keepends=True), size)

    def _repeat(self, lines: list[bytes], size: int) -> Iterator[bytes]:
        while self.bytes < size:
            for line in lines:
                self.bytes += len(line)
                yield line

    def readline(self, _size: int, /) -> bytes:
        return next(self._lines, b"")


def speed(name: str, size: int) -> float:
    """Megabytes per second of CPU."""
    log = Repeated(samples()[name], size)
    start = time.process_time()
    for _ in parse(name, RawLog(log)):
        pass
    return log.bytes / MEGABYTE / (time.process_time() - start)


def peak(name: str, size: int) -> float:
    """Largest amount of memory in use, in megabytes."""
    log = Repeated(samples()[name], size)
    tracemalloc.start()
    for _ in parse(name, RawLog(log)):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / MEGABYTE


def main() -> None:
    """Print one line per parser."""
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.results")
    arguments.add_argument("--quick", action="store_true", help="2 MB of log each instead of 50")
    arguments.add_argument("names", nargs="*", default=names())
    chosen = arguments.parse_args()
    size = 2 * MEGABYTE if chosen.quick else 50 * MEGABYTE
    traced = size // 10
    sys.stdout.write(f"{'parser':16} {'MB/s':>8} {f'peak, {traced / 2e6:.1f} MB':>14} {f'{traced / 1e6:.1f} MB':>8}\n")
    for name in chosen.names:
        for _ in parse(name, RawLog.of(samples()[name])):  # imports and compiles before we measure
            pass
        half, whole = peak(name, traced // 2), peak(name, traced)
        sys.stdout.write(f"{name:16} {speed(name, size):8.1f} {half:11.3f} MB {whole:5.3f} MB\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
