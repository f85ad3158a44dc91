"""The digest: once a week, what was below the bar for a mail of its own."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail import digest
from bisectbot.mail.gate import MOST_RECIPIENTS
from bisectbot.mail.message import Kind
from bisectbot.mail.policy import Matter, Rung, Way, decide
from bisectbot.mail.recipients import Recipients
from bisectbot.service.context import Context
from bisectbot.service.post import rules, wanted
from bisectbot.service.post.letters import Draft, model_of, put
from bisectbot.store.database import now
from bisectbot.store.tables import Outbox, OutboxState, Report


def weekly(context: Context) -> int:
    """Write the digest if one is due and there is anything to tell; returns how many changes it tells of."""
    with context.database.read() as session:
        if not _untold(session):
            return 0
    with context.database.write() as session:
        time = now(session)
        last = session.execute(
            select(Outbox.created).filter_by(kind=Kind.DIGEST.value).order_by(Outbox.created.desc()).limit(1)
        ).scalar_one_or_none()
        if not digest.is_due(None if last is None else rules.ago(context.clock, last, time), time):
            return 0
        rows = _untold(session)
        written = digest.write([_entry(session.get_one(Report, row.report_id)) for row in rows], time)
        assert written is not None
        draft = Draft(written.key, written.subject, written.body, _matter(context, session, time))
        letter = put(context, session, draft, time)
        if letter is None:  # this week had one already, by a faster clock than the calendar's
            return 0
        for row in rows:
            row.digest_id = letter.id
        return len(rows)


def _untold(session: Session) -> list[Outbox]:
    query = select(Outbox).where(
        Outbox.way == Way.DIGEST.value,
        Outbox.state == OutboxState.AWAITING_APPROVAL,
        Outbox.digest_id.is_(None),
        Outbox.report_id.is_not(None),
    )
    return list(session.execute(query.order_by(Outbox.id)).scalars())


def _matter(context: Context, session: Session, time: float) -> Matter:
    """Operators get it; subscribers and the lists that they chose as soon as lists need no approval."""
    mail = context.config.mail
    operators, chosen = rules.mailboxes(mail.operators), rules.mailboxes(mail.digest_to)
    room = max(MOST_RECIPIENTS - len({*operators, *chosen}), 0)
    recipients = Recipients(operators or chosen, wanted.weekly(session)[:room], chosen)
    matter = Matter(Kind.DIGEST, tree="", testcase="", recipients=recipients)
    decision = decide(rules.policy(context, session), matter, rules.record(context, session, time))
    if decision.rung is Rung.LISTS and decision.held is None:
        return matter
    return Matter(Kind.DIGEST, tree="", testcase="", recipients=Recipients(operators), thread_rung=Rung.OPERATORS)


def _entry(report: Report) -> digest.Entry:
    model = model_of(report)
    finding = model.finding
    return digest.Entry(
        commit=report.sha,
        title=model.commit.subject,
        tree=f"{model.tree.name}:{model.tree.branch}",
        kpi=finding.stat,
        host_group=finding.machine.group if finding.machine else "",
        effect=finding.percent,
        confidence=model.evidence.probability if model.evidence else None,
        url=model.archive,
    )
