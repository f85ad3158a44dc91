"""Messages that come by HTTP: what arrived, what it says, why it is refused."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bisectbot.chat.grammar import SLASH, Dialect
from bisectbot.chat.said import Said


@dataclass(frozen=True)
class Incoming:
    """One request, its body as it came. ``headers`` have lower-case names; ``source`` is the caller's address."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def header(self, name: str) -> str:
        """A header's value, "" if it is missing."""
        return self.headers.get(name, "")


@dataclass(frozen=True)
class Heard:
    """A message that is what it claims to be. ``said`` None: nothing to do but answer ``reply``.

    ``once`` names it: what has come before is not obeyed again. ``later`` is where an answer may be posted that takes
    longer; ``speak``: answers are spoken in the room, not returned.
    """

    said: Said | None
    text: str = ""
    dialect: Dialect = SLASH
    once: str = ""
    later: str = ""
    speak: bool = False
    reply: dict[str, Any] = field(default_factory=dict)


class Refused(Exception):  # noqa: N818 - what is done, not what went wrong
    """A request that is not obeyed, with the HTTP status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def form(body: bytes) -> dict[str, str]:
    """The fields of a form, the last value of each. Raises Refused for too many of them."""
    try:
        pairs = urllib.parse.parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise Refused(400, "too many fields") from None
    return dict(pairs)


def text_of(told: Mapping[str, Any], key: str) -> str:
    """A field that ought to be text; a number as its digits, anything else as ""."""
    value = told.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    return value if isinstance(value, str) else ""
