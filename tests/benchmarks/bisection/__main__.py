"""`python -m tests.benchmarks.bisection [--quick] [--seeds N] [--figure FILE.svg]`: one table, all methods."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from tests.benchmarks.bisection.figure import BINS, calibration
from tests.benchmarks.bisection.suite import FULL, QUICK, Cell, Row, ours, theirs

COMPARED = {"line", "merges"}
"""Histories whose cost is compared with the bound: one culprit, all commits testable, one host."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a dozen scenarios, under two minutes")
    parser.add_argument("--seeds", type=int, default=0, help="bisections per scenario")
    parser.add_argument("--figure", type=Path, help="write the calibration as SVG")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    cells = QUICK if options.quick else FULL
    rows: list[Row] = []
    print(
        f"{'scenario':40} {'right':>6} {'host h':>7} {'bound':>6} {'over':>5} {'wall h':>6} {'builds':>6} "
        f"{'boots':>6} {'cpu s':>6}"
    )
    for cell in cells:
        mine = [ours(cell, seed) for seed in range(options.seeds or (4 if options.quick else 20))]
        rows += mine
        if not options.no_rivals:
            rows += [row for seed in range(len(mine)) for row in theirs(cell, seed)]
        print(_line(cell, mine), flush=True)
    print()
    _compare(rows)
    _both(rows)
    stated = [
        s for row in rows if row.method == "bisectbot" and row.cell.kind not in {"none", "two"} for s in row.stated
    ]
    print("\nstated probability of the likeliest commit after every result, and how often it was right")
    for low, high in BINS:
        some = [(p, hit) for p, hit in stated if low <= p < high or (p == high == 1.0)]
        if some:
            p, hit = (float(np.mean(c)) for c in zip(*some, strict=True))
            print(f"  {low:.2f}-{high:.2f}  stated {p:.3f}  right {hit:.3f}  ({len(some)})")
    if options.figure:
        options.figure.write_text(calibration(stated), encoding="utf-8")


def _line(cell: Cell, rows: list[Row]) -> str:
    right = np.mean([r.right for r in rows])
    host, bound = (np.mean([getattr(r, name) for r in rows]) / 3600 for name in ("host_s", "bound_s"))
    wall = np.mean([r.wall_s for r in rows]) / 3600
    builds, boots, cpu = (np.mean([getattr(r, name) for r in rows]) for name in ("builds", "boots", "cpu_s"))
    over = host / max(right, 1e-9) / bound
    return (
        f"{cell!s:40} {right:6.1%} {host:7.2f} {bound:6.2f} {over:5.2f} {wall:6.2f} {builds:6.1f} "
        f"{boots:6.1f} {cpu:6.2f}"
    )


def _compare(rows: list[Row]) -> None:
    print(
        f"{'method':22} {'right':>6} {'wrong':>6} {'none':>6} {'stated':>7} {'over':>6} {'host h':>7} {'builds':>6} "
        f"{'boots':>6}   (lines of commits, one host)"
    )
    for method in dict.fromkeys(row.method for row in rows):
        some = [r for r in rows if r.method == method and r.cell.kind in COMPARED and r.cell.hosts == 1]
        none = [r for r in rows if r.method == method and r.cell.kind == "none"]
        if not some:
            continue
        overs = []
        for cell in dict.fromkeys(r.cell for r in some):
            group = [r for r in some if r.cell == cell]
            right = max(float(np.mean([r.right for r in group])), 0.5 / len(group))
            overs.append(np.mean([r.host_s / r.bound_s for r in group]) / right)
        named = [r for r in some if r.named]
        wrong = np.mean([not r.right for r in named]) if named else 0.0
        last = [r.stated[-1] for r in some if r.stated]
        gap = f"{np.mean([p - hit for p, hit in last]):+7.3f}" if last else "      -"
        print(
            f"{method:22} {np.mean([r.right for r in some]):6.1%} {wrong:6.1%} "
            f"{np.mean([r.right for r in none]) if none else float('nan'):6.1%} {gap} "
            f"{np.exp(np.mean(np.log(overs))):6.2f} {np.mean([r.host_s for r in some]) / 3600:7.2f} "
            f"{np.mean([r.builds for r in some]):6.1f} {np.mean([r.boots for r in some]):6.1f}"
        )


def _both(rows: list[Row]) -> None:
    two = [r for r in rows if r.cell.kind == "two" and r.method == "bisectbot"]
    if two:
        one, both = np.mean([r.right for r in two]), np.mean([r.both for r in two])
        print(f"\ntwo culprits: one named {one:.1%}, both {both:.1%} ({len(two)} bisections)")


if __name__ == "__main__":
    main()
