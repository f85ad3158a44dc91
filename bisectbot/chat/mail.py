"""Mail: commands in people's mails. Whether the sender is who they say was decided where the mail came in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from bisectbot.chat.answer import Answer, plain
from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import MAIL, parse
from bisectbot.chat.people import Identity
from bisectbot.chat.said import Said
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Kind, is_message_id, reply_subject
from bisectbot.mail.policy import Decision, Matter, Rung, Way
from bisectbot.mail.recipients import Recipients
from bisectbot.mail.thread import Thread
from bisectbot.service.context import Context
from bisectbot.service.post import rules
from bisectbot.service.post.inbox import MailCommand
from bisectbot.service.post.letters import Draft, put
from bisectbot.store.database import now

TRIGGER = "#bisectbot"


def handler(desk: Desk) -> Callable[[Context, MailCommand], str]:
    """What `service.post.inbox.obey` wants: the commands of one mail become the text of its answer."""

    def obey(_context: Context, asked: MailCommand) -> str:
        said = said_in(asked)
        found = parse("\n".join(f"{TRIGGER} {line}" for line in asked.lines), MAIL)
        parts = [f"> {TRIGGER} {one.raw}\n\n{render(desk.answer(one, said))}" for one in found]
        if found and not asked.vouched:
            address = asked.sender.address
            parts.append(f"Nothing vouches for {address}: the mail carries no valid DKIM signature of that domain.")
        return "\n\n".join(parts)

    return obey


def said_in(asked: MailCommand) -> Said:
    """Who wrote it, and what came with it. Without a signature of the sender's domain it is nobody's."""
    mail, address = asked.message, asked.sender.address
    room = {"to": address, "subject": mail.subject[:200], "message_id": mail.message_id}
    return Said(
        Identity("mail", address if asked.vouched else ""),
        mail.message_id,
        room if asked.vouched else {},
        f"R{asked.report}" if asked.report is not None else "",
        mail.patch.encode("utf-8", "surrogateescape"),
    )


def render(answer: Answer) -> str:
    """As plain text; what is said of a patch never begins a line as a patch does."""
    lines = plain(answer).split("\n")
    return "\n".join(f" {line}" if line.startswith(("+++ ", "--- ", "diff ")) else line for line in lines)


@dataclass(frozen=True)
class MailSpeaker:
    """Tells the end of a request by mail, to the asker alone, in the thread where they asked."""

    context: Context
    edits: bool = False

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:  # noqa: ARG002 - nothing is edited
        """See `Speaker`. The letter has a name of its own: told twice, it leaves once."""
        sender = Mailbox(room["to"])
        name = hashlib.sha256(f"{sorted(room.items())} {answer.head}".encode()).hexdigest()[:16]
        with self.context.database.write() as session:
            policy = rules.policy(self.context, session)
            asks = sender.key in {box.key for box in policy.operators}
            allowed = policy.rung >= Rung.AUTHOR or (asks and policy.rung >= Rung.OPERATORS)
            draft = Draft(
                key=f"outcome/{name}",
                subject=reply_subject(room["subject"] or "bisectbot"),
                body=render(answer) + "\n",
                matter=Matter(Kind.TEST, tree="", testcase="", recipients=Recipients((sender,))),
                thread=Thread(room["message_id"]) if is_message_id(room["message_id"]) else None,
                decision=Decision(
                    Way.MAIL if allowed else Way.FILE, Rung.OPERATORS if asks else Rung.AUTHOR, (sender,)
                ),
            )
            put(self.context, session, draft, now(session))
        return ""
