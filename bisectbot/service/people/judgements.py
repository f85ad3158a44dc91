"""What people say of reports: was it right? The record that calibration and the rule on lists are made from."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.bisect import Verdict
from bisectbot.jobs import wire
from bisectbot.store.database import now
from bisectbot.store.tables import Bisection, Finding, Judged, Judgement, Report

RIGHT = {Judged.WRONG: False, Judged.ACCEPTED: True, Judged.FIXED: True}
"""A duplicate says nothing on whether the report was right."""


@dataclass(frozen=True)
class Sample:
    """A judged report: the probability that it stated, and whether it was right."""

    report: str
    probability: float
    right: bool


def judge(session: Session, report: Report, judged: Judged, who: str, why: str) -> Judgement:
    """Record an opinion; the last one on a report holds. The session must be a writing one."""
    row = Judgement(
        report_id=report.id,
        judged=judged,
        who=who,
        why=why,
        probability=stated_probability(session, report),
        at=now(session),
    )
    session.add(row)
    return row


def standing(session: Session, report: int) -> Judgement | None:
    """The opinion on one report that holds, None if nobody has one."""
    query = select(Judgement).filter_by(report_id=report).order_by(Judgement.id.desc()).limit(1)
    return session.execute(query).scalar_one_or_none()


def right(session: Session) -> list[bool]:
    """Whether each judged report was right, the oldest judgement first: what `mail.policy.Record` wants."""
    return [RIGHT[row.judged] for row in _standing(session)]


def samples(session: Session) -> list[Sample]:
    """The judged reports that had stated a probability, the oldest judgement first."""
    return [
        Sample(f"R{row.report_id}", row.probability, RIGHT[row.judged])
        for row in _standing(session)
        if row.probability is not None
    ]


def stated_probability(session: Session, report: Report) -> float | None:
    """What the report's first bisection gave its culprit."""
    query = select(Bisection).join(Finding, Finding.bisection_id == Bisection.id).where(Finding.report_id == report.id)
    row = session.execute(query.order_by(Finding.id).limit(1)).scalar_one_or_none()
    return wire.from_plain(Verdict, row.verdict).probability if row is not None and row.verdict else None


def _standing(session: Session) -> list[Judgement]:
    """The last opinion on each report that says whether it was right."""
    rows = session.execute(select(Judgement).where(Judgement.judged.in_(RIGHT)).order_by(Judgement.id)).scalars()
    last = {row.report_id: row for row in rows}
    return sorted(last.values(), key=lambda row: row.id)
