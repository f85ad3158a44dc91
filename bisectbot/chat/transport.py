"""What a transport is to the rest: something that can speak in a room again, and perhaps edit what it said."""

from __future__ import annotations

from typing import Protocol

import structlog
from sqlalchemy import select

from bisectbot.chat import telling
from bisectbot.chat.answer import Answer
from bisectbot.errors import InfraError, UserError
from bisectbot.service.context import Context
from bisectbot.store.tables import Conversation

log = structlog.get_logger()


class Speaker(Protocol):
    """``edits``: it can change what it said, so progress costs nobody's attention; else only the end is told."""

    @property
    def edits(self) -> bool: ...

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:
        """Say ``answer`` in ``room``, or change ``message`` into it; returns the message's id. Raises InfraError."""


def tell(context: Context, speakers: dict[str, Speaker]) -> int:
    """Tell whoever waits for a request how it goes, and how it ended; returns how many messages that took."""
    with context.database.read() as session:
        query = select(Conversation).where(Conversation.open, Conversation.transport.in_(speakers))
        waiting = session.execute(query.order_by(Conversation.id)).scalars().all()
    return sum(_tell(context, row, speakers[row.transport]) for row in waiting)


def _tell(context: Context, row: Conversation, speaker: Speaker) -> bool:
    over = telling.over(context, f"Q{row.request_id}")
    if not over and not speaker.edits:
        return False
    answer = telling.request(context, f"Q{row.request_id}")
    text = "\n".join([answer.head, *answer.lines])
    message = row.message
    said = text != row.told
    if said:
        try:
            message = speaker.speak(row.place, answer, row.message)
        except InfraError as error:
            log.warning("could not tell; it will be tried again", request=row.request_id, error=str(error))
            return False
        except UserError as error:  # the room is gone
            log.warning("could not tell; given up", request=row.request_id, error=str(error))
            over = True
    with context.database.write() as session:
        stored = session.get_one(Conversation, row.id)
        stored.message, stored.told, stored.open = message, text, not over
    return said
