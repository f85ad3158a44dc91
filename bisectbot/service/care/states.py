"""A host's state: what it was changed to, why, when and by whom."""

from __future__ import annotations

from sqlalchemy.orm import Session

from bisectbot.store.database import now
from bisectbot.store.tables import Host, HostState

TRUSTED = frozenset({HostState.GOOD, HostState.UNKNOWN})
"""States in which a host is given whatever there is to do."""


def change(session: Session, host: Host, state: HostState, reason: str) -> None:
    """``reason`` ends with who changed it. Its failures are counted anew, its worker is told to look at once."""
    time = now(session)
    if host.state in TRUSTED and state not in TRUSTED:
        host.trusted = time
    host.state, host.reason, host.since, host.failures, host.hinted = state, reason, time, 0, 0.0
