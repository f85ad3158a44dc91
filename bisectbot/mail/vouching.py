"""What our own mail server says of who sent a mail: Authentication-Results (RFC 8601), of that server only."""

from __future__ import annotations

import email
import re
from email.message import Message
from email.policy import compat32

from bisectbot.mail.signing import aligned

_PASS = re.compile(r"(dkim|dmarc)(?:/1)?=pass")
_PLAIN = re.compile(r"[\w@.+-]", re.ASCII)


def vouched_by(raw: bytes, address: str, server: str) -> bool:
    """Whether ``server`` (its authserv-id) wrote that DKIM or DMARC holds for the domain of ``address``.

    What others wrote counts for nothing. A mail in which two headers bear our server's name is believed in nothing:
    it adds one, so the other was there before, and RFC 8601 has it take such ones out.
    """
    message = email.message_from_bytes(raw, policy=compat32)
    if len(message.get_all("From", [])) != 1:
        return False  # the result may be about either
    ours = [clauses for clauses in _results(message) if clauses[0].split()[:1] == [server.lower()]]
    domain = address.rpartition("@")[2].lower()
    return len(ours) == 1 and any(_holds(clause, domain) for clause in ours[0][1:])


def _results(message: Message) -> list[list[str]]:
    """Each header as its clauses, the server's name first."""
    return [_clauses(str(value)) for value in message.get_all("Authentication-Results", [])]


def _holds(clause: str, domain: str) -> bool:
    result, *properties = re.sub(r"\s*=\s*", "=", clause).split() or [""]
    match = _PASS.fullmatch(result)
    if match is None:
        return False
    if match[1] == "dmarc":
        return properties.count(f"header.from={domain}") == 1
    named = [value for key, _, value in (each.partition("=") for each in properties) if key == "header.d"]
    named = named or [each.rpartition("@")[2] for each in properties if each.startswith("header.i=")]
    return len(named) == 1 and aligned(domain, named[0])


def _clauses(value: str) -> list[str]:
    """``value`` at its semicolons, in lower case, without comments; nothing that stands in quotes can end or begin one.

    Senders choose what stands there, as in ``smtp.mailfrom="; dkim=pass"@example.org``. What does not end is empty.
    """
    clauses, depth, quoted = [""], 0, False
    characters = iter(value.lower())
    for one in characters:
        character = next(characters, "") and "?" if one == "\\" else one
        if character == '"' and not depth:
            quoted = not quoted
        elif quoted:
            clauses[-1] += character if _PLAIN.fullmatch(character) else "?"
        elif character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
            clauses[-1] += " "
        elif not depth:
            clauses += [""] if character == ";" else []
            clauses[-1] += character if character != ";" else ""
    return [""] if depth or quoted else clauses
