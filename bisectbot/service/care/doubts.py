"""Verdicts in doubt: they rest on runs of a host that, as its canary says by now, no longer measured what it used to.

Nobody knows when between its last good canary and the first bad one the host changed, so all that it measured since the
good one is in doubt. What has not been mailed yet is held until a person has looked.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from bisectbot.service.context import Context
from bisectbot.service.post import notes
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Experiment,
    Finding,
    Host,
    HostState,
    Outbox,
    OutboxState,
    Purpose,
    Report,
    ReportState,
    Run,
    RunState,
)

MOST_NAMED = 20


def moved(host: Host) -> bool:
    """Whether its canary has found it changed, some time before anybody noticed."""
    return host.state in {HostState.SUSPECT, HostState.BAD} and host.trusted < host.since


def hold(context: Context, session: Session, host: Host) -> tuple[int, ...]:
    """Hold the mails that rest on what ``host`` has measured since its last good canary, if it has moved; the
    bisections (their numbers) whose verdict does, mailed or not."""
    rests = (
        select(Experiment.bisection_id).join(Run, Run.experiment_id == Experiment.id).where(*_doubtful(session, host))
    )
    over = (Bisection.state == BisectionState.DONE, Bisection.verdict.is_not(None))
    query = select(Bisection.id).where(Bisection.id.in_(rests), *over).order_by(Bisection.id)
    found = tuple(session.execute(query).scalars())
    reports = select(Finding.report_id).where(Finding.bisection_id.in_(found))
    unsent = (Outbox.state == OutboxState.QUEUED, Outbox.attempts == 0)
    for row in session.execute(select(Outbox).where(Outbox.report_id.in_(reports), *unsent)).scalars():
        report = session.get_one(Report, row.report_id)
        row.held, row.state = [*row.held, _why(host)], OutboxState.AWAITING_APPROVAL
        report.state, report.reason = ReportState.HELD, "; ".join(row.held)
        notes.held(context, session, report, row.held)
    return found


def of(session: Session, bisection: int) -> str:
    """Why a person should look at the bisection's verdict before it is mailed, "" if what it rests on is sound."""
    hosts = select(Run.host_id).join(Experiment, Run.experiment_id == Experiment.id)
    for host in session.execute(
        select(Host).where(Host.id.in_(hosts.where(Experiment.bisection_id == bisection)))
    ).scalars():
        mine = select(Run.id).join(Experiment, Run.experiment_id == Experiment.id)
        found = mine.where(Experiment.bisection_id == bisection, *_doubtful(session, host)).limit(1)
        if session.execute(found).first() is not None:
            return _why(host)
    return ""


def told(bisections: Sequence[int]) -> str:
    """Which verdicts are in doubt, as a clause for the host's reason."""
    if not bisections:
        return ""
    names = [f"B{number}" for number in bisections[-MOST_NAMED:]]
    more = f" and {len(bisections) - len(names)} more" if len(bisections) > len(names) else ""
    noun = "verdict since its last good one is" if len(bisections) == 1 else "verdicts since its last good one are"
    return f"; {len(bisections)} {noun} in doubt: {', '.join(names)}{more}"


def _doubtful(session: Session, host: Host) -> tuple[ColumnElement[bool], ...]:
    """Conditions for the runs of ``host`` that are in doubt."""
    good = (Run.wanted_host_id == host.id, Run.purpose == int(Purpose.CANARY), Run.state == RunState.DONE)
    last = session.execute(select(func.max(Run.finished)).where(*good, Run.created < host.trusted)).scalar()
    since = host.since if last is None or not moved(host) else float(last)
    return Run.host_id == host.id, Run.state == RunState.DONE, Run.finished > since, Run.finished <= host.since


def _why(host: Host) -> str:
    return f"it rests on runs of {host.name} since its last good canary, which has moved since"
