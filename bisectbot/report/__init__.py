"""What is said: findings, mail text, machine-readable twin. Pure."""

from bisectbot.report.model import (
    Check,
    Commit,
    Difference,
    Direction,
    Evidence,
    Explanation,
    Finding,
    Identity,
    Machine,
    Moved,
    Outcome,
    Person,
    Report,
    Side,
    Still,
    Tree,
)
from bisectbot.report.render import MailText, render_mail
from bisectbot.report.twin import from_json, to_json

__all__ = [
    "Check",
    "Commit",
    "Difference",
    "Direction",
    "Evidence",
    "Explanation",
    "Finding",
    "Identity",
    "Machine",
    "MailText",
    "Moved",
    "Outcome",
    "Person",
    "Report",
    "Side",
    "Still",
    "Tree",
    "from_json",
    "render_mail",
    "to_json",
]
