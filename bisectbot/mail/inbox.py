"""Where mail comes in: a maildir that a mail server drops into, or an IMAP mailbox. Both are read alike.

A mail is marked as done only after it was handled; if the reader dies in between it comes again, under the
Message-ID by which it is known.
"""

from __future__ import annotations

import contextlib
import imaplib
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bisectbot.errors import InfraError, UserError

BATCH = 100


@dataclass(frozen=True)
class Item:
    """One mail that waits to be handled; ``name`` tells the inbox which."""

    name: str
    raw: bytes


class Inbox(Protocol):
    """A source of mail."""

    def waiting(self) -> list[Item]:
        """The oldest mails that have not been handled, at most `BATCH`. Raises InfraError for an unreadable source."""

    def done(self, item: Item) -> None:
        """Remember that ``item`` was handled."""


@dataclass(frozen=True)
class Maildir:
    """A maildir: what is in ``new`` waits, what was handled is moved to ``cur`` as seen."""

    path: Path

    def waiting(self) -> list[Item]:
        """See `Inbox`."""
        try:
            files = sorted((self.path / "new").iterdir(), key=lambda file: (file.stat().st_mtime_ns, file.name))
            return [Item(file.name, file.read_bytes()) for file in files[:BATCH]]
        except OSError as error:
            raise InfraError(f"maildir {self.path}: {error.strerror}") from error

    def done(self, item: Item) -> None:
        """See `Inbox`."""
        (self.path / "cur").mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.path / "new" / item.name).rename(self.path / "cur" / f"{item.name}:2,S")


@dataclass(frozen=True)
class Imap:
    """An IMAP mailbox over TLS: what is unseen waits. The password is in a file; ``timeout`` in seconds."""

    host: str
    user: str
    password_file: Path
    folder: str = "INBOX"
    port: int = 993
    ca_file: Path | None = None
    timeout: float = 60.0

    def waiting(self) -> list[Item]:
        """See `Inbox`. Fetching does not mark them as seen."""
        items: list[Item] = []
        with self._selected() as server:
            (uids,) = _must(server.uid("SEARCH", "UNSEEN"))
            for uid in uids.decode("ascii").split()[:BATCH] if isinstance(uids, bytes) else []:
                answer = _must(server.uid("FETCH", uid, "(BODY.PEEK[])"))
                items += [Item(uid, part[1]) for part in answer if isinstance(part, tuple)]
        return items

    def done(self, item: Item) -> None:
        """See `Inbox`."""
        with self._selected() as server:
            _must(server.uid("STORE", item.name, "+FLAGS.SILENT", r"(\Seen)"))

    @contextlib.contextmanager
    def _selected(self) -> Iterator[imaplib.IMAP4_SSL]:
        try:
            password = self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeError) as error:
            raise UserError(f"IMAP password {self.password_file}: {error}; correct inbox.password_file") from error
        context = ssl.create_default_context(cafile=self.ca_file and str(self.ca_file))
        try:
            with imaplib.IMAP4_SSL(self.host, self.port, ssl_context=context, timeout=self.timeout) as server:
                server.login(self.user, password)
                _must(server.select(f'"{self.folder}"'))
                yield server
        except (imaplib.IMAP4.error, OSError) as error:
            raise InfraError(f"IMAP {self.user} at {self.host}:{self.port}: {error}") from error


def _must(answer: tuple[str, Sequence[object]]) -> Sequence[object]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(" ".join(map(str, data)))
    return data
