"""Commands become calls of the service, and an answer. The same for every transport; nothing here knows one.

The order is always: who is it, may they, what exactly is meant (commits as 40 hex digits), then the service. Every
command is logged with who, where, what was written, what it was taken for, and what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from bisectbot.chat import asking, opinions, telling
from bisectbot.chat.answer import Answer
from bisectbot.chat.grammar import VERBS, Command, Dialect, Mistake, Role, parse
from bisectbot.chat.people import People, load_people
from bisectbot.chat.said import Ask, Said
from bisectbot.errors import BisectbotError, InfraError, UserError
from bisectbot.service.commands import Asker, log, number
from bisectbot.service.context import Context
from bisectbot.service.people import rights
from bisectbot.store.tables import Conversation

logger = structlog.get_logger()

Handler = Callable[[Ask], Answer]
HANDLERS: dict[str, Handler] = {**telling.HANDLERS, **asking.HANDLERS, **opinions.HANDLERS}
assert HANDLERS.keys() == VERBS.keys()

_OWN = {"mute", "unmute"}
"""What concerns only whoever says it: for anybody whose address is vouched for."""


@dataclass(frozen=True)
class Desk:
    """Where commands arrive. ``fetch`` gets the mail with a Message-ID from an archive; see `fetching`."""

    context: Context
    people: People
    fetch: Callable[[str], bytes] = field(default=lambda _: b"")

    def hear(self, text: str, dialect: Dialect, said: Said) -> list[Answer]:
        """Answers to the commands in a message; none for talk. Never raises what a message can cause."""
        return [self.answer(found, said) for found in parse(text, dialect)]

    def answer(self, found: Command | Mistake, said: Said) -> Answer:
        """Carry out one command."""
        person = self.people.of(said.identity)
        asker = Asker(person.name, f"{said.identity} {said.place}".strip(), found.raw[:2000] or "help")
        if isinstance(found, Mistake):
            return self._refused(asker, found.message)
        asker.arguments["verb"] = found.verb
        ask = Ask(self.context, found, said, person, asker, self.fetch)
        try:
            self._permit(ask)
            answer = HANDLERS[found.verb](ask)
        except UserError as error:
            return self._refused(asker, " ".join(str(error).split()))
        except BisectbotError as error:
            logger.warning("command failed", verb=found.verb, error=str(error))
            return self._refused(
                asker, "something here does not answer; the operators can see it in the log. Try later"
            )
        if not asker.entries:
            with self.context.database.write() as session:
                log(session, asker, found.raw, answer.head)
        self._remember(answer, said)
        return answer

    def _refused(self, asker: Asker, why: str) -> Answer:
        try:
            with self.context.database.write() as session:
                log(session, asker, asker.raw, why)
        except InfraError as error:
            logger.warning("a command could not be logged", who=asker.name, error=str(error))
        return Answer(why, private=True)

    def _remember(self, answer: Answer, said: Said) -> None:
        """Tell the end of a request in the same place, once however often it was asked for there."""
        if not answer.follow or not said.room:
            return
        with self.context.database.write() as session:
            request, transport = number(answer.follow, "Q"), said.identity.transport
            known = session.query(Conversation).filter_by(request_id=request, transport=transport).all()
            if all(row.place != said.room for row in known):
                session.add(Conversation(request_id=request, transport=transport, place=dict(said.room)))

    def _permit(self, ask: Ask) -> None:
        """Raises UserError unless the person may do this: by role, or because it is their own code or request."""
        verb = VERBS[ask.command.verb]
        if ask.person.role >= verb.role:
            if verb.name in {"cancel", "accept"} and ask.person.role < Role.SHERIFF:
                self._permit_own(ask)
            return
        if verb.role is Role.DEVELOPER and ask.person.mails and (verb.name in _OWN or self._concerned(ask)):
            if verb.name == "cancel":
                self._permit_own(ask)
            return
        have, want = ask.person.role.name.lower(), verb.role.name.lower()
        raise UserError(
            f"{verb.name} is for {want}s, and {ask.person.name} is {have} to me; ask an operator to list you"
        )

    def _permit_own(self, ask: Ask) -> None:
        """Developers cancel what they asked for and accept what is theirs; maintainers of the path may do both."""
        word = ask.about()
        if ask.command.verb == "cancel" and rights.asker_of(self.context, word) == ask.person.name:
            return
        if not self._concerned(ask):
            raise UserError(f"{word} is neither yours nor about your code; a sheriff or its asker can do that")

    def _concerned(self, ask: Ask) -> bool:
        """Whether the person wrote the commit that is meant, or maintains what it touches."""
        if not ask.person.mails:
            return False
        sha = asking.commit_meant(ask)
        return bool(sha) and not rights.speakers(self.context, sha).isdisjoint(ask.person.mails)


def open_desk(context: Context, fetch: Callable[[str], bytes] | None = None) -> Desk:
    """The desk of an installation. Raises ConfigError for a people.yaml that cannot be used."""
    desk = Desk(context, load_people(context.config.chat.people))
    return replace(desk, fetch=fetch) if fetch else desk
