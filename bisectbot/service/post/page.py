"""A report as people look at it before they approve it, and after: who gets it and why, its thread, what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.service.commands import row_of
from bisectbot.service.context import Context
from bisectbot.service.post.letters import Addressee, addressees, first_letter
from bisectbot.store.tables import Bounce, Finding, Judgement, Outbox, Reply, Report, Sighting

Row = TypeVar("Row", Sighting, Reply, Judgement)


@dataclass(frozen=True)
class LetterLine:
    """One letter of the thread; times in seconds since 1970 UTC."""

    id: int
    kind: str
    state: str
    way: str
    message_id: str
    addressees: tuple[Addressee, ...]
    waiting: tuple[str, ...]
    reached: tuple[str, ...]
    held: tuple[str, ...]
    approved_by: str
    error: str
    created: float
    sent: float | None


@dataclass(frozen=True)
class ReplyLine:
    """A mail that came back: ``kind`` is human, automatic, bounce or own."""

    kind: str
    sender: str
    subject: str
    text: str
    received: float


@dataclass(frozen=True)
class OpinionLine:
    judged: str
    who: str
    why: str
    at: float


@dataclass(frozen=True)
class ReportPage:
    """Everything about one report. ``untold`` counts findings that wait for the next addendum."""

    id: str
    state: str
    reason: str
    commit: str
    subject: str
    created: float
    bisections: tuple[str, ...]
    places: tuple[str, ...]
    untold: int
    letters: tuple[LetterLine, ...]
    bounced: tuple[str, ...]
    replies: tuple[ReplyLine, ...]
    opinions: tuple[OpinionLine, ...]


def report_page(context: Context, word: str) -> ReportPage:
    """The report R12. Raises UserError if there is none of that id."""
    with context.database.read() as session:
        report = row_of(session, Report, word, "R")
        findings = session.execute(select(Finding).filter_by(report_id=report.id).order_by(Finding.id)).scalars().all()
        letters = session.execute(select(Outbox).filter_by(report_id=report.id).order_by(Outbox.id)).scalars().all()
        return ReportPage(
            id=f"R{report.id}",
            state=report.state.value,
            reason=report.reason,
            commit=report.sha,
            subject=report.subject,
            created=report.created,
            bisections=tuple(f"B{finding.bisection_id}" for finding in findings),
            places=tuple(f"{row.place} {row.sha}" for row in _all(session, Sighting, report)),
            untold=sum(not finding.told for finding in findings),
            letters=tuple(map(_letter, letters)),
            bounced=_bounced(session, [letter.id for letter in letters]),
            replies=tuple(
                ReplyLine(row.kind, row.sender, row.subject, row.body, row.received)
                for row in _all(session, Reply, report)
            ),
            opinions=tuple(
                OpinionLine(row.judged.value, row.who, row.why, row.at) for row in _all(session, Judgement, report)
            ),
        )


def report_mail(context: Context, word: str) -> bytes:
    """A report's first letter, the bytes that leave or have left. Raises UserError if there is none."""
    with context.database.read() as session:
        report = row_of(session, Report, word, "R")
        letter = first_letter(session, report.id)
        if letter is None:
            raise UserError(f"R{report.id} has no letter")
        return letter.raw


def _all(session: Session, table: type[Row], report: Report) -> list[Row]:
    return list(session.execute(select(table).filter_by(report_id=report.id).order_by(table.id)).scalars())


def _letter(row: Outbox) -> LetterLine:
    return LetterLine(
        id=row.id,
        kind=row.kind,
        state=row.state.value,
        way=row.way,
        message_id=row.message_id,
        addressees=addressees(row),
        waiting=tuple(row.waiting),
        reached=tuple(row.reached),
        held=tuple(row.held),
        approved_by=row.approved_by,
        error=row.last_error,
        created=row.created,
        sent=row.sent,
    )


def _bounced(session: Session, letters: list[int]) -> tuple[str, ...]:
    rows = session.execute(select(Bounce).where(Bounce.outbox_id.in_(letters)).order_by(Bounce.id)).scalars()
    return tuple(f"{row.address}: {row.action} {row.status} {row.diagnostic}".rstrip() for row in rows)
