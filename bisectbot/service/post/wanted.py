"""What people wished in chat, as mail asks for it: what they muted, and what they subscribed to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail.mailbox import Mailbox, distinct, parse_mailboxes
from bisectbot.mail.recipients import Recipients
from bisectbot.report.model import Direction, Finding, Report
from bisectbot.store.database import now
from bisectbot.store.tables import Subscription

_KINDS = {
    Direction.REGRESSION: "regression",
    Direction.FAILURE: "regression",
    Direction.IMPROVEMENT: "improvement",
}


def muted(session: Session, testcase: str) -> frozenset[str]:
    """The addresses that want no mail about ``testcase`` now; those who want none at all are opt-outs."""
    time = now(session)
    return frozenset(
        str(address).lower()
        for row in session.execute(select(Subscription)).scalars()
        if "mute" in row.rule and fnmatchcase(testcase, row.rule["mute"])
        if row.muted_until is None or row.muted_until > time
        for address in row.rule["mails"]
    )


def with_subscribers(session: Session, model: Report, files: Iterable[str], found: Recipients, most: int) -> Recipients:
    """``found`` and whoever subscribed to such a report, at most ``most`` in all; nobody where nobody is concerned.

    Somebody with several addresses is written to at one: none but that under which it is their business already,
    else the first that they are listed with.
    """
    known = {box.key for box in (*found.to, *found.people, *found.lists)}
    touched = tuple(files)
    asked = [row for row in _rules(session) if _fits(row.rule, model, touched)]
    more = [box for box in _mailboxes(asked, known) if box.key not in known] if found.to else []
    more = more[: max(most - len(known), 0)]
    return replace(
        found,
        people=(*found.people, *more),
        why={**found.why, **{box.key: "subscribed" for box in more}},
    )


def weekly(session: Session) -> tuple[Mailbox, ...]:
    """Who subscribed to the digest."""
    return _mailboxes([row for row in _rules(session) if row.rule.get("digest") == "weekly"], set())


def _rules(session: Session) -> list[Subscription]:
    rows = session.execute(select(Subscription).order_by(Subscription.id)).scalars()
    return [row for row in rows if "mute" not in row.rule]


def _mailboxes(rows: list[Subscription], known: set[str]) -> tuple[Mailbox, ...]:
    """One mailbox for each person; nobody of whom one is in ``known``."""
    people = {row.person_id: parse_mailboxes(", ".join(row.rule["mails"])) for row in rows}
    return distinct(tuple(boxes[0] for boxes in people.values() if boxes and not known & {box.key for box in boxes}))


def _fits(rule: Mapping[str, Any], model: Report, files: tuple[str, ...]) -> bool:
    if "path" in rule and not any(_below(file, rule["path"]) for file in files):
        return False
    return any(_fits_one(rule, finding) for finding in (model.finding, *model.also))


def _below(file: str, path: str) -> bool:
    return file.startswith(f"{path.rstrip('/')}/") or fnmatchcase(file, path)


def _fits_one(rule: Mapping[str, Any], finding: Finding) -> bool:
    """What has no size, as a failure, is large enough for any ``min``."""
    group, host = finding.machine.group if finding.machine else "", rule.get("host", "")
    least = float(rule.get("min", "0").rstrip("%"))
    return (
        (host in group or fnmatchcase(group, host))
        and fnmatchcase(finding.testcase, rule.get("suite", "*"))
        and (finding.percent is None or abs(finding.percent) >= least)
        and ("kinds" not in rule or _KINDS.get(finding.direction) in rule["kinds"].split(","))
    )
