"""Where a letter belongs: the patch's own thread, the first report's, and what an incoming mail answers."""

from __future__ import annotations

import email
import re
import urllib.parse
from dataclasses import dataclass
from email.message import Message
from email.policy import compat32

_ID = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
_TRAILER = re.compile(r"^(Message-ID|Link):\s*(\S.*)$", re.IGNORECASE)
_ARCHIVES = re.compile(
    r"https?://(?:patch\.msgid\.link|(?:www\.)?lore\.kernel\.org/(?:r|all|[a-z0-9.-]+)|lkml\.kernel\.org/r)/([^/\s#?>]+@[^/\s#?>]+)/?"
)
_PATCH_ARCHIVE = re.compile(r"https?://patch\.msgid\.link/")
_BLAME = re.compile(r"^(?:Reported-by|Closes|Suggested-by|Reported-and-tested-by):", re.IGNORECASE)


@dataclass(frozen=True)
class Thread:
    """What In-Reply-To and References of the next letter say; ids with angle brackets, oldest first."""

    in_reply_to: str
    references: tuple[str, ...] = ()


def patch_thread(commit_message: str) -> Thread | None:
    """The thread of the mail that a commit came in, if a trailer names it.

    A Message-ID trailer or a patch.msgid.link is that mail. Of other Link trailers, the last one to a kernel
    archive is taken, as maintainers' tools append it; not one with a remark (``[1]``), nor one right after the
    tag of a bug's reporter, which leads to the bug.
    """
    link = None
    before = ""
    for line in commit_message.splitlines():
        if match := _TRAILER.match(line):
            label, value = match[1].lower(), match[2].strip()
            archived = _ARCHIVES.fullmatch(value)
            if label == "message-id" and (found := re.fullmatch(r"<?([^<>\s]+@[^<>\s]+)>?", value)):
                return Thread(f"<{found[1]}>")
            if archived and _PATCH_ARCHIVE.match(value):
                return Thread(_bracketed(archived[1]))
            if archived and not _BLAME.match(before):
                link = archived[1]
        before = line
    return Thread(_bracketed(link)) if link else None


def follow_up(raw: bytes) -> Thread:
    """The thread of a letter that follows the one with the bytes ``raw``."""
    message = email.message_from_bytes(raw, policy=compat32)
    (own,) = message_ids(message, "Message-ID")[:1] or ("<unknown@invalid>",)
    return Thread(own, tuple(message_ids(message, "References")))


def answered(message: Message) -> tuple[str, ...]:
    """The Message-IDs that an incoming mail answers, the nearest first."""
    nearest_first = [*message_ids(message, "In-Reply-To"), *reversed(message_ids(message, "References"))]
    return tuple(dict.fromkeys(nearest_first))


def message_ids(message: Message, header: str) -> list[str]:
    """The Message-IDs in a header, with their brackets; what is none is passed over."""
    return [f"<{found}>" for value in message.get_all(header, []) for found in _ID.findall(str(value))]


def _bracketed(quoted: str) -> str:
    return f"<{urllib.parse.unquote(quoted)}>"
