"""What a report says: one frozen record, the same for mails that are sent, mails that were read, and their JSON.

README.md beside this file is the record's schema. Nothing here is text: ``bisectbot.report.body`` words it,
``bisectbot.report.twin`` writes it as JSON, ``bisectbot.report.lkp`` reads it from a kernel test robot's mail.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from bisectbot.errors import UserError
from bisectbot.results.occurrences import Box
from bisectbot.results.table import Table

SCHEMA = "bisectbot.report/1"


class Direction(enum.StrEnum):
    """What a change means to people; ``FAILURE`` is something that passed and now fails."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    FAILURE = "failure"
    CHANGE = "change"  # the KPI has no direction


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody named in a commit or a mail; either part may be empty."""

    name: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its id as far as known (40 hex digits in what we send), subject and author."""

    id: str
    subject: str = ""
    author: Person | None = None

    @property
    def short(self) -> str:
        """The ten digits that mails use."""
        return self.id[:10]

    @property
    def named(self) -> str:
        """How a list names it: ``31255e072b ("subject")``."""
        return f'{self.short} ("{self.subject}")' if self.subject else self.short


@dataclass(frozen=True, slots=True)
class Tree:
    """Where the commit was seen: the subject's ``name:branch`` (``linus:master``) and the tree's address."""

    url: str = ""
    branch: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """A host group (``lkp-icl-2sp2``) and its hardware in words, sockets measured and not guessed from nodes."""

    description: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One stat of one job on one host group that the commit changed.

    ``percent`` is the signed change against the parent; None for failures and where the base is zero.
    ``broad`` marks a benchmark that stands for real use, as opposed to a micro-benchmark: the kernel's rules
    for what a regression is differ. ``parameters`` are the job's, in the job file's order.
    """

    stat: str
    direction: Direction
    percent: float | None = None
    testcase: str = ""
    machine: Machine | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    config: str = ""
    compiler: str = ""
    broad: bool = False


@dataclass(frozen=True, slots=True)
class Still:
    """What later heads show, e.g. ("still regression", "linus/master", 40 hex); ``commit`` empty if none is named."""

    what: str
    where: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """The finding's stat at one commit: every run's value in the stat's unit, grouped by boot, in order.

    ``booted`` is False where nothing was booted for the runs: ``boots`` is then one group that is no boot.
    """

    commit: str
    boots: tuple[tuple[float, ...], ...]
    booted: bool = True

    @property
    def values(self) -> tuple[float, ...]:
        """All runs' values."""
        return tuple(value for boot in self.boots for value in boot)


class Outcome(enum.StrEnum):
    """How a check went."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_DONE = "not done"


@dataclass(frozen=True, slots=True)
class Check:
    """Something tried beyond the search, in a few words: "reverted on v6.7-rc3: back at 72650 (6 runs)"."""

    outcome: Outcome
    what: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why the reader may believe it.

    ``probability`` that this commit is the culprit, 0 to 1; ``suspects`` are commits that could not be told apart
    from it (untestable between them), without the culprit itself. ``interval`` holds the change with 95 %, in percent
    of the parent's average, by all that the search measured.
    """

    parent: Side
    culprit: Side
    probability: float | None = None
    checks: tuple[Check, ...] = ()
    suspects: tuple[Commit, ...] = ()
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What only one side's kernel said or had: lines of its boot log, config, command line or NUMA counters."""

    of: str
    parent: tuple[str, ...] = ()
    culprit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """A function that the commit touches and whose share of the profile changed, in per cent of all samples."""

    stat: str
    parent: float
    culprit: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What might explain the change. ``compared`` names what was looked at: with nothing found, that is said."""

    differences: tuple[Difference, ...] = ()
    functions: tuple[Moved, ...] = ()
    compared: tuple[str, ...] = ()


_THEIRS = re.compile(r"\bintel\b|0-?day\b|kernel test robot|\blkp@|oe-lkp|lkp-tests|\b01\.org\b", re.IGNORECASE)


def foreign_identity(text: str) -> list[str]:
    """Find another robot's names and addresses in a text; what we write ourselves must contain none."""
    return _THEIRS.findall(text)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends: a mail address and the service's page, both configured. Raises UserError for another robot's."""

    address: str
    home: str = ""

    def __post_init__(self) -> None:
        if theirs := foreign_identity(f"{self.address} {self.home}"):
            raise UserError(f"identity: {theirs[0]!r} belongs to another robot: configure an address of your own")


@dataclass(frozen=True, slots=True)
class Report:
    """What people are told about one change: a headline finding, its evidence, and the tables behind it.

    ``finding`` is the headline, ``also`` what else the commit changed, ``tables`` the comparison of each, in that
    order; ``boxes`` are counts of boot and functional failures. ``archive`` leads to everything needed to look closer
    and repeat it; ``thread`` is the address that the mail will have in a public archive (for ``Closes:``). ``notes``
    are paragraphs for the reader. What a mail that was read had in its headers is in ``sender``, ``date`` and
    ``message_id``.
    """

    commit: Commit
    finding: Finding
    parent: Commit | None = None
    tree: Tree = Tree()
    area: str = ""
    still: tuple[Still, ...] = ()
    evidence: Evidence | None = None
    also: tuple[Finding, ...] = ()
    explanation: Explanation | None = None
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    boxes: tuple[Box, ...] = ()
    archive: str = ""
    thread: str = ""
    reproduce: tuple[str, ...] = ()
    identity: Identity | None = None
    sender: Person | None = None
    date: str = ""
    message_id: str = ""
    schema: str = SCHEMA
