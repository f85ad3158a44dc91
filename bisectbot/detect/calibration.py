"""From evidence to the probability that a step is real, fitted to simulated series with known steps."""

from __future__ import annotations

import math

# Logistic regression of "a true step within three heads" on the evidence, over the families of the benchmark but bursts
# (seeds 0 to 149, a step-free series for every one or two stepped ones), with a bend at the bar of the judge: what only
# suspicions show falls off faster. No evidence is taken for more than CEILING.
BEND, ODDS = 4.3, -0.06
ABOVE, BELOW = 2.99, 3.60
CEILING = 0.999


def probability(evidence: float) -> float:
    """The fraction of steps with this evidence (standard deviations) that are real."""
    odds = ODDS + (ABOVE if evidence > BEND else BELOW) * (evidence - BEND)
    return CEILING / (1 + math.exp(-max(-40.0, min(odds, 40.0))))


def evidence_of(stated: float) -> float:
    """The evidence that gives this probability, 0 < ``stated`` < CEILING."""
    above = math.log(stated / (CEILING - stated)) - ODDS
    return BEND + above / (ABOVE if above > 0 else BELOW)
