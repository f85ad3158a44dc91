"""Who changed it: observations in, next experiments and verdict out. Pure."""

from bisectbot.bisect.graph import CommitGraph
from bisectbot.bisect.search import Search
from bisectbot.bisect.terms import (
    Commit,
    Costs,
    Estimate,
    Evidence,
    Experiment,
    Session,
    Side,
    State,
    Verdict,
)

__all__ = [
    "Commit",
    "CommitGraph",
    "Costs",
    "Estimate",
    "Evidence",
    "Experiment",
    "Search",
    "Session",
    "Side",
    "State",
    "Verdict",
]
