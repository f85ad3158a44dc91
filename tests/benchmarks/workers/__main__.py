"""`python -m tests.benchmarks.workers [--quick]`: what the monitors cost a benchmark that runs beside them.

Opens and closes files on one CPU of this machine, in turns without monitors, with the cheap ones, and with all, and
prints what each does to the figure beside what a run differs by from the next. Noisy on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import bisectbot.demo.kernel
from bisectbot.jobs.assignment import Job
from workers import monitors
from workers.hosts.base import Program

SOURCE = Path(bisectbot.demo.kernel.__file__).with_name("paths.c")
SETS = {"none": (), "cheap": monitors.CHEAP, "all": monitors.USUAL}


def figure(program: Path, names: tuple[str, ...], repeats: int) -> float:
    job = Job("j", "t", "command", "here", (), monitors=names, params=(("runtime", "60"),))
    run = monitors.beside(Program(f"{program} 20000 {repeats}"), job)
    with tempfile.TemporaryDirectory() as results:
        environment = {**os.environ, **run.environment, "BISECTBOT_RESULTS": results}
        argv = ["taskset", "-c", str(max(os.sched_getaffinity(0))), "/bin/sh", "-c", run.line]
        said = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    return float(said.stdout.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under two minutes")
    quick = parser.parse_args().quick
    rounds, repeats = (8, 20) if quick else (30, 60)
    values: dict[str, list[float]] = {name: [] for name in SETS}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "paths"
        subprocess.run(["gcc", "-O2", "-static", "-o", program, SOURCE], check=True)
        for _ in range(rounds):
            for name, chosen in SETS.items():
                values[name].append(figure(program, chosen, repeats))
    base = statistics.median(values["none"])
    print(f"{'monitors':10} {'runs':>5} {'opens/s':>10} {'change':>8} {'noise of a run':>15}")
    for name, found in values.items():
        middle = statistics.median(found)
        noise = 1.4826 * statistics.median(abs(value - middle) for value in found)
        print(
            f"{name:10} {len(found):5} {middle:10.0f} {100 * (middle / base - 1):+7.2f}% {100 * noise / middle:14.2f}%"
        )


if __name__ == "__main__":
    main()
