"""From the raw logs of one run to its stats, in one call."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from bisectbot.results.matrix import Number
from bisectbot.results.parsers import PARSERS, RawLog, parse
from bisectbot.results.series import Series, collect
from bisectbot.results.stats import Window, run_stats

PACKED = (".gz", ".zst", ".xz")


@dataclass(frozen=True, slots=True)
class LogStats:
    """One number per stat, named `<monitor>.<key>`; ``warnings`` say what could not be read."""

    stats: Mapping[str, Number]
    warnings: tuple[str, ...] = ()


def has_parser(name: str) -> bool:
    """Whether logs of this name (a monitor, a benchmark, or `<benchmark>.time`) can be read."""
    return name in PARSERS or name.endswith(".time")


def read_logs(logs: Mapping[str, Path], *, window: Window | None = None, exact: bool = False) -> LogStats:
    """Read the raw logs of one run, name -> file; a name without a parser is left out. Raises nothing for bad logs."""
    warnings: list[str] = []

    def monitors() -> Iterator[Series]:
        for name, path in logs.items():
            if not has_parser(name):
                continue
            try:
                with open_plain(path) as stream:
                    raw = RawLog(stream, exact=exact)
                    series = collect(name, parse(name, raw), exact=exact)
            except OSError as error:
                warnings.append(f"{path}: cannot be read: {error}")
                continue
            warnings.extend(f"{path}: {warning}" for warning in (*raw.warnings, *series.warnings))
            yield series

    stats = run_stats(monitors(), window=window, exact=exact)
    return LogStats(stats, tuple(warnings))


def open_plain(path: Path) -> BinaryIO:
    """Open a file as what it holds: decompressed by its ending."""
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path))
    if path.suffix == ".xz":
        return cast("BinaryIO", lzma.open(path))
    if path.suffix == ".zst":
        frames = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True)
        return cast("BinaryIO", io.BufferedReader(frames))
    return path.open("rb")
