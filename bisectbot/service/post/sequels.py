"""What follows a report in its thread: what was found later, where the change has arrived, and that it was wrong.

A report's first letter is never written twice. Findings and sightings wait in their rows until a week has passed since
the thread's last letter, then all of them go out as one. A correction waits for nothing and goes to everybody whom a
letter of the thread has reached, also to those whom it reached after the report had been judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog
from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from bisectbot.jobs import wire
from bisectbot.mail import sequel
from bisectbot.mail.mailbox import Mailbox, distinct
from bisectbot.mail.message import Kind
from bisectbot.mail.policy import WEEK, Rung
from bisectbot.mail.recipients import Recipients
from bisectbot.mail.thread import follow_up
from bisectbot.report.model import Finding as Found
from bisectbot.report.model import Still
from bisectbot.report.render import MailText
from bisectbot.service.context import Context
from bisectbot.service.people.judgements import standing
from bisectbot.service.post import rules
from bisectbot.service.post.letters import Draft, addressees, facts_of, first_letter, matter_of, model_of, put, reached
from bisectbot.store.database import now
from bisectbot.store.tables import Finding, Judged, Judgement, Outbox, OutboxState, Report, ReportState, Sighting

log = structlog.get_logger()

_STOPPABLE = {OutboxState.DRAFT, OutboxState.AWAITING_APPROVAL, OutboxState.QUEUED, OutboxState.DEFERRED}
_CORRECTABLE = (Kind.REPORT.value, Kind.FOLLOWUP.value)
_UNDER_WAY = {*_STOPPABLE, OutboxState.SENDING}


def seen_in(session: Session, report: int, place: str, sha: str, *, exact: bool = True) -> bool:
    """Note that a report's change has arrived in ``place`` (TREE:BRANCH) as ``sha``; False if that was known.

    People learn of it with the next letter of the thread. To be called in a writing transaction.
    """
    known = session.execute(select(Sighting.id).filter_by(report_id=report, place=place)).scalar_one_or_none()
    if known is None:
        session.add(Sighting(report_id=report, place=place, sha=sha, exact=exact, seen=now(session)))
    return known is None


def sequels(context: Context) -> int:
    """Write every addendum and correction that is due; returns how many."""
    with context.database.read() as session:
        wrong = _uncorrected(session)
        more = [report for report in _with_more(session) if _may_follow(context, session, report) is not None]
    written = 0
    for report in wrong:
        with context.database.write() as session:
            written += _correct(context, session, session.get_one(Report, report, with_for_update=True))
    for report in more:
        with context.database.write() as session:
            written += _add(context, session, session.get_one(Report, report, with_for_update=True))
    return written


def _with_more(session: Session) -> list[int]:
    """Reports that have left, with something that is not told yet."""
    findings = select(Finding.report_id).where(~Finding.told)
    sightings = select(Sighting.report_id).where(~Sighting.told)
    query = select(Report.id).where(
        Report.state == ReportState.RELEASED, or_(Report.id.in_(findings), Report.id.in_(sightings))
    )
    return list(session.execute(query.order_by(Report.id)).scalars())


def _may_follow(context: Context, session: Session, report: int) -> Outbox | None:
    """The thread's first letter, if another one may follow it now."""
    first = first_letter(session, report)
    opinion = standing(session, report)
    last = rules.last_in_thread(session, report)
    if first is None or last is None or (opinion and opinion.judged in {Judged.WRONG, Judged.DUPLICATE}):
        return None
    if context.clock.farm(now(session) - last) < WEEK:
        return None
    under_way = select(Outbox.id).where(
        Outbox.report_id == report, Outbox.kind == Kind.FOLLOWUP.value, Outbox.state.in_(_UNDER_WAY)
    )
    return first if session.execute(under_way.limit(1)).scalar_one_or_none() is None else None


def _add(context: Context, session: Session, report: Report) -> bool:
    """One addendum with everything that is not told yet, if the thread may have a letter now."""
    first = _may_follow(context, session, report.id)
    if first is None:
        return False
    findings = session.execute(select(Finding).filter_by(report_id=report.id, told=False)).scalars().all()
    sightings = session.execute(select(Sighting).filter_by(report_id=report.id, told=False)).scalars().all()
    found = [wire.from_plain(Found, plain) for finding in findings for plain in finding.changed]
    seen = [Still("also in", sighting.place, sighting.sha) for sighting in sightings]
    for finding in findings:
        finding.told = True
    for sighting in sightings:
        sighting.told = True
    if not (found or seen):
        return False
    text = sequel.addendum(model_of(report), found, seen)
    number = _count(session, report, Kind.FOLLOWUP) + 1
    return _follow(context, session, report, first, text, Kind.FOLLOWUP, f"addendum/{number}", now(session))


def _uncorrected(session: Session) -> list[int]:
    """Reports that are judged wrong, with letters whose readers may not know it."""
    newer = aliased(Judgement)
    last_word = ~exists().where(newer.report_id == Judgement.report_id, newer.id > Judgement.id)
    wrong = select(Judgement.report_id).where(Judgement.judged == Judged.WRONG, last_word)
    query = select(Outbox.report_id).where(
        Outbox.report_id.in_(wrong), Outbox.kind.in_(_CORRECTABLE), ~Outbox.corrected
    )
    return sorted({report for report in session.execute(query).scalars() if report is not None})


def _correct(context: Context, session: Session, report: Report) -> bool:
    """Take a wrong report back, from everybody who has it and was not told so yet."""
    opinion = standing(session, report.id)
    first = first_letter(session, report.id)
    if opinion is None or opinion.judged is not Judged.WRONG or first is None:
        return False
    query = select(Outbox).filter_by(report_id=report.id).order_by(Outbox.id).with_for_update()
    rows = session.execute(query).scalars().all()
    claims = [row for row in rows if row.kind in _CORRECTABLE]
    for row in claims:
        if row.state in _STOPPABLE:
            row.state, row.last_error = OutboxState.CANCELLED, f"judged wrong by {opinion.who}"
        row.corrected = row.state is not OutboxState.SENDING  # that one may still reach somebody
    told = {entry.mailbox.key for row in rows if row.kind == Kind.CORRECTION.value for entry in addressees(row)}
    got = distinct(tuple(box for row in claims for box in reached(row)))
    earlier = tuple(box for box in got if box.key not in told)
    if not earlier:
        return False
    text = sequel.correction(model_of(report), opinion.why or "It does not hold.")
    number = _count(session, report, Kind.CORRECTION) + 1
    key = f"correction/{number}"
    return _follow(context, session, report, first, text, Kind.CORRECTION, key, now(session), earlier)


def _follow(
    context: Context,
    session: Session,
    report: Report,
    first: Outbox,
    text: MailText,
    kind: Kind,
    key: str,
    time: float,
    earlier: Sequence[Mailbox] = (),
) -> bool:
    model = model_of(report)
    matter = matter_of(model, kind, _whom_it_reached(first))
    draft = Draft(
        key=f"R{report.id}/{key}",
        subject=text.subject,
        body=text.body,
        matter=replace(matter, earlier=tuple(earlier), thread_rung=Rung(first.rung)),
        facts=facts_of(report, model),
        report=report.id,
        thread=follow_up(first.raw),
    )
    row = put(context, session, draft, time)
    if row is not None:
        log.info("follows a report", report=report.id, kind=kind.value, message_id=row.message_id)
    return row is not None


def _whom_it_reached(first: Outbox) -> Recipients:
    """The first letter's people and lists; of one that is a file, those whom it concerned."""
    got = {box.key for box in reached(first)}
    whom = [entry for entry in addressees(first) if entry.mailbox.key in got or not got]
    return Recipients(
        to=tuple(entry.mailbox for entry in whom if entry.place == "to"),
        people=tuple(entry.mailbox for entry in whom if entry.place == "cc" and not entry.list),
        lists=tuple(entry.mailbox for entry in whom if entry.place == "cc" and entry.list),
        why={entry.mailbox.key: entry.why for entry in whom},
    )


def _count(session: Session, report: Report, kind: Kind) -> int:
    query = select(func.count()).where(Outbox.report_id == report.id, Outbox.kind == kind.value)
    return int(session.execute(query).scalar_one())
