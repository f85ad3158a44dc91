"""The detector: one head at a time, or a whole series; the answer is the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bisectbot.detect.calibration import evidence_of, probability
from bisectbot.detect.heads import Heads, Origins, Runs, collapse, read
from bisectbot.detect.hosts import level
from bisectbot.detect.judge import THRESHOLD, Judged, judge
from bisectbot.detect.locate import locate
from bisectbot.detect.noise import Signal, signal
from bisectbot.detect.split import split
from bisectbot.detect.step import Direction, Step
from bisectbot.errors import UserError
from bisectbot.jobs.kpi import Kpi

LEAST = 6  # heads before anything may alarm
WINDOW = 512  # heads that are looked at together
SETTLED = 384  # of a full window, steps before this head are final
ADVANCE = 256  # heads that the next window starts later


def find_steps(
    series: Sequence[Runs],
    *,
    sessions: Sequence[Origins | None] | None = None,
    breaks: Iterable[int] = (),
    anchors: Iterable[int] = (),
    kpi: Kpi | None = None,
    least_probability: float | None = None,
) -> list[Step]:
    """The steps of a series, in order.

    ``series[i]`` holds the runs at head i (at least one), in KPI units. ``sessions[i]`` says for each of them from
    which ``(host, boot)`` it came; runs of one boot then count as one result. ``breaks`` are heads from which on
    the environment is another one: a new series begins there, no step. ``anchors`` are heads whose step was
    accepted: their level is the new normal, they are not reported again. ``kpi`` gives the direction of steps and
    the least interesting effect. ``least_probability`` (0 to 0.99) asks for steps that are as sure as that; by
    default they are sure enough to be told without measuring again. Raises UserError for heads without runs, NaN and
    infinite values, and indexes outside the series.
    """
    detector = Detector(kpi, least_probability)
    return detector.extend(series, sessions=sessions, breaks=breaks, anchors=anchors)


@dataclass
class Detector:
    """The same answer, one head at a time: after n appends it equals ``find_steps`` of the first n heads.

    Heads are looked at in windows of WINDOW; a full one settles the steps in its first SETTLED heads for good, so
    an append costs a bounded time however long the series is.
    """

    kpi: Kpi | None = None
    least_probability: float | None = None
    _heads: Heads = field(default_factory=Heads.none, init=False)  # from the start of the window on
    _origins: list[tuple[Runs, tuple[str, ...]]] = field(default_factory=list, init=False)  # of the same, if known
    _hosts: set[str] = field(default_factory=set, init=False)  # that any head ever came from
    _start: int = field(default=0, init=False)  # of the window
    _origin: int = field(default=0, init=False)  # of the environment: head of the last break
    _settled: list[Step] = field(default_factory=list, init=False)
    _anchors: list[int] = field(default_factory=list, init=False)

    def append(
        self, runs: Runs, sessions: Origins | None = None, *, new_environment: bool = False, accepted: bool = False
    ) -> list[Step]:
        """Add the next head and return the steps of all heads so far.

        ``new_environment`` begins a new series at this head, ``accepted`` marks the step at it as accepted.
        """
        at = len(self)
        return self.extend(
            [runs],
            sessions=[sessions],
            breaks=[at] if new_environment else (),
            anchors=[at] if accepted else (),
        )

    def extend(
        self,
        series: Sequence[Runs],
        *,
        sessions: Sequence[Origins | None] | None = None,
        breaks: Iterable[int] = (),
        anchors: Iterable[int] = (),
    ) -> list[Step]:
        """Add many heads at once; ``breaks`` and ``anchors`` count from the first head ever."""
        at = len(self)
        origins: list[tuple[Runs, tuple[str, ...]]] = [((), ())] * len(series)
        if sessions is not None:
            series, hosts = collapse(series, sessions, first=at)
            origins = list(zip(series, hosts, strict=True))
            self._hosts.update(host for names in hosts for host in names)
        heads = read(series, first=at)
        stop = at + len(heads)
        cuts = _indexes(breaks, at, stop, "break")
        self._anchors += _indexes(anchors, at, stop, "anchor")
        for left, right in zip([at, *cuts], [*cuts, stop], strict=True):
            if left in cuts:
                self._break(left)
            self._take(heads.slice(left - at, right - at), origins[left - at : right - at])
        return self.steps()

    def accept(self, index: int) -> None:
        """Accept the step at this head: its new level is normal from now on, it is not reported again."""
        self._anchors += _indexes([index], 0, len(self), "anchor")
        self._settled = [step for step in self._settled if not self._accepted(step)]

    def __len__(self) -> int:
        return self._start + len(self._heads)

    def steps(self) -> list[Step]:
        """The steps of all heads so far."""
        return [*self._settled, *self._look()]

    def _break(self, at: int) -> None:
        self._settled += self._look()
        self._heads, self._origins, self._start, self._origin = Heads.none(), [], at, at

    def _take(self, heads: Heads, origins: list[tuple[Runs, tuple[str, ...]]]) -> None:
        taken = 0
        while taken < len(heads):
            room = WINDOW - len(self._heads)
            self._heads = Heads.join([self._heads, heads.slice(taken, taken + room)])
            self._origins += origins[taken : taken + room]
            taken += room
            if len(self._heads) == WINDOW:
                limit = self._start + SETTLED
                self._settled += [step for step in self._look() if step.index < limit]
                self._heads = self._heads.slice(ADVANCE, WINDOW)
                del self._origins[:ADVANCE]
                self._start += ADVANCE

    def _look(self) -> list[Step]:
        """The unsettled steps of the window."""
        settled = self._start + (SETTLED - ADVANCE if self._start > self._origin else 0)
        if len(self._heads) < LEAST:
            return []
        known = [step.index for step in self._settled if self._start < step.index < settled]
        known += [anchor for anchor in self._anchors if self._start < anchor < len(self)]
        fixed = np.unique(np.array(known, np.int64)) - self._start
        sign = signal(self._levelled())
        bounds = split(sign, fixed)
        least = THRESHOLD if self.least_probability is None else evidence_of(self.least_probability)
        judged = judge(sign, bounds, fixed, least)
        steps = _steps(sign, judged, self._start, self.kpi)
        new = ~np.isin(judged.fit.bounds[1:-1], fixed)
        return [
            step
            for step, told in zip(steps, new, strict=True)
            if told and step is not None and step.index >= settled and not self._accepted(step)
        ]

    def _levelled(self) -> Heads:
        """The window's heads without the offsets between hosts, where these are known and several."""
        if len(self._hosts) < 2:
            return self._heads
        runs, hosts = zip(*self._origins, strict=True)
        if not all(runs):  # some heads came without sessions
            return self._heads
        return read(level(runs, hosts))

    def _accepted(self, step: Step) -> bool:
        return any(step.interval[0] <= anchor <= step.interval[1] for anchor in self._anchors)


def _indexes(given: Iterable[int], start: int, stop: int, what: str) -> list[int]:
    found = sorted({int(index) for index in given})
    for index in found:
        if not start <= index < stop:
            raise UserError(f"{what} at head {index}: the series has heads {start} to {stop - 1}")
    return found


def _steps(sign: Signal, judged: Judged, start: int, kpi: Kpi | None) -> list[Step | None]:
    """A step for every boundary; None where it is too small to be interesting."""
    verdict, noise = judged.verdict, sign.scale * judged.fit.core
    steps: list[Step | None] = []
    for k, (index, low, high) in enumerate(locate(sign, judged)):
        before, after = float(verdict.before[k]), float(verdict.after[k])
        effect = after - before
        percent = 100 * effect / abs(before) if before else None
        if kpi is not None and kpi.least_effect is not None and percent is not None and abs(percent) < kpi.least_effect:
            steps.append(None)
            continue
        doubt = 1.96 * float(verdict.doubt[k])
        steps.append(
            Step(
                index=start + index,
                before=before,
                after=after,
                effect=effect,
                effect_interval=(effect - doubt, effect + doubt),
                percent=percent,
                probability=probability(float(verdict.evidence[k])),
                interval=(start + low, start + high),
                noise_before=float(noise[k]),
                noise_after=float(noise[k + 1]),
                direction=Direction.of(effect, kpi),
            )
        )
    return steps
