"""A person answers for a held report, or refuses it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.service.context import Context
from bisectbot.service.people.judgements import judge
from bisectbot.service.post import letters
from bisectbot.service.post.concerned import Concerned, concerned
from bisectbot.store.database import now
from bisectbot.store.tables import Judged, Outbox, OutboxState, Report, ReportState


def look(context: Context, number: int) -> Concerned | None:
    """Whom a held report concerns, as the tree says now; None if there is no such report or it is not held.

    To be asked before `release`, outside of its transaction.
    """
    with context.database.read() as session:
        report = session.get(Report, number)
        if report is None or report.state is not ReportState.HELD:
            return None
        tree = letters.model_of(report).tree.name
    return concerned(context, report.sha, tree)


def release(context: Context, session: Session, report: Report, found: Concerned | None, who: str) -> str:
    """Queue a held report's letter, to whom the ladder allows now; its answer in one line. Raises UserError."""
    _must_be_held(report)
    row = letters.first_letter(session, report.id)
    if row is None or row.state is not OutboxState.AWAITING_APPROVAL or found is None:
        raise UserError(f"R{report.id} changed in this moment; try again")
    draft = letters.first_draft(context, session, report, letters.model_of(report), found)
    letters.approve(context, session, row, draft, who, now(session))
    report.state, report.reason = ReportState.RELEASED, f"approved by {who}"
    return f"R{report.id} is released"


def refuse(session: Session, report: Report, who: str, why: str) -> str:
    """A held report is never sent; it counts as a wrong one unless somebody judges otherwise. Raises UserError."""
    _must_be_held(report)
    report.state, report.reason = ReportState.REJECTED, why
    held = select(Outbox).filter_by(report_id=report.id, state=OutboxState.AWAITING_APPROVAL)
    for row in session.execute(held).scalars():
        row.state, row.last_error = OutboxState.CANCELLED, f"rejected by {who}"
    judge(session, report, Judged.WRONG, who, why)
    return f"R{report.id} is rejected"


def _must_be_held(report: Report) -> None:
    if report.state is not ReportState.HELD:
        raise UserError(f"R{report.id} is {report.state.value} already")
