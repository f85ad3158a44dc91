"""Who holds what until when, with a fencing token: leadership, hosts, runs, builds, mails, all alike.

A lease that has ended only means that somebody else *may* take it; until then its holder may still renew it. Whoever
acquires it gets a larger token, and everything written later carries the token, so that an earlier holder's writes
are recognised.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from bisectbot.store.database import now_clause
from bisectbot.store.tables import Lease


@dataclass(frozen=True)
class Grant:
    """A lease that was acquired. ``taken_over``: somebody else had held it and never let go."""

    name: str
    token: int
    taken_over: bool


def acquire(session: Session, name: str, holder: str, ttl: float, floor: int = 0) -> Grant | None:
    """Take the lease ``name`` for ``ttl`` real seconds, or None if another holder has it.

    A holder that asks again keeps its token. New tokens are larger than ``floor`` and than every earlier one.
    """
    assert session.bind is not None
    insert = sqlite.insert if session.bind.dialect.name == "sqlite" else postgresql.insert
    now = now_clause(session)
    before = session.execute(select(Lease.holder).where(Lease.name == name)).scalar_one_or_none()
    statement = insert(Lease).values(name=name, holder=holder, token=floor + 1, until=now + ttl)
    larger = case((Lease.token < floor, floor), else_=Lease.token) + 1
    statement = statement.on_conflict_do_update(
        index_elements=[Lease.name],
        set_={
            "holder": statement.excluded.holder,
            "token": case((Lease.holder == holder, Lease.token), else_=larger),
            "until": statement.excluded.until,
        },
        where=(Lease.until < now) | (Lease.holder == holder),
    )
    token = session.execute(statement.returning(Lease.token)).scalar_one_or_none()
    if token is None:
        return None
    return Grant(name, int(token), taken_over=before not in {None, "", holder})


def renew(session: Session, name: str, token: int, ttl: float) -> bool:
    """Hold on for another ``ttl`` real seconds; False if somebody else has taken it since."""
    statement = (
        update(Lease)
        .where(Lease.name == name, Lease.token == token)
        .values(until=now_clause(session) + ttl)
        .returning(Lease.token)
    )
    return session.execute(statement).scalar_one_or_none() is not None


def release(session: Session, name: str, token: int) -> None:
    """Let go; nothing happens if somebody else has taken it since. The row stays, so that tokens only ever grow."""
    session.execute(update(Lease).where(Lease.name == name, Lease.token == token).values(holder="", until=0.0))


def forget(session: Session, name: str) -> None:
    """Drop a lease whose subject is finished for good and remembers its last token itself."""
    session.execute(delete(Lease).where(Lease.name == name))


def holder(session: Session, name: str) -> str | None:
    """Who holds ``name`` now, None if nobody does."""
    query = select(Lease.holder).where(Lease.name == name, Lease.until >= now_clause(session))
    return session.execute(query).scalar_one_or_none()


def holder_of(session: Session, name: str) -> str | None:
    """Who acquired ``name`` last, whether or not the time has ended; None after release."""
    return session.execute(select(Lease.holder).where(Lease.name == name)).scalar_one_or_none() or None


def expired(session: Session, prefix: str) -> list[str]:
    """The names beginning with ``prefix`` whose time has ended."""
    query = select(Lease.name).where(Lease.name.startswith(prefix, autoescape=True), Lease.until < now_clause(session))
    return list(session.execute(query).scalars())
