"""Who may get a letter, and when: the ladder from files to public lists, as pure functions.

A new installation writes files. Its operators climb: to mail for themselves, for the author of a change, and at last
for the lists. A letter for a list needs somebody's approval until the installation has shown that it is right.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bisectbot.mail.mailbox import Mailbox, distinct
from bisectbot.mail.message import Kind
from bisectbot.mail.recipients import Recipients

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0


class Rung(enum.IntEnum):
    """How far letters go; each rung includes those below it."""

    FILES = 0
    OPERATORS = 1
    AUTHOR = 2
    LISTS = 3


@dataclass(frozen=True)
class Override:
    """Another rung for what matches both shell patterns (``net*:main``, ``will-it-scale``)."""

    rung: Rung
    tree: str = "*"
    testcase: str = "*"


@dataclass(frozen=True)
class Policy:
    """What the operators have configured, and what people have asked for. Addresses in lower case.

    ``quiet_weekdays`` 0 = Monday … 6 = Sunday, ``quiet_dates`` are single days, both UTC. ``least_confidence`` and
    ``least_effect`` (|%|) are the bar: what is below it goes into the weekly digest.
    """

    rung: Rung = Rung.FILES
    overrides: tuple[Override, ...] = ()
    operators: tuple[Mailbox, ...] = ()
    precision: float = 0.9  # right reports among the last ``window`` that lists may get without approval
    window: int = 30
    hourly_cap: int = 3
    daily_cap: int = 10
    quiet_weekdays: frozenset[int] = frozenset()
    quiet_dates: frozenset[dt.date] = frozenset()
    least_confidence: float = 0.95
    least_effect: float = 0.0
    opted_out: frozenset[str] = frozenset()
    muted: frozenset[str] = frozenset()  # those who want nothing like this, for a while
    suppressed: frozenset[str] = frozenset()
    stopped: bool = False


@dataclass(frozen=True)
class Matter:
    """What a letter is about. ``confidence`` 0..1 and ``effect`` in % may be None where there is no such number.

    ``earlier`` are those who got the letter that this one corrects, ``thread_rung`` is how far the letter went that
    this one follows.
    """

    kind: Kind
    tree: str  # "linux-next:master"
    testcase: str
    recipients: Recipients
    confidence: float | None = None
    effect: float | None = None
    earlier: tuple[Mailbox, ...] = ()
    thread_rung: Rung | None = None


@dataclass(frozen=True)
class Record:
    """What the installation has done: ``right`` tells of its reports, oldest first, whether each was right.

    ``sent`` are the times of its letters to anybody but operators, ``in_thread`` that of the last one in this
    letter's thread; seconds since 1970 UTC.
    """

    right: Sequence[bool] = ()
    sent: Sequence[float] = ()
    in_thread: float | None = None


class Way(enum.StrEnum):
    """How a letter leaves."""

    FILE = "file"
    MAIL = "mail"
    DIGEST = "digest"


@dataclass(frozen=True)
class Dropped:
    """Somebody who would have got the letter, and why not."""

    mailbox: Mailbox
    why: str


@dataclass(frozen=True)
class Decision:
    """To whom a letter goes. ``held`` says why a person must approve it first, None that nobody need."""

    way: Way
    rung: Rung
    to: tuple[Mailbox, ...] = ()
    cc: tuple[Mailbox, ...] = ()
    held: str | None = None
    dropped: tuple[Dropped, ...] = field(default=())


def decide(policy: Policy, matter: Matter, record: Record, *, approved_by: str = "") -> Decision:
    """To whom the letter about ``matter`` goes, and whether it must wait for approval.

    A correction goes to whoever got the wrong letter, on every rung; where only files are written by now it is held,
    so that a person can still send it. What follows a letter goes no further than that did, for nobody else knows
    what it is about. Without anybody left on a rung the letter falls to the operators; without operators it is a file.
    """
    rung = rung_for(policy, matter.tree, matter.testcase)
    if matter.thread_rung is not None and matter.kind is not Kind.CORRECTION:
        rung = min(rung, matter.thread_rung)
    correcting = matter.kind is Kind.CORRECTION and bool(matter.earlier)
    if rung is Rung.FILES and not correcting:
        return Decision(Way.FILE, rung)
    if matter.kind is Kind.REPORT and _below_bar(policy, matter):
        return Decision(Way.DIGEST, rung)
    wanted_to, wanted_cc = _wanted(policy, matter, rung)
    to, dropped_to = _allowed(policy, wanted_to)
    cc, dropped_cc = _allowed(policy, wanted_cc)
    dropped = dropped_to + dropped_cc
    if not to:
        to, cc = cc, ()
    if not to:
        rung = Rung.OPERATORS
        to, _ = _allowed(policy, policy.operators)
    if not to:
        return Decision(Way.FILE, Rung.FILES, dropped=dropped)
    held = None
    if rung is Rung.FILES:
        held = f"only files are written now, but {len(to)} got the letter that this corrects"
    elif rung is Rung.LISTS and not correcting:
        held = _unproven(policy, record)
    if approved_by:
        held = None
    return Decision(Way.MAIL, rung, to, tuple(box for box in cc if box not in to), held, dropped)


def rung_for(policy: Policy, tree: str, testcase: str) -> Rung:
    """The rung of a tree and testcase: the lowest of the overrides that match, else the installation's."""
    matching = [o.rung for o in policy.overrides if fnmatchcase(tree, o.tree) and fnmatchcase(testcase, o.testcase)]
    return min(matching, default=policy.rung)


def wait_until(policy: Policy, kind: Kind, rung: Rung, record: Record, now: float) -> float | None:
    """Asked just before each letter is handed over: None if it may go now, else when to ask again.

    The stop holds everything (``inf``); caps, quiet days and the weekly pause of a thread hold only what goes
    beyond the operators, and never a correction or an answer that somebody is waiting for.
    """
    if policy.stopped:
        return float("inf")
    if rung <= Rung.OPERATORS or kind in {Kind.CORRECTION, Kind.ANSWER, Kind.TEST}:
        return None
    until = max(
        _cap(record.sent, policy.hourly_cap, HOUR, now),
        _cap(record.sent, policy.daily_cap, DAY, now),
        record.in_thread + WEEK if kind is Kind.FOLLOWUP and record.in_thread is not None else now,
    )
    until = _after_quiet_days(policy, until)
    return until if until > now else None


def _wanted(policy: Policy, matter: Matter, rung: Rung) -> tuple[tuple[Mailbox, ...], tuple[Mailbox, ...]]:
    people = matter.recipients
    if matter.kind is Kind.CORRECTION:
        return distinct(matter.earlier), ()
    if rung is Rung.LISTS:
        return people.to, distinct((*people.people, *people.lists))
    if rung is Rung.AUTHOR:
        return people.to, policy.operators
    return policy.operators, ()


def _allowed(policy: Policy, boxes: tuple[Mailbox, ...]) -> tuple[tuple[Mailbox, ...], tuple[Dropped, ...]]:
    reasons = {
        **dict.fromkeys(policy.muted, "muted"),
        **dict.fromkeys(policy.suppressed, "mail to this address bounces"),
        **dict.fromkeys(policy.opted_out, "opted out"),
    }
    dropped = tuple(Dropped(box, reasons[box.key]) for box in boxes if box.key in reasons)
    return tuple(box for box in boxes if box.key not in reasons), dropped


def _below_bar(policy: Policy, matter: Matter) -> bool:
    unsure = matter.confidence is not None and matter.confidence < policy.least_confidence
    return unsure or (matter.effect is not None and abs(matter.effect) < policy.least_effect)


def _unproven(policy: Policy, record: Record) -> str | None:
    last = list(record.right)[-policy.window :]
    if len(last) < policy.window:
        return f"lists need approval: {len(last)} of the {policy.window} reports that prove precision have been judged"
    precision, least = sum(last) / len(last), policy.precision
    if precision >= least:
        return None
    return f"lists need approval: {precision:.0%} of the last {policy.window} reports were right, not {least:.0%}"


def _cap(sent: Sequence[float], cap: int, window: float, now: float) -> float:
    """When the next letter fits under ``cap`` letters per ``window`` seconds."""
    recent = sorted(at for at in sent if at > now - window)
    return now if len(recent) < cap else recent[len(recent) - cap] + window if cap else float("inf")


def _after_quiet_days(policy: Policy, at: float) -> float:
    if at == float("inf") or len(policy.quiet_weekdays) == 7:
        return float("inf") if len(policy.quiet_weekdays) == 7 else at
    moment = dt.datetime.fromtimestamp(at, dt.UTC)
    day = moment.date()
    while day.weekday() in policy.quiet_weekdays or day in policy.quiet_dates:
        day += dt.timedelta(days=1)
    if day == moment.date():
        return at
    return dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()
