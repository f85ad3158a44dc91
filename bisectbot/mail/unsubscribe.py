"""Leaving with one click (RFC 8058): links that name one person, only in that person's own copy.

A link that unsubscribes somebody must not stand in a copy that reaches a public archive, where anybody may follow
it. So the message that `compose` makes names the page alone; a copy for one person names that person's link.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from bisectbot.mail import headers

_TAG = 16  # octets of the HMAC that are kept: 128 bits


def token(address: str, secret: bytes) -> str:
    """An unforgeable name for ``address`` that fits a URL's path."""
    key = address.lower().encode()
    return base64.urlsafe_b64encode(_tag(key, secret) + key).decode().rstrip("=")


def address_of(text: str, secret: bytes) -> str | None:
    """The address that `token` put into ``text``; None if it was not made with ``secret``."""
    try:
        octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    tag, key = octets[:_TAG], octets[_TAG:]
    return key.decode() if key and key.isascii() and hmac.compare_digest(tag, _tag(key, secret)) else None


def _tag(key: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, b"unsubscribe:" + key, hashlib.sha256).digest()[:_TAG]


def personal_copy(raw: bytes, url: str) -> bytes:
    """``raw`` with ``url`` as its one-click List-Unsubscribe link beside the mailto one."""
    head, _, text = raw.partition(b"\r\n\r\n")
    kept: list[bytes] = []
    mailto: list[str] = []
    dropping = False
    for line in head.split(b"\r\n"):
        dropping = line.lower().startswith(b"list-unsubscribe") or (dropping and line[:1] in {b" ", b"\t"})
        if not dropping:
            kept.append(line)
        else:
            mailto += [part for part in line.decode("ascii").replace(",", " ").split() if part.startswith("<mailto:")]
    own = headers.tokens("List-Unsubscribe", [*mailto, f"<{url}>"], separator=",")
    own += headers.tokens("List-Unsubscribe-Post", ["List-Unsubscribe=One-Click"])
    # Before the MIME headers, which stay last and together.
    place = next((n for n, line in enumerate(kept) if line.lower().startswith(b"mime-version:")), len(kept))
    kept[place:place] = own.encode("ascii").rstrip(b"\r\n").split(b"\r\n")
    return b"\r\n".join(kept) + b"\r\n\r\n" + text
