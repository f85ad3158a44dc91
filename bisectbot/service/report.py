"""Verdicts become reports: one per change, with its mail in the outbox, in one transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.bisect import State, Verdict
from bisectbot.jobs import wire
from bisectbot.mail.gate import Contents, Sample
from bisectbot.mail.message import archive_key, choose_message_id
from bisectbot.mail.policy import Way
from bisectbot.report.model import Report as ReportModel
from bisectbot.report.render import MailText, render_mail
from bisectbot.report.twin import to_json
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.findings import describe
from bisectbot.service.post import letters, notes, rules, sequels
from bisectbot.service.post.concerned import Concerned, concerned
from bisectbot.service.search.blame import Blamed, blame
from bisectbot.service.search.verdicts import verdict_of
from bisectbot.service.sightings import report_of
from bisectbot.source.history import Change, CommitInfo
from bisectbot.source.sightings import lineage
from bisectbot.store.database import now
from bisectbot.store.tables import Bisection, BisectionState, Finding, Outbox, OutboxState, Report, ReportState, Step

log = structlog.get_logger()


@dataclass(frozen=True)
class _Draft:
    """A report before it is stored."""

    blamed: Blamed
    lineage: tuple[tuple[CommitInfo, Change], ...]
    model: ReportModel
    text: MailText
    concerned: Concerned
    message_id: str


def report(context: Context) -> int:
    """Report every bisection that named a culprit and was not reported yet; returns how many reports are new."""
    with context.database.read() as session:
        query = select(Bisection).where(Bisection.state == BisectionState.DONE, ~Bisection.reported)
        rows = session.execute(query.order_by(Bisection.id)).scalars().all()
        waiting = [(row.id, verdict_of(row)) for row in rows]
    return sum(_report(context, bisection, verdict) for bisection, verdict in waiting)


def _report(context: Context, bisection: int, verdict: Verdict | None) -> bool:
    if verdict is None or verdict.state not in {State.CULPRIT, State.CULPRIT_SET}:
        with context.database.write() as session:
            session.get_one(Bisection, bisection).reported = True
        return False
    with context.database.read() as session:
        row = session.get_one(Bisection, bisection)
        time = now(session)
        blamed = blame(context, session, row, verdict)
    identity = rules.identity(context)
    key = f"B{bisection} {blamed.commit.sha} {context.config.state}"
    message_id = choose_message_id(key, identity, time)
    with context.database.read() as session:
        model = describe(context, session, session.get_one(Bisection, bisection), blamed, message_id)
    if context.config.mail.public_archive:
        archive = context.config.mail.public_archive.rstrip("/")
        model = replace(model, thread=f"{archive}/{archive_key(message_id)}")
    found = concerned(context, blamed.commit.sha, model.tree.name)
    known_by = lineage(context.mirror.git, blamed.commit, blamed.identity)
    draft = _Draft(blamed, known_by, model, render_mail(model), found, message_id)
    with context.database.write() as session:
        return _store(context, session, session.get_one(Bisection, bisection), draft)


def _store(context: Context, session: Session, row: Bisection, draft: _Draft) -> bool:
    """One report per change and direction: what is found later about the same change joins it."""
    if row.reported:
        return False
    row.reported = True
    commit = catalog.commit_row(session, draft.blamed.commit, draft.blamed.identity)
    assert commit.change_id is not None
    direction = draft.model.finding.direction.value
    known = report_of(session, draft.lineage, direction)
    time = now(session)
    steps = session.execute(select(Step.id).filter_by(bisection_id=row.id).order_by(Step.id)).scalars().all()
    step = steps[0] if steps else None
    if known is not None:
        told = _enlarge(context, session, known, draft)
        changed = [wire.to_plain(finding) for finding in (draft.model.finding, *draft.model.also)]
        session.add(
            Finding(report_id=known.id, bisection_id=row.id, step_id=step, created=time, changed=changed, told=told)
        )
        if draft.model.tree != letters.model_of(known).tree:
            place = f"{draft.model.tree.name}:{draft.model.tree.branch}"
            exact = known.change_id == commit.change_id
            sequels.seen_in(session, known.id, place, draft.blamed.commit.sha, exact=exact)
        log.info("joins an earlier report", report=known.id, bisection=row.id)
        return False
    stored = Report(
        change_id=commit.change_id,
        direction=direction,
        sha=draft.blamed.commit.sha,
        subject=draft.text.subject,
        body=draft.text.body,
        twin=to_plain_twin(draft.model),
        state=ReportState.RELEASED,
        message_id=draft.message_id,
        created=time,
    )
    session.add(stored)
    session.flush()
    session.add(Finding(report_id=stored.id, bisection_id=row.id, step_id=step, created=time, told=True))
    post(context, session, stored, _first_letter(context, session, stored, draft))
    log.info("report", report=stored.id, bisection=row.id, subject=draft.text.subject, state=stored.state.value)
    return True


def to_plain_twin(model: ReportModel) -> dict[str, object]:
    """The machine-readable twin, as a JSON column holds it."""
    twin: dict[str, object] = json.loads(to_json(model))
    return twin


def _first_letter(context: Context, session: Session, stored: Report, draft: _Draft) -> letters.Draft:
    held = (draft.blamed.uncertain,) if draft.blamed.uncertain else ()
    letter = letters.first_draft(context, session, stored, draft.model, draft.concerned)
    return replace(letter, contents=_contents(draft), held=held)


def post(context: Context, session: Session, stored: Report, letter: letters.Draft) -> None:
    """Put a report's first letter into the outbox, or hold both; decided by the ladder and the content gate."""
    row = letters.put(context, session, letter, stored.created)
    assert row is not None, "a new report has no letter yet"
    _settle(context, session, stored, row)


def _enlarge(context: Context, session: Session, known: Report, draft: _Draft) -> bool:
    """A letter that nobody has got yet tells of the new findings itself; False if it is too late for that."""
    row = letters.first_letter(session, known.id)
    if row is None or row.attempts or row.state not in {OutboxState.AWAITING_APPROVAL, OutboxState.QUEUED}:
        return False
    old, new = letters.model_of(known), draft.model
    if row.way == Way.DIGEST.value:  # the new finding may be what lifts it over the bar
        model = replace(new, also=(*new.also, old.finding, *old.also), archive=old.archive, thread=old.thread)
        contents, held = _contents(draft), ()
    else:
        model = replace(old, also=(*old.also, new.finding, *new.also))
        contents, held = Contents(), tuple(row.held)
    text = render_mail(model)
    known.subject, known.body, known.twin = text.subject, text.body, to_plain_twin(model)
    letter = replace(letters.first_draft(context, session, known, model, draft.concerned), contents=contents, held=held)
    letters.rewrite(context, session, row, letter, row.created)
    _settle(context, session, known, row)
    return True


def _settle(context: Context, session: Session, stored: Report, row: Outbox) -> None:
    """The report is held as long as its letter is; operators are told of what waits for them."""
    stored.state = ReportState.HELD if row.held else ReportState.RELEASED
    stored.reason = "; ".join(row.held)
    if row.held and row.way != Way.DIGEST.value:
        notes.held(context, session, stored, row.held)


def _contents(draft: _Draft) -> Contents:
    """What the letter promises: a row in every table, and the values of every run that the verdict rests on."""
    sides = draft.model.evidence
    assert sides is not None
    counted = (("parent", draft.blamed.before, sides.parent), ("commit", draft.blamed.after, sides.culprit))
    return Contents(
        tables=tuple(len(table.rows) + len(table.fails) for table in draft.model.tables),
        samples=tuple(
            Sample(f"{draft.model.finding.stat}, {name}", max(len(runs), 1), len(side.values))
            for name, runs, side in counted
        ),
    )
