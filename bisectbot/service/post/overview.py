"""The state of mail at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from bisectbot.mail.policy import DAY, HOUR
from bisectbot.service.context import Context
from bisectbot.service.post import rules
from bisectbot.store.database import now
from bisectbot.store.tables import OptOut, Outbox, OutboxState

_OVER = (OutboxState.SENT, OutboxState.CANCELLED)


@dataclass(frozen=True)
class OpenLetter:
    id: int
    kind: str
    state: str
    waiting: tuple[str, ...]
    error: str


@dataclass(frozen=True)
class MailOverview:
    """``stopped`` says by whom and why, "" if mail leaves; ``right`` of ``judged`` reports within ``window`` were."""

    policy: str
    stopped: str
    judged: int
    right: int
    window: int
    proven: bool
    last_hour: int
    hourly_cap: int
    last_day: int
    daily_cap: int
    open: tuple[OpenLetter, ...]
    opted_out: tuple[tuple[str, str], ...]
    suppressed: tuple[str, ...]


def mail_overview(context: Context) -> MailOverview:
    """How far mail goes, what stops it, what waits."""
    mail = context.config.mail
    with context.database.read() as session:
        time = now(session)
        policy, record = rules.policy(context, session), rules.record(context, session, time)
        switch = rules.stop_switch(session)
        letters = session.execute(select(Outbox).where(Outbox.state.not_in(_OVER)).order_by(Outbox.id)).scalars()
        out = session.execute(select(OptOut).order_by(OptOut.address)).scalars()
        stopped = f"{switch.why} ({switch.who})" if switch else ("by configuration" if mail.stopped else "")
        configured = [(address, "by configuration") for address in mail.opted_out]
        last = list(record.right)[-policy.window :]
        return MailOverview(
            policy=mail.policy.value,
            stopped=stopped,
            judged=len(last),
            right=sum(last),
            window=policy.window,
            proven=len(last) == policy.window and sum(last) / len(last) >= policy.precision,
            last_hour=sum(at > time - HOUR for at in record.sent),
            hourly_cap=policy.hourly_cap,
            last_day=sum(at > time - DAY for at in record.sent),
            daily_cap=policy.daily_cap,
            open=tuple(
                OpenLetter(row.id, row.kind, row.state.value, tuple(row.waiting), row.last_error) for row in letters
            ),
            opted_out=(*configured, *((row.address, row.how) for row in out)),
            suppressed=tuple(sorted(policy.suppressed)),
        )
