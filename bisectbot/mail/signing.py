"""DKIM (RFC 6376): each message is signed just before it is handed over, so a new key serves old letters too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dkim
from dns.exception import DNSException

from bisectbot.errors import UserError

# RFC 8058 wants both unsubscribe headers covered; the second naming of the identity fields stops additions.
_SIGNED = (
    b"From", b"To", b"Cc", b"Reply-To", b"Subject", b"Date", b"Message-ID", b"In-Reply-To", b"References",
    b"Auto-Submitted", b"List-Id", b"List-Unsubscribe", b"List-Unsubscribe-Post", b"MIME-Version", b"Content-Type",
    b"Content-Transfer-Encoding",
)  # fmt: skip
_MOST_SIGNATURES = 5  # each costs a look-up
_ONCE = (b"From", b"To", b"Cc", b"Subject", b"Date", b"Message-ID")

DnsLookup = Callable[..., bytes | None]  # (name, timeout=5) → the TXT record


@dataclass(frozen=True)
class Dkim:
    """Where the key is: ``key_file`` is a PEM private key, published at ``<selector>._domainkey.<domain>``."""

    domain: str
    selector: str
    key_file: Path

    def sign(self, raw: bytes) -> bytes:
        """``raw`` (CRLF) with a DKIM-Signature before it, relaxed/relaxed. Raises UserError for an unusable key."""
        try:
            key = self.key_file.read_bytes()
        except OSError as error:
            raise UserError(f"DKIM key {self.key_file}: {error.strerror}; correct smtp.dkim.key_file") from error
        present = {line.split(b":", 1)[0].strip().lower() for line in raw.split(b"\r\n\r\n", 1)[0].split(b"\r\n")}
        signed = [name for name in _SIGNED if name.lower() in present] + list(_ONCE)
        try:
            header: bytes = dkim.sign(
                raw,
                self.selector.encode(),
                self.domain.encode(),
                key,
                canonicalize=(b"relaxed", b"relaxed"),
                include_headers=signed,
            )
        except (dkim.DKIMException, ValueError) as error:
            raise UserError(f"DKIM key {self.key_file}: {error}; make one with `openssl genrsa 2048`") from error
        return header + raw


def vouched_for(raw: bytes, address: str, dns: DnsLookup | None = None) -> bool:
    """Whether a domain that ``address`` belongs to has signed ``raw``: only then may it give commands.

    Looks up keys in DNS unless ``dns`` does. A list that changed subject or body breaks the signature.
    """
    domain = address.rpartition("@")[2].lower()
    message = dkim.DKIM(raw)
    if sum(name.lower() == b"from" for name, _ in message.headers) != 1:
        return False  # the signature would cover only one of them
    signatures = [value for name, value in message.headers if name.lower() == b"dkim-signature"]
    for index, value in enumerate(signatures[:_MOST_SIGNATURES]):
        match = re.search(rb"(?:^|;)\s*d\s*=\s*([^;\s]+)", value)
        signer = match[1].lower().decode("ascii", "replace") if match else ""
        if re.search(rb"(?:^|;)\s*l\s*=", value):
            continue  # covers a part of the body only
        if not aligned(domain, signer):
            continue
        try:
            if message.verify(index, **({"dnsfunc": dns} if dns else {})):
                return True
        except (dkim.DKIMException, DNSException, ValueError):  # also a domain that cannot be one
            continue
    return False


def aligned(domain: str, signer: str) -> bool:
    """Whether a signature of ``signer`` speaks for a sender in ``domain``: the same, or one above it."""
    return domain == signer or ("." in signer and domain.endswith(f".{signer}"))
