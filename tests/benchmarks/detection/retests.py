"""What a re-test of a suspected step costs and how often it errs."""

from __future__ import annotations

import numpy as np

from bisectbot.detect import Boot, Outcome, retest


def run(rng: np.random.Generator, truth: float, effect: float, noise: float, *, outliers: float) -> tuple[bool, int]:
    """One re-test by simulation: whether it said real, and how many boots both sides took."""

    def boot(level: float) -> Boot:
        off = rng.exponential(8) * noise if rng.random() < outliers else 0.0
        value = level + noise * rng.standard_normal() - off
        return Boot("h1", int(rng.integers(1 << 40)), [value])

    before: list[Boot] = []
    after: list[Boot] = []
    while True:
        told = retest(before, after, effect=effect, noise=noise)
        if told.outcome is not Outcome.MORE:
            return told.outcome is Outcome.REAL, len(before) + len(after)
        before += [boot(100.0) for _ in range(told.more_before)]
        after += [boot(100.0 + truth) for _ in range(told.more_after)]


def report(trials: int) -> None:
    """Print error rates and boots for steps of several sizes."""
    print("\nre-test of a suspected step (false ≤ 1 %, missed about 5 %), boots of both heads together")
    for size in (1.5, 2.5, 4.0, 8.0):
        for outliers in (0.0, 0.08):
            rng = np.random.default_rng(7)
            none = [run(rng, 0.0, size, 1.0, outliers=outliers) for _ in range(trials)]
            real = [run(rng, size, size, 1.0, outliers=outliers) for _ in range(trials)]
            half = [run(rng, 0.6 * size, size, 1.0, outliers=outliers) for _ in range(trials)]
            print(
                f"  {size:3.1f} sigma, {100 * outliers:.0f} % outliers: "
                f"called real though none {100 * np.mean([said for said, _ in none]):.1f} %, "
                f"{np.mean([boots for _, boots in none]):.1f} boots; "
                f"missed {100 * np.mean([not said for said, _ in real]):.1f} %, "
                f"{np.mean([boots for _, boots in real]):.1f} boots; "
                f"of 0.6 the size missed {100 * np.mean([not said for said, _ in half]):.1f} %"
            )
