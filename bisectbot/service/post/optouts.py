"""Who wants no mail: people say so with one click, by mail or in chat, and can come back."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail import unsubscribe
from bisectbot.service.context import Context
from bisectbot.service.post import rules
from bisectbot.store.database import now
from bisectbot.store.tables import Bounce, OptOut


def opt_out(session: Session, address: str, how: str) -> bool:
    """No more mail to ``address``, not even what is on its way; False if that was so already."""
    key = address.lower()
    if session.execute(select(OptOut.id).filter_by(address=key)).scalar_one_or_none() is not None:
        return False
    session.add(OptOut(address=key, how=how, at=now(session)))
    return True


def opt_in(session: Session, address: str) -> bool:
    """Mail to ``address`` again, also if it had bounced; False if nothing stood against it."""
    key = address.lower()
    row = session.execute(select(OptOut).filter_by(address=key)).scalar_one_or_none()
    if row is not None:
        session.delete(row)
    bounced = select(Bounce.id).where(Bounce.address == key, Bounce.action == "failed")
    dead = session.execute(bounced.limit(1)).scalar_one_or_none() is not None
    if dead:
        time = now(session)
        mark = Bounce(
            notification=f"operator/{time}", address=key, action="delivered", status="", diagnostic="", at=time
        )
        session.add(mark)
    return row is not None or dead


def owner(context: Context, token: str) -> str | None:
    """The address whose unsubscribe link ends in ``token``; None if we never made it."""
    return unsubscribe.address_of(token, rules.unsubscribe_secret(context))


def leave(context: Context, token: str) -> str | None:
    """Follow an unsubscribe link; returns the address that gets no more mail, None for a link of nobody's."""
    address = owner(context, token)
    if address is not None:
        with context.database.write() as session:
            opt_out(session, address, "one-click")
    return address
