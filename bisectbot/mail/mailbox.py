"""Mail addresses: one person or list, and the lines that name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import getaddresses

from bisectbot.errors import UserError

# What every mail server takes (RFC 5321 with 7-bit local parts); quoted local parts and SMTPUTF8 are not sent to.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Mailbox:
    """Somebody who can get mail: a person or a list.

    ``address`` is 7-bit ``local@domain``; ``name`` free text, possibly empty. Raises UserError if ``address``
    cannot be used in an SMTP dialogue.
    """

    address: str
    name: str = ""

    def __post_init__(self) -> None:
        if not _ADDRESS.fullmatch(self.address):
            raise UserError(f"mail address {self.address!r}: not a plain local@domain in ASCII; correct or remove it")

    @property
    def key(self) -> str:
        """What two spellings of one mailbox share: the address in lower case."""
        return self.address.lower()

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address


def parse_mailboxes(text: str) -> tuple[Mailbox, ...]:
    """The usable mailboxes in ``text`` (``Name <a@b>, c@d``); what cannot be mailed to is left out."""
    found = []
    for name, address in getaddresses([" ".join(text.split())]):
        if _ADDRESS.fullmatch(address):
            found.append(Mailbox(address, name))
    return tuple(found)


def distinct(mailboxes: tuple[Mailbox, ...]) -> tuple[Mailbox, ...]:
    """``mailboxes`` in their order, each address once."""
    first: dict[str, Mailbox] = {}
    for mailbox in mailboxes:
        first.setdefault(mailbox.key, mailbox)
    return tuple(first.values())
