"""KPIs: the stats that are watched, with unit and direction."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Better(enum.StrEnum):
    """Which way is up: decides between regression and improvement, never what is found."""

    MORE = "more"
    LESS = "less"
    NONE = "none"


@dataclass(frozen=True)
class Kpi:
    """A watched stat.

    ``name`` is the whole stat name (``will-it-scale.per_process_ops``), ``unit`` free text (``ops/s``).
    ``least_effect`` is the smallest change worth telling, in percent of the old level; None leaves it to the noise.
    """

    name: str
    unit: str = ""
    better: Better = Better.NONE
    least_effect: float | None = None
