"""Hosts differ: their offsets are taken out, so that a change of host is no step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bisectbot.detect.heads import Runs

NEAR = 5  # heads to either side of a change of host that tell its offset
Cell = tuple[int, str, float]  # head, host, median of its runs there


def level(series: Sequence[Runs], hosts: Sequence[Sequence[str]]) -> list[Runs]:
    """The runs with every host's offset taken out, relative to the first host.

    Offsets are least squares over the places where the host changes: within a head, or from one head to the next. A
    change seen once explains all of what happens there: a step at that very head cannot be told from it.
    """
    names = list(dict.fromkeys(name for head in hosts for name in head))
    if len(names) < 2:
        return list(series)
    cells = [
        cell for at, (runs, names_) in enumerate(zip(series, hosts, strict=True)) for cell in _cells(at, runs, names_)
    ]
    changes: dict[tuple[str, str], list[float]] = {}
    for at, (one, other) in enumerate(pairwise(cells)):
        if one[1] != other[1]:
            low, high = sorted((one[1], other[1]))
            difference = _side(cells[at + 1 :], other[1]) - _side(cells[at::-1], one[1])
            changes.setdefault((low, high), []).append(difference if other[1] == high else -difference)
    rows = np.zeros((len(changes) + 1, len(names)))
    seen = np.zeros(len(changes) + 1)
    for row, ((low, high), differences) in enumerate(sorted(changes.items())):
        weight = np.sqrt(len(differences))
        rows[row, names.index(high)], rows[row, names.index(low)] = weight, -weight
        seen[row] = weight * np.median(differences)
    rows[-1, 0] = 1.0  # the first host is the reference
    offsets = dict(zip(names, np.linalg.lstsq(rows, seen, rcond=None)[0].tolist(), strict=True))
    return [
        [value - offsets[name] for value, name in zip(runs, names_, strict=True)]
        for runs, names_ in zip(series, hosts, strict=True)
    ]


def _cells(at: int, runs: Runs, hosts: Sequence[str]) -> list[Cell]:
    per_host: dict[str, list[float]] = {}
    for value, host in zip(runs, hosts, strict=True):
        per_host.setdefault(host, []).append(value)
    return [(at, host, float(np.median(values))) for host, values in sorted(per_host.items())]


def _side(cells: Sequence[Cell], host: str) -> float:
    """The level of ``host`` in the next cells, up to where another one takes over."""
    near = []
    for _, name, value in cells[:NEAR]:
        if name != host:
            break
        near.append(value)
    return float(np.median(near))
