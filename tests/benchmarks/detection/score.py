"""Figures of a detector: places, false steps, delays, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.detection.families import Sample

Find = Callable[[Sequence[Sequence[float]]], Sequence[int]]


def matches(found: Sequence[int], true: Sequence[int], within: int) -> int:
    """How many found steps are true ones: one to one, the nearest first."""
    pairs = sorted((abs(f - t), i, j) for i, f in enumerate(found) for j, t in enumerate(true) if abs(f - t) <= within)
    used_found: set[int] = set()
    used_true: set[int] = set()
    for _, i, j in pairs:
        if i not in used_found and j not in used_true:
            used_found.add(i)
            used_true.add(j)
    return len(used_found)


@dataclass
class Tally:
    """Counts over the samples of one family."""

    found: int = 0
    true: int = 0
    heads: int = 0
    hits: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0, 3: 0})

    def add(self, found: Sequence[int], sample: Sample) -> None:
        self.found += len(found)
        self.true += len(sample.steps)
        self.heads += len(sample.series)
        for within in self.hits:
            self.hits[within] += matches(found, sample.steps, within)

    def f1(self, within: int) -> float:
        return 2 * self.hits[within] / (self.found + self.true) if self.found + self.true else 1.0

    def precision(self, within: int = 3) -> float:
        return self.hits[within] / self.found if self.found else 1.0

    def recall(self, within: int = 3) -> float:
        return self.hits[within] / self.true if self.true else 1.0

    def per_10k(self) -> float:
        """Steps found per 10,000 heads: all of them false where there are none."""
        return 1e4 * self.found / self.heads


VISIBLE = 5.0  # standard deviations that one who knows levels and noise needs


def visible_after(sample: Sample, step: int) -> int | None:
    """How many heads of the new level make the step visible; None if the next step comes first."""
    edges = [0, *sample.steps, len(sample.series)]
    at = edges.index(step)
    old, room = step - edges[at - 1], edges[at + 1] - step
    effect = abs(sample.levels[step] - sample.levels[step - 1]) / sample.sigma
    for new in range(2, room + 1):
        if effect / np.sqrt(1 / old + 1 / new) >= VISIBLE and step + new >= 6:
            return new
    return None


@dataclass
class Online:
    """How alarms come while heads are appended."""

    heads: int = 0
    visible: int = 0
    in_time: int = 0  # before 30 heads passed
    soon: int = 0  # within 5 heads of becoming visible
    false: int = 0
    withdrawn: int = 0
    alarms: int = 0
    delays: list[int] = field(default_factory=list)

    def add(self, answers: Sequence[Sequence[int]], sample: Sample) -> None:
        """``answers[n]`` are the step indexes after head n."""
        self.heads += len(sample.series)
        alarmed: dict[int, int] = {}  # true step → heads when alarmed
        false: list[int] = []
        for count, indexes in enumerate(answers, 1):
            for index in indexes:
                near = [step for step in sample.steps if abs(step - index) <= 3 and step < count]
                if near:
                    alarmed.setdefault(min(near, key=lambda step: abs(step - index)), count)
                elif all(abs(index - other) > 5 for other in false):
                    false.append(index)
        self.false += len(false)
        last = answers[-1] if answers else []
        everything = [*alarmed, *false]
        self.alarms += len(everything)
        self.withdrawn += sum(all(abs(index - other) > 5 for other in last) for index in everything)
        for step in sample.steps:
            needed = visible_after(sample, step)
            if needed is None:
                continue
            if step + needed + 5 > len(sample.series) and step not in alarmed:
                continue  # the series ends before one could tell
            self.visible += 1
            if step in alarmed:
                delay = alarmed[step] - step
                self.delays.append(delay)
                self.in_time += delay <= 30
                self.soon += delay <= needed + 5
