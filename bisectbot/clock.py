"""The one source of time.

Durations in the code are the durations of a real farm. A clock with ``scale`` 30 lets a simulated lab live
them thirty times faster, all alike: a 90 s lease then ends after 3 s of real time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

SCALE_VARIABLE = "BISECTBOT_CLOCK_SCALE"


@dataclass(frozen=True)
class Clock:
    """Time since 1970 UTC in seconds, and waiting. ``scale`` is farm seconds per real second (> 0)."""

    scale: float = 1.0

    def now(self) -> float:
        """The wall clock, real seconds since 1970 UTC. Stored times come from the database instead."""
        return time.time()

    def monotonic(self) -> float:
        """Farm seconds on a clock that never jumps; for durations only."""
        return time.monotonic() * self.scale

    def real(self, seconds: float) -> float:
        """How many real seconds ``seconds`` of farm time last."""
        return seconds / self.scale

    def farm(self, seconds: float) -> float:
        """How many seconds of farm time ``seconds`` real ones are."""
        return seconds * self.scale

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds`` of farm time."""
        time.sleep(self.real(seconds))


def from_environment() -> Clock:
    """The clock that this process was started with (``BISECTBOT_CLOCK_SCALE``, 1 if unset)."""
    return Clock(scale=float(os.environ.get(SCALE_VARIABLE, "1")))
