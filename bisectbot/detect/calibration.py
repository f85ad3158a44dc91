"""From evidence to the probability that a step is real, fitted to simulated series with known steps."""

from __future__ import annotations

import math


def probability(evidence: float) -> float:
    """The fraction of steps with this evidence (standard deviations) that are real."""
    return 1 / (1 + math.exp(-min(2.0 * (evidence - 3.2), 35.0)))
