"""A message as it arrived, and a command with everything that its handler needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bisectbot.chat.grammar import Command, Role
from bisectbot.chat.people import Identity, Person
from bisectbot.errors import UserError
from bisectbot.service.commands import Asker, number
from bisectbot.service.context import Context
from bisectbot.service.people.asks import Limits


@dataclass(frozen=True)
class Said:
    """Who said it where. ``room`` is what the transport needs to speak there again, empty where it cannot;
    ``report`` (``R12``) is what the conversation is about, ``patch`` what came with the message."""

    identity: Identity
    place: str = ""
    room: dict[str, str] = field(default_factory=dict)
    report: str = ""
    patch: bytes = b""


@dataclass(frozen=True)
class Ask:
    """One command of one person. ``asker`` goes to the service; what was resolved is noted in its arguments."""

    context: Context
    command: Command
    said: Said
    person: Person
    asker: Asker
    fetch: Callable[[str], bytes]

    @property
    def words(self) -> tuple[str, ...]:
        """The positional arguments but ``confirm``."""
        return tuple(word for word in self.command.words if word.casefold() != "confirm")

    @property
    def confirmed(self) -> bool:
        return len(self.words) < len(self.command.words)

    @property
    def operator(self) -> bool:
        return self.person.role is Role.OPERATOR

    @property
    def limits(self) -> Limits | None:
        """What the person may have at a time; operators have no limits."""
        chat = self.context.config.chat
        return None if self.operator else Limits(chat.running, chat.daily_host_hours)

    def about(self) -> str:
        """The id that the command begins with, or the report of the conversation."""
        if self.words:
            return self.words[0].upper()
        if self.said.report:
            return self.said.report
        raise UserError(f"{self.command.verb} what? give an id, as in `{self.command.verb} R12`")

    def report(self) -> int:
        """The report that is meant. Raises UserError for what is none."""
        return number(self.about(), "R")
