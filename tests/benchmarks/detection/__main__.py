"""One table: our detector and others on simulated families, real A/A measurements, and the clock.

``python -m tests.benchmarks.detection [--quick] [--seeds FROM:TO]``. Constants were tuned on seeds below 1000; reports
use those from 1000 on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bisectbot.detect import Detector, find_steps
from tests.benchmarks.detection import rivals
from tests.benchmarks.detection.families import NULLS, STEPPED, Family, Sample
from tests.benchmarks.detection.retests import report as report_retests
from tests.benchmarks.detection.score import Online, Tally

DATA = Path(__file__).parents[2] / "detect" / "data"
KEPT = Path(__file__).parents[3].parent / "shared" / "series" / "zig_null"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few seeds, under two minutes")
    parser.add_argument("--seeds", default=None, metavar="FROM:TO")
    given = parser.parse_args()
    low, high = map(int, (given.seeds or ("1000:1002" if given.quick else "1000:1030")).split(":"))
    seeds = range(low, high)
    print(f"seeds {low} … {high - 1}\n")
    _accuracy(seeds)
    _real()
    _calibration(seeds)
    _online(seeds[:1] if given.quick else seeds[:6])
    report_retests(40 if given.quick else 300)
    _clock(given.quick)


def _samples(family: Family, seeds: Sequence[int]) -> list[Sample]:
    if family in NULLS:  # more of them: false steps are rare
        seeds = range(3 * seeds[0], 3 * seeds[0] + 3 * len(seeds))
    return [family.sample(seed) for seed in (seeds if "long" not in family.name else seeds[:2])]


def _everybody(groups: dict[str, list[Sample]]) -> tuple[dict[str, dict[str, list[list[int]]]], dict[str, float]]:
    """What each detector finds in each sample of each group, and its CPU seconds."""
    start = time.process_time()
    found = {"ours": {name: [_indexes(sample) for sample in samples] for name, samples in groups.items()}}
    seconds = {"ours": time.process_time() - start}
    medians = [[statistics.median(runs) for runs in sample.series] for group in groups.values() for sample in group]
    for rival in rivals.RIVALS:
        steps, seconds[rival] = rivals.ask(rival, medians)
        answers = iter(steps)
        found[rival] = {name: [next(answers) for _ in samples] for name, samples in groups.items()}
    return found, seconds


def _indexes(sample: Sample) -> list[int]:
    return [step.index for step in find_steps(sample.series)]


def _accuracy(seeds: Sequence[int]) -> None:
    groups = {family.name: _samples(family, seeds) for family in STEPPED + NULLS}
    found, seconds = _everybody(groups)
    table = {rival: {name: _tally(found[rival][name], groups[name]) for name in groups} for rival in found}
    print("F1 within one head, per family; below: false steps per 10,000 heads of noise without steps")
    print(f"{'':16}" + "".join(f"{rival:>10}" for rival in table))
    for family in STEPPED:
        print(f"{family.name:16}" + "".join(f"{tallies[family.name].f1(1):10.3f}" for tallies in table.values()))
    for family in NULLS:
        print(f"{family.name:16}" + "".join(f"{tallies[family.name].per_10k():10.1f}" for tallies in table.values()))
    print()
    figures: dict[str, Callable[[dict[str, Tally]], float]] = {
        "mean F1, ±1": lambda tallies: float(np.mean([tallies[family.name].f1(1) for family in STEPPED])),
        "mean F1, exact": lambda tallies: float(np.mean([tallies[family.name].f1(0) for family in STEPPED])),
        "worst F1, ±3": lambda tallies: min(tallies[family.name].f1(3) for family in STEPPED),
        "false/10k, mean": lambda tallies: float(np.mean([tallies[family.name].per_10k() for family in NULLS])),
        "false/10k, worst": lambda tallies: max(tallies[family.name].per_10k() for family in NULLS),
    }
    for label, figure in figures.items():
        print(f"{label:16}" + "".join(f"{figure(tallies):10.3f}" for tallies in table.values()))
    print(f"{'CPU seconds':16}" + "".join(f"{spent:10.1f}" for spent in seconds.values()))


def _tally(found: Sequence[Sequence[int]], samples: Sequence[Sample]) -> Tally:
    tally = Tally()
    for indexes, sample in zip(found, samples, strict=True):
        tally.add(indexes, sample)
    return tally


def aa_series() -> dict[str, list[float]]:
    """Real A/A measurements: repeats of little programs kept as test data, others where they are there."""
    series = {}
    for path in sorted(DATA.glob("*.csv")):
        rows = list(csv.reader(path.read_text().splitlines()))[1:]
        series[path.stem] = [float(row[0]) for row in rows]
    for path in sorted(KEPT.glob("*.json")):
        values = json.loads(path.read_text())["values"]
        series[path.stem] = [runs[0] for runs in values]
    return series


def _real() -> None:
    series = aa_series()
    own = [values for name, values in series.items() if "zig" not in name]
    kept = [values for name, values in series.items() if "zig" in name]
    rows = {"own, 1 run": [[[value] for value in values] for values in own]}
    rows["own, 3 passes"] = [[list(runs) for runs in zip(*_thirds(values), strict=True)] for values in own]
    rows["zig baseline"] = [[[value] for value in values] for values in kept]
    groups = {
        label: [Sample(one, [], np.zeros(len(one)), 1.0) for one in group] for label, group in rows.items() if group
    }
    found, _ = _everybody(groups)
    print("\nreal A/A: steps per 10,000 heads of (repeats of little programs; the baseline measured again)")
    for label, samples in groups.items():
        row = "".join(f"{_tally(answers[label], samples).per_10k():10.1f}" for answers in found.values())
        print(f"{label:16}{row}  of {sum(len(sample.series) for sample in samples)} heads", flush=True)


def _thirds(values: Sequence[float]) -> list[Sequence[float]]:
    """As if a farm had measured all heads once, again, and a third time: what befell one pass is an outlier."""
    third = len(values) // 3
    return [values[at * third : (at + 1) * third] for at in range(3)]


def _calibration(seeds: Sequence[int]) -> None:
    """True is a step within three heads, as many series with steps as without.

    Bursts stand alone: one that hits every run of its heads is told as a step and its revert, however clear.
    """
    stated: dict[bool, list[tuple[float, bool]]] = {False: [], True: []}
    for family in STEPPED + NULLS:
        for sample in map(family.sample, seeds):
            for step in find_steps(sample.series):
                true = any(abs(step.index - real) <= 3 for real in sample.steps)
                stated["bursts" in family.name].append((step.probability, true))
    _stated("stepped and step-free families alike, without bursts", stated[False])
    _stated("families of bursts", stated[True])


def _stated(label: str, stated: Sequence[tuple[float, bool]]) -> None:
    print(f"\nstated probability against what is true ({label})")
    edges = (0.0, 0.75, 0.85, 0.92, 0.97, 0.985, 0.997, 1.01)
    for low, high in itertools.pairwise(edges):
        inside = [(p, true) for p, true in stated if low <= p < high]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            real = sum(true for _, true in inside) / len(inside)
            error = 2 * (real * (1 - real) / len(inside)) ** 0.5
            print(f"  stated {mean:.3f}  true {real:.3f} ± {error:.3f}  of {len(inside)}")


def _online(seeds: Sequence[int]) -> None:
    stepped, null = Online(), Online()
    for family in STEPPED + NULLS:
        if "long" in family.name:
            continue
        for sample in map(family.sample, seeds):
            detector = Detector()
            answers = [[step.index for step in detector.append(runs)] for runs in sample.series]
            (stepped if family in STEPPED else null).add(answers, sample)
    print("\nonline, head by head")
    print(
        f"  {stepped.visible} visible steps: {100 * stepped.in_time / stepped.visible:.1f} % alarmed before 30 heads,"
    )
    print(f"  {100 * stepped.soon / stepped.visible:.1f} % within 5 heads of becoming visible,", end=" ")
    print(f"median delay {statistics.median(stepped.delays):.0f} heads")
    for name, part in (("stepped", stepped), ("step-free", null)):
        print(f"  {name}: {1e4 * part.false / part.heads:.1f} false alarms per 10,000 heads of {part.heads},", end=" ")
        print(f"{part.withdrawn} of {part.alarms} alarms withdrawn later")


def _clock(quick: bool) -> None:
    rng = np.random.default_rng(1)

    def series(heads: int) -> list[list[float]]:
        return [(100 + at // 90 % 2 + rng.standard_normal(3)).tolist() for at in range(heads)]

    print("\nCPU seconds on this machine")
    long = series(10_000)
    start = time.process_time()
    find_steps(long)
    print(f"  10,000 heads × 3 runs: {time.process_time() - start:.2f} s")
    detector = Detector()
    detector.extend(long)
    start = time.process_time()
    for runs in long[:100]:
        detector.append(runs)
    print(f"  appending one head to it: {10 * (time.process_time() - start):.1f} ms")
    many = [series(500) for _ in range(20 if quick else 100)]
    start = time.process_time()
    for one in many:
        find_steps(one)
    print(f"  10,000 series of 500 heads, from scratch: {1e4 / len(many) * (time.process_time() - start):.0f} s")
    detectors = [Detector() for _ in many]
    for detector, one in zip(detectors, many, strict=True):
        detector.extend(one)
    start = time.process_time()
    for detector, one in zip(detectors, many, strict=True):
        detector.append(one[0])
    print(f"  10,000 series of 500 heads, one new head each: {1e4 / len(many) * (time.process_time() - start):.0f} s")


if __name__ == "__main__":
    main()
