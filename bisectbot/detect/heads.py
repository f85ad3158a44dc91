"""Runs become heads: one location and one noise figure per head, whatever the number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisectbot.errors import UserError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Runs = Sequence[float]
Origins = Sequence[tuple[str, str | int]]

HUGE = 1e150  # squares of anything larger would overflow


@dataclass(frozen=True)
class Heads:
    """What is known of n heads: every array has one entry (row) per head.

    ``places`` has a column per estimator of location (mean, mean of the middle half, median); ``count`` is the
    number of independent results (runs, or boots where these are known); ``spread`` their variance within the
    head (0 for a single one), ``width`` the squared distance of its quartiles.
    """

    places: Floats
    count: Ints
    spread: Floats
    width: Floats

    def __len__(self) -> int:
        return len(self.count)

    def slice(self, start: int, stop: int) -> Heads:
        """The heads start … stop-1."""
        return Heads(self.places[start:stop], self.count[start:stop], self.spread[start:stop], self.width[start:stop])

    @classmethod
    def none(cls) -> Heads:
        """No heads at all."""
        return cls(np.empty((0, 3)), np.empty(0, np.int64), np.empty(0), np.empty(0))

    @classmethod
    def join(cls, parts: Iterable[Heads]) -> Heads:
        """One after the other."""
        parts = list(parts)
        return cls(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.spread for part in parts]),
            np.concatenate([part.width for part in parts]),
        )


def read(series: Sequence[Runs], *, first: int = 0) -> Heads:
    """Summarise runs per head; ``first`` is the index of the first one, for messages.

    Raises UserError for a head without runs and for NaN or infinite values, naming head and run.
    """
    count = np.fromiter((len(runs) for runs in series), np.int64, len(series))
    if not len(count):
        return Heads.none()
    if not count.all():
        raise UserError(f"head {first + int(np.argmin(count))} has no runs: give at least one value or leave it out")
    values = np.fromiter((value for runs in series for value in runs), np.float64, int(count.sum()))
    start = np.cumsum(count) - count
    if not np.all(np.abs(values) < HUGE):  # NaN compares false
        at = int(np.argmin(np.abs(values) < HUGE))
        head = int(np.searchsorted(start, at, side="right")) - 1
        raise UserError(
            f"head {first + head}, run {at - int(start[head])}: {values[at]} is no measurement; leave the run out"
        )
    return _summary(values, count, start)


def _summary(values: Floats, count: Ints, start: Ints) -> Heads:
    if count.max() == 1:
        return Heads(np.repeat(values[:, None], 3, axis=1), count, np.zeros(len(count)), np.zeros(len(count)))
    head = np.repeat(np.arange(len(count)), count)
    values = values[np.lexsort((values, head))]
    rank = np.arange(len(values)) - start[head]
    anchor = values[start]  # differences to the smallest run keep the sums exact for quiet, large values
    rest = values - anchor[head]
    mean = np.add.reduceat(rest, start) / count
    spread = np.add.reduceat((rest - mean[head]) ** 2, start) / np.maximum(count - 1, 1)
    middle = np.add.reduceat(rest * _middle_half(rank, count[head]), start) / (count - 2 * (count / 4))
    median = (rest[start + (count - 1) // 2] + rest[start + count // 2]) / 2
    width = _width(rest, count, start)
    return Heads(np.stack([anchor + mean, anchor + middle, anchor + median], axis=1), count, spread, width)


def _width(rest: Floats, count: Ints, start: Ints) -> Floats:
    """Squared distance of the quartiles; of three runs the nearer two, so that a lone outlier does not count."""
    quarter = count // 4
    low, high = rest[start + quarter], rest[start + count - 1 - quarter]
    middle = rest[start + count // 2]
    width: Floats = np.where(count == 3, np.minimum(high - middle, middle - low), high - low) ** 2
    return width


def _middle_half(rank: Ints, count: Ints) -> Floats:
    """How much of each sorted run lies in the middle half: 1 inside, a fraction at the two borders, else 0."""
    quarter = count / 4
    inside = np.minimum(rank + 1, count - quarter) - np.maximum(rank, quarter)
    share: Floats = np.clip(inside, 0.0, 1.0)
    return share


def collapse(
    series: Sequence[Runs], sessions: Sequence[Origins | None], *, first: int = 0
) -> tuple[list[Runs], list[tuple[str, ...]]]:
    """One result per boot, the mean of its runs: repeating a run in one boot says nothing of the next boot.

    A head whose runs are all from one boot, or of unknown origin, keeps its runs. Also returns the host of every
    result, an empty name where it is unknown. Raises UserError where sessions do not fit the runs.
    """
    if len(sessions) != len(series):
        raise UserError(f"{len(series)} heads but sessions for {len(sessions)}: give one list (or None) per head")
    pairs = [_boots(runs, origins, first + at) for at, (runs, origins) in enumerate(zip(series, sessions, strict=True))]
    return [runs for runs, _ in pairs], [hosts for _, hosts in pairs]


def _boots(runs: Runs, origins: Origins | None, head: int) -> tuple[Runs, tuple[str, ...]]:
    if origins is None:
        return runs, ("",) * len(runs)
    if len(origins) != len(runs):
        raise UserError(f"head {head}: {len(runs)} runs but sessions for {len(origins)}")
    boots: dict[tuple[str, str | int], list[float]] = {}
    for value, origin in zip(runs, origins, strict=True):
        boots.setdefault((origin[0], origin[1]), []).append(value)
    if len(boots) == 1:
        return runs, tuple(origin[0] for origin in origins)
    return [sum(values) / len(values) for values in boots.values()], tuple(host for host, _ in boots)
