"""Every kind of noise, and how likely boots are under each: computed once, kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect import levels, noise
from bisectbot.bisect.terms import Session

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


KINDS: Final = noise.table()


class Tables:
    """Likelihood tables of boots already seen, kept so that each is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[float, ...], levels.Grid], tuple[Floats, Bools]] = {}

    def of(
        self,
        sessions: Sequence[Session],
        grid: levels.Grid,
        group: Sequence[int],
        kinds: Ints,
        first: int | None = None,
    ) -> Floats:
        """Sums over the boots of each group, (groups, kinds, G); of the `first` boots alone if given."""
        sessions, group = sessions[:first], group[:first]
        if any(known != grid for _, known in self._known):
            self._known = {key: table for key, table in self._known.items() if key[1] == grid}
        lacking: dict[tuple[int, bytes], list[tuple[float, ...]]] = {}
        for values in dict.fromkeys(s.values for s in sessions):
            known = self._known.get((values, grid))
            there = known[1][kinds] if known else np.zeros(len(kinds), dtype=np.bool_)
            if not there.all():
                lacking.setdefault((len(values), there.tobytes()), []).append(values)
        for (_, mask), boots in lacking.items():
            missing = kinds[~np.frombuffer(mask, dtype=np.bool_)]
            new = levels.table(noise.sites(noise.Runs.of(boots), KINDS.take(missing)), grid)
            for values, table in zip(boots, new, strict=True):
                self._add(values, grid, missing, table)
        result: Floats = np.zeros((max(group) + 1, len(kinds), grid.points), dtype=np.float32)
        for g, s in zip(group, sessions, strict=True):
            result[g] += self._known[s.values, grid][0][kinds]
        return result

    def _add(self, values: tuple[float, ...], grid: levels.Grid, kinds: Ints, table: Floats) -> None:
        if (values, grid) not in self._known:
            empty: Floats = np.zeros((len(KINDS), grid.points), dtype=np.float32)
            self._known[values, grid] = empty, np.zeros(len(KINDS), dtype=np.bool_)
        whole, there = self._known[values, grid]
        whole[kinds], there[kinds] = table, True
