"""Notes to the operators: what only they can mend. Each is one mail, written in the transaction that found it out."""

from __future__ import annotations

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail.message import Kind
from bisectbot.mail.policy import Matter, Rung
from bisectbot.mail.recipients import Recipients
from bisectbot.service.context import Context
from bisectbot.service.post.letters import Draft, put
from bisectbot.store.database import now
from bisectbot.store.tables import Build, Host, HostState, Report, Run, RunState

log = structlog.get_logger()

SILENT_S = 3600.0
"""Farm seconds without a word from its worker after which a host is lost."""
_WORSE = {HostState.SUSPECT, HostState.BAD}


def note(context: Context, session: Session, key: str, subject: str, lines: list[str]) -> bool:
    """Tell the operators once; ``key`` names the occasion. False if they have been told."""
    time = now(session)
    body = "".join(f"{line}\n" for line in [*lines, "", "-- ", "bisectbot, to its operators"])
    matter = Matter(Kind.NOTE, tree="", testcase="", recipients=Recipients(()), thread_rung=Rung.OPERATORS)
    written = put(context, session, Draft(f"note/{key}", f"bisectbot: {subject}", body, matter), time)
    if written is not None:
        written.held = []
        log.warning("note to the operators", subject=subject)
    return written is not None


def held(context: Context, session: Session, report: Report, reasons: list[str]) -> bool:
    """Tell of a report that waits for them."""
    lines = [
        f"R{report.id} is not sent:",
        *(f"    {reason}" for reason in reasons),
        "",
        f"    {report.subject}",
        "",
        "To see the mail, to send it, or to refuse it for good:",
        f"    bisectbot report show R{report.id} --as-mail",
        f"    bisectbot approve R{report.id}",
        f"    bisectbot reject R{report.id} --why '…'",
    ]
    return note(context, session, f"held/R{report.id}", f"R{report.id} waits for approval", lines)


def hosts(context: Context) -> int:
    """Tell of hosts that are lost: out of order, or silent for an hour. Returns how many notes are new."""
    with context.database.read() as session:
        time = now(session)
        lost = [
            (row.id, what)
            for row in session.execute(select(Host)).scalars()
            if (what := _lost(context, session, row, time))
        ]
    if not lost:
        return 0
    with context.database.write() as session:
        return sum(_tell(context, session, session.get_one(Host, host), key) for host, key in lost)


def _lost(context: Context, session: Session, host: Host, time: float) -> str:
    """The occasion, "" if there is none. A host without work has nothing to say."""
    if host.state in _WORSE:
        return f"{host.state.value}/{host.since:.0f}"
    long_ago = time - context.clock.real(SILENT_S)
    if host.state in {HostState.MAINTENANCE, HostState.RETIRED} or host.seen == 0 or host.seen > long_ago:
        return ""
    ignored = (
        select(Run.id)
        .join(Build, Run.build_id == Build.id)
        .where(Run.group_id == host.group_id, Run.state == RunState.QUEUED, Run.not_before < long_ago)
        .where(Run.created < long_ago, Build.finished < long_ago)
    )
    return f"silent/{host.seen:.0f}" if session.execute(ignored.limit(1)).scalar_one_or_none() is not None else ""


def _tell(context: Context, session: Session, host: Host, occasion: str) -> bool:
    what = occasion.partition("/")[0]
    reason = host.reason if what != "silent" else f"its worker has not spoken for {SILENT_S / 60:.0f} minutes"
    lines = [
        f"Host {host.name} is {what}: {reason or 'no reason was given'}.",
        "",
        "Nothing is measured on it until that is mended. Then:",
        f"    bisectbot hosts {host.name} --set good --why '…'",
    ]
    return note(context, session, f"host/{host.name}/{occasion}", f"host {host.name} is {what}", lines)
