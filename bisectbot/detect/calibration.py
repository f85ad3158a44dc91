"""From evidence to the probability that a step is real, fitted to simulated series with known steps."""

from __future__ import annotations

import math

# Logistic regression of "a true step within three heads" on the evidence, over the families of the benchmark (seeds 0
# to 49, as many step-free series as stepped ones); no evidence is taken for more than CEILING.
AT, OFFSET, SLOPE = 4.1, 0.533, 1.33
CEILING = 0.999


def probability(evidence: float) -> float:
    """The fraction of steps with this evidence (standard deviations) that are real."""
    return CEILING / (1 + math.exp(-max(-40.0, min(OFFSET + SLOPE * (evidence - AT), 40.0))))


def evidence_of(stated: float) -> float:
    """The evidence that gives this probability, 0 < ``stated`` < CEILING."""
    return AT + (math.log(stated / (CEILING - stated)) - OFFSET) / SLOPE
