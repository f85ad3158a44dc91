"""Where exactly a step lies: a posterior over the heads between its neighbours."""

from __future__ import annotations

import numpy as np

from bisectbot.detect.heads import Floats, Ints
from bisectbot.detect.judge import Judged
from bisectbot.detect.noise import Signal

TAIL = 4.0  # degrees of freedom of Student's t: outliers must not pull a boundary
COVER = 0.95


REACH = (3.0, 40.0)  # heads to either side where a step is looked for, at least and at most
SURE = 30.0  # nats (bar a factor of two) that the heads within the reach tell


def locate(signal: Signal, judged: Judged) -> list[tuple[int, int, int]]:
    """For every inner boundary: most probable first head of the new level, and the 95 % interval round it.

    A clear step is looked for nearby only: heads further away may drift towards the other level.
    """
    found, verdict = judged.fit, judged.verdict
    places: list[tuple[int, int, int]] = []
    for k in range(1, len(found.bounds) - 1):
        bound, previous = int(found.bounds[k]), places[-1][0] if places else 0
        clear = abs(verdict.after[k - 1] - verdict.before[k - 1]) / (signal.scale * found.core[k - 1 : k + 1].mean())
        reach = int(np.clip(SURE / max(clear, 0.1) ** 2, *REACH))
        # at least two heads on either side, as the split has it: one is no level
        low = min(max(previous + 2, bound - reach), bound)
        high = max(min(int(found.bounds[k + 1]) - 1, bound + reach), bound + 1)
        heads = slice(low, high)  # the new level starts at one of these
        scale = signal.scale * np.sqrt(signal.variance[heads])
        old = _log_density(signal.value[heads] - verdict.before[k - 1], scale * found.core[k - 1])
        new = _log_density(signal.value[heads] - verdict.after[k - 1], scale * found.core[k])
        score = np.concatenate([[0.0], np.cumsum((old - new)[:-1])])
        places.append(_interval(score, low))
    return places


def _log_density(distance: Floats, scale: Floats) -> Floats:
    return -np.log(scale) - (TAIL + 1) / 2 * np.log1p((distance / scale) ** 2 / TAIL)


def _interval(score: Floats, low: int) -> tuple[int, int, int]:
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    best = int(np.argmax(weight))
    order = np.argsort(-weight, kind="stable")
    enough = int(np.searchsorted(np.cumsum(weight[order]), COVER)) + 1
    inside: Ints = order[:enough]
    return low + best, low + int(inside.min()), low + int(inside.max())
