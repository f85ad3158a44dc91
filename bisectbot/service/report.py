"""Verdicts become reports: one per change, with its mail in the outbox, in one transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.bisect import State, Verdict
from bisectbot.errors import InfraError
from bisectbot.mail.gate import Contents, reasons_to_hold
from bisectbot.mail.mailbox import Mailbox, parse_mailboxes
from bisectbot.mail.maintainers import parse as parse_maintainers
from bisectbot.mail.message import Facts, Identity, Kind, Letter, choose_message_id, compose
from bisectbot.mail.policy import Decision, Matter, Policy, Record, Rung, Way, decide
from bisectbot.mail.recipients import Commit as MailCommit
from bisectbot.mail.recipients import Recipients, recipients
from bisectbot.report.model import Report as ReportModel
from bisectbot.report.render import MailText, render_mail
from bisectbot.report.twin import to_json
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.findings import Blamed, blame, describe
from bisectbot.service.status import verdict_of
from bisectbot.source.history import facts
from bisectbot.source.merged import is_ours
from bisectbot.source.relevance import touched_files
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Finding,
    Outbox,
    OutboxState,
    Report,
    ReportState,
    Step,
)

log = structlog.get_logger()

RUNGS = {"files": Rung.FILES, "operators": Rung.OPERATORS, "author": Rung.AUTHOR, "lists": Rung.LISTS}


@dataclass(frozen=True)
class _Draft:
    """A report before it is stored."""

    blamed: Blamed
    model: ReportModel
    text: MailText
    recipients: Recipients
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
    identity = mail_identity(context)
    key = f"B{bisection} {blamed.commit.sha} {context.config.state}"
    message_id = choose_message_id(key, identity, time)
    with context.database.read() as session:
        model = describe(context, session, session.get_one(Bisection, bisection), blamed, message_id)
    draft = _Draft(blamed, model, render_mail(model), _recipients(context, blamed), message_id)
    with context.database.write() as session:
        return _store(context, session, session.get_one(Bisection, bisection), draft)


def mail_identity(context: Context) -> Identity:
    """Who writes."""
    [sender] = parse_mailboxes(context.config.mail.sender)
    return Identity(sender.address, sender.name or "bisectbot")


def mail_policy(context: Context) -> Policy:
    """How far letters may travel, as configured."""
    mail = context.config.mail
    operators = tuple(box for text in mail.operators for box in parse_mailboxes(text))
    return Policy(rung=RUNGS[mail.policy.value], operators=operators)


def _recipients(context: Context, blamed: Blamed) -> Recipients:
    """Whom the commit concerns, from the commit itself and the MAINTAINERS file that it contains."""
    git = context.mirror.git
    sha = blamed.commit.sha
    if is_ours(git, sha):
        return Recipients(())  # nobody proposed it, so nobody is told but the operators
    [info] = facts(git, [sha])
    try:
        maintainers = git.run("show", f"{sha}:MAINTAINERS")
    except InfraError:
        maintainers = ""
    commit = MailCommit(
        author=_mailbox(info.author_mail, info.author_name),
        committer=_mailbox(info.committer_mail, info.committer_name),
        message=f"{info.subject}\n\n{info.body}",
        files=tuple(sorted(touched_files(git, [sha]).get(sha, ()))),
    )
    return recipients(commit, parse_maintainers(maintainers))


def _mailbox(address: str, name: str) -> Mailbox | None:
    found = parse_mailboxes(f"<{address}>")
    return Mailbox(found[0].address, name) if found else None


def _store(context: Context, session: Session, row: Bisection, draft: _Draft) -> bool:
    """One report per change and direction: what is found later about the same change joins it."""
    if row.reported:
        return False
    row.reported = True
    commit = catalog.commit_row(session, draft.blamed.commit, draft.blamed.identity)
    assert commit.change_id is not None
    direction = draft.model.finding.direction.value
    known = session.execute(
        select(Report).filter_by(change_id=commit.change_id, direction=direction)
    ).scalar_one_or_none()
    time = now(session)
    steps = session.execute(select(Step.id).filter_by(bisection_id=row.id).order_by(Step.id)).scalars().all()
    step = steps[0] if steps else None
    if known is not None:
        session.add(Finding(report_id=known.id, bisection_id=row.id, step_id=step, created=time))
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
    _post(context, session, stored, draft)
    log.info("report", report=stored.id, bisection=row.id, subject=draft.text.subject, state=stored.state.value)
    return True


def to_plain_twin(model: ReportModel) -> dict[str, object]:
    """The machine-readable twin, as a JSON column holds it."""
    twin: dict[str, object] = json.loads(to_json(model))
    return twin


def _post(context: Context, session: Session, stored: Report, draft: _Draft) -> None:
    """Put the mail into the outbox, or hold it; decided by the ladder and the content gate."""
    policy = mail_policy(context)
    finding, evidence = draft.model.finding, draft.model.evidence
    matter = Matter(
        kind=Kind.REPORT,
        tree=f"{draft.model.tree.name}:{draft.model.tree.branch}",
        testcase=finding.testcase,
        recipients=draft.recipients,
        confidence=evidence.probability if evidence else None,
        effect=finding.percent,
    )
    decision = decide(policy, matter, Record())
    to, cc = _addressees(decision, policy, draft.recipients, context)
    letter = Letter(
        key=f"R{stored.id}",
        kind=Kind.REPORT,
        subject=draft.text.subject,
        body=draft.text.body,
        to=to,
        cc=cc,
        message_id=draft.message_id,
        facts=Facts(
            report=f"R{stored.id}",
            change=draft.blamed.commit.sha,
            hosts=(finding.machine.group,) if finding.machine else (),
            metrics=(finding.stat,),
            confidence=evidence.probability if evidence else None,
        ),
    )
    tables = tuple(len(table.rows) + len(table.fails) for table in draft.model.tables)
    held = list(reasons_to_hold(letter, Contents(tables=tables)))
    if decision.held is not None:
        held.append(decision.held)
    if decision.way is Way.DIGEST:
        held.append("below the bar for a mail of its own")
    if draft.blamed.uncertain:
        held.append(draft.blamed.uncertain)
    if held:
        stored.state, stored.reason = ReportState.HELD, "; ".join(held)
    session.add(
        Outbox(
            report_id=stored.id,
            kind=Kind.REPORT.value,
            message_id=draft.message_id,
            dedup_key=f"report/{stored.id}",
            state=OutboxState.AWAITING_APPROVAL if held else OutboxState.QUEUED,
            way=decision.way.value,
            rung=int(decision.rung),
            waiting=[box.address for box in (*to, *cc)],
            raw=bytes(compose(letter, mail_identity(context), stored.created)),
            held=held,
            created=stored.created,
        )
    )


def _addressees(
    decision: Decision, policy: Policy, found: Recipients, context: Context
) -> tuple[tuple[Mailbox, ...], tuple[Mailbox, ...]]:
    """To and Cc as the letter shows them: of a letter that is only a file, those whom it would have reached."""
    if decision.way is Way.MAIL:
        return decision.to, decision.cc
    return found.to or policy.operators or (mail_identity(context).mailbox,), ()
