"""How long a demo run must be for its noise to be honest: long enough to be a measurement, short enough to be noisy.

The planted effect has to be found statistically, so one run's own noise, as A/A runs of the first commit show it on
this machine, must not be small beside it.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import UserError
from bisectbot.source.git import Git

LOOKUPS = (20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 5120)
RUNS = 40
WANTED_SIGMAS = 5.0
"""The effect in standard deviations of one run that is aimed at."""
MOST_SIGMAS = 5.8


@dataclass(frozen=True)
class Noise:
    """One run's length and noise: robust and plain standard deviation, in percent of the level (1/s)."""

    lookups: int
    level: float
    robust: float
    plain: float


def calibrate(repository: Path, commit: str, effect: float, cpus: Sequence[int]) -> Noise:
    """Build ``commit`` and choose how many lookups a run makes, so that ``effect`` is about five sigma of one run."""
    folder = Path(tempfile.mkdtemp(prefix="bisectbot-calibrate-"))
    try:
        archive = Git(repository).run_bytes("archive", "--format=tar", commit)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
        build = subprocess.run(["make", "-s", "bench"], cwd=folder, capture_output=True, text=True, check=False)
        if build.returncode != 0:
            raise UserError(f"the demo's program does not build here; install gcc and make ({build.stderr.strip()})")
        pin = ["taskset", "-c", ",".join(map(str, cpus))] if cpus and shutil.which("taskset") else []
        measured = [_measure([*pin, str(folder / "bench"), str(lookups)], lookups) for lookups in LOOKUPS]
    finally:
        shutil.rmtree(folder)
    noisy = [noise for noise in measured if 100 * effect / noise.robust <= MOST_SIGMAS]
    return min(noisy or measured, key=lambda noise: abs(100 * effect / noise.robust - WANTED_SIGMAS))


def _measure(command: list[str], lookups: int) -> Noise:
    values = []
    for _ in range(RUNS):
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        values.append(float(output.split(":")[1]))
    level = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(value - level) for value in values)
    return Noise(lookups, level, 100 * max(spread, 1e-9) / level, 100 * statistics.stdev(values) / level)
