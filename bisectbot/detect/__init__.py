"""Where a level changed: numbers in, steps out. Pure."""

from bisectbot.detect.change import Change, Finding, changes
from bisectbot.detect.detector import Detector, find_steps
from bisectbot.detect.retest import Boot, Outcome, Retest, retest
from bisectbot.detect.step import Direction, Origin, Step

__all__ = [
    "Boot",
    "Change",
    "Detector",
    "Direction",
    "Finding",
    "Origin",
    "Outcome",
    "Retest",
    "Step",
    "changes",
    "find_steps",
    "retest",
]
