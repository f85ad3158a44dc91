"""DKIM (RFC 6376): each message is signed just before it is handed over, so a new key serves old letters too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dkim

from bisectbot.errors import UserError

# RFC 8058 wants both unsubscribe headers covered; the second naming of the identity fields stops additions.
_SIGNED = (
    b"From", b"To", b"Cc", b"Reply-To", b"Subject", b"Date", b"Message-ID", b"In-Reply-To", b"References",
    b"Auto-Submitted", b"List-Id", b"List-Unsubscribe", b"List-Unsubscribe-Post", b"MIME-Version", b"Content-Type",
    b"Content-Transfer-Encoding",
)  # fmt: skip
_ONCE = (b"From", b"To", b"Cc", b"Subject", b"Date", b"Message-ID")


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
