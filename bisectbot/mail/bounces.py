"""Delivery status notifications (RFC 3464), and which addresses no longer get mail."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message

from bisectbot.mail import thread
from bisectbot.mail.message import Identity

HARD_BOUNCES = 2  # of different letters, before an address is suppressed


@dataclass(frozen=True)
class Bounce:
    """What became of a letter at one address. ``letter`` is its Message-ID, empty if the notification hides it."""

    address: str
    action: str  # failed, delayed, delivered, relayed, expanded
    status: str  # 5.1.1
    diagnostic: str = ""
    letter: str = ""

    @property
    def hard(self) -> bool:
        """Whether it failed for good and will fail again."""
        return self.action == "failed" and self.status.startswith("5.")


def parse(message: Message) -> tuple[Bounce, ...]:
    """The recipients in a delivery status notification; empty for any other mail.

    Anybody can write one: believe it for letters that were sent, and for addresses that they were sent to.
    """
    if message.get_content_type() != "multipart/report":
        return ()
    found: list[Bounce] = []
    for part in message.walk():
        if part.get_content_type() == "message/delivery-status":
            blocks = part.get_payload()
            found += [
                _bounce(block, _letter(message)) for block in blocks if isinstance(block, Message) and _recipient(block)
            ]
    return tuple(found)


def suppressed(history: Iterable[Bounce]) -> frozenset[str]:
    """The addresses, in lower case, that hard bounces of two letters have shown to be dead.

    A letter that is known to have arrived since (``delivered``) takes an address off again. Oldest first.
    """
    hard: dict[str, set[str]] = defaultdict(set)
    for bounce in history:
        key = bounce.address.lower()
        if bounce.hard:
            hard[key].add(bounce.letter or f"unknown {len(hard[key])}")
        elif bounce.action == "delivered":
            hard.pop(key, None)
    return frozenset(address for address, letters in hard.items() if len(letters) >= HARD_BOUNCES)


def outbox_of(addresses: Iterable[str], identity: Identity, local: str = "bounce") -> int | None:
    """The outbox row whose variable return path (`smtp.return_path`) is among ``addresses``."""
    pattern = re.compile(rf"{re.escape(local)}\+(\d{{1,18}})@{re.escape(identity.domain)}", re.IGNORECASE)
    for address in addresses:
        if match := pattern.fullmatch(address.strip()):
            return int(match[1])
    return None


def _bounce(block: Message, letter: str) -> Bounce:
    status = re.match(r"[245]\.\d{1,3}\.\d{1,3}", str(block.get("Status", "")).strip())
    diagnostic = str(block.get("Diagnostic-Code", "")).partition(";")[2] or str(block.get("Diagnostic-Code", ""))
    return Bounce(
        _recipient(block),
        str(block.get("Action", "")).strip().lower(),
        status[0] if status else "",
        " ".join(diagnostic.split())[:300],
        letter,
    )


def _recipient(block: Message) -> str:
    """The address that we wrote to (Original-Recipient), else the one it ended at."""
    for name in ("Original-Recipient", "Final-Recipient"):
        _, _, address = str(block.get(name, "")).partition(";")
        if "@" in address:
            return address.strip().strip("<>")
    return ""


def _letter(message: Message) -> str:
    """The Message-ID of the returned letter, from its copy or its headers."""
    for part in message.walk():
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload()
            if isinstance(inner, list) and inner and isinstance(inner[0], Message):
                return next(iter(thread.message_ids(inner[0], "Message-ID")), "")
        if part.get_content_type() == "text/rfc822-headers":
            match = re.search(r"^Message-ID:\s*(<[^<>\s]+>)", str(part.get_payload()), re.IGNORECASE | re.MULTILINE)
            return match[1] if match else ""
    return ""
