"""The mail section of ``bisectbot.yaml``: who writes, to whom and when, by which server, where answers come in."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from email.utils import getaddresses
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from bisectbot.yamlfile import Name, Path_, RelativePath, SecretPath, Section

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# The addresses that `bisectbot.mail.mailbox` takes.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def _mailbox(value: str) -> str:
    found = getaddresses([value])
    if len(found) != 1 or not _ADDRESS.fullmatch(found[0][1]):
        raise ValueError(f"{value!r} is no mail address; write local@domain or Name <local@domain>")
    return value


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is no bare mail address; write local@domain")
    return value.lower()


def _quiet_day(value: Any) -> int | dt.date:
    """``sat`` → 5, ``2026-12-25`` → that date."""
    if isinstance(value, str) and value.lower()[:3] in _WEEKDAYS and value.isalpha():
        return _WEEKDAYS.index(value.lower()[:3])
    try:
        return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is no day; write mon … sun, or a date as 2026-12-25") from None


def _https(value: str) -> str:
    if value and not re.fullmatch(r"https://[^\s/]+\S*", value):
        raise ValueError(f"{value!r}: mail programs follow https:// links only; write https://HOST/PATH")
    return value.rstrip("/")


MailboxText = Annotated[str, AfterValidator(_mailbox)]
Address = Annotated[str, AfterValidator(_address)]
QuietDay = Annotated[int | dt.date, BeforeValidator(_quiet_day)]
HttpsUrl = Annotated[str, AfterValidator(_https)]


class MailPolicy(StrEnum):
    """How far a report may travel (a ladder: each rung includes the ones before)."""

    FILES = "files"
    OPERATORS = "operators"
    AUTHOR = "author"
    LISTS = "lists"


class RungSpec(Section):
    """Another rung for the trees (``NAME:BRANCH``) and testcases that both shell patterns match."""

    tree: str = "*"
    testcase: str = "*"
    policy: MailPolicy


class Approval(Section):
    """Lists need a person's approval until so many of the last ``window`` judged reports were right."""

    precision: float = Field(0.9, gt=0, le=1)
    window: int = Field(30, ge=1, le=1000)


class Bar(Section):
    """What a report must reach to be a mail of its own; below it is told in the weekly digest."""

    confidence: float = Field(0.95, ge=0, le=1)
    effect: float = Field(0.0, ge=0, description="percent")


class Extra(Section):
    """Who else gets reports, and how many may get one at all."""

    people: tuple[MailboxText, ...] = ()
    lists: tuple[MailboxText, ...] = ()
    most: int = Field(12, ge=1, le=12)
    most_lists: int = Field(3, ge=0, le=12)


class DkimSpec(Section):
    """A key to sign with (PEM); its public half is in DNS at ``<selector>._domainkey.<domain>``."""

    domain: str = Field(pattern=r"^[A-Za-z0-9.-]+$")
    selector: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    key_file: SecretPath


class Smtp(Section):
    host: str = "127.0.0.1"
    port: int = Field(25, ge=1, le=65535)
    security: Literal["none", "starttls", "tls"] = "none"
    user: str = ""
    password_file: SecretPath | None = None
    ca_file: RelativePath | None = None
    dkim: DkimSpec | None = None


class ImapSpec(Section):
    """A mailbox of the robot's own, over TLS."""

    host: str
    port: int = Field(993, ge=1, le=65535)
    user: str
    password_file: SecretPath
    folder: str = "INBOX"
    ca_file: RelativePath | None = None


class InboxSpec(Section):
    """Where answers and bounces come in: one of the three, or nothing is read.

    ``authserv`` is the mail server before it, whose Authentication-Results are believed.
    """

    maildir: RelativePath | None = None
    imap: ImapSpec | None = None
    lmtp: str = Field("", pattern=r"^$|^[^\s:]+:\d+$|^\[[0-9a-fA-F:]+\]:\d+$")
    authserv: str = Field("", pattern=r"^[A-Za-z0-9._-]*$")


class Mail(Section):
    """Who we are in mails, who gets them, and how they leave and come in."""

    sender: MailboxText = "bisectbot <bisectbot@localhost>"
    reply_to: tuple[MailboxText, ...] = ()
    operators: tuple[MailboxText, ...] = ()
    policy: MailPolicy = MailPolicy.FILES
    rungs: tuple[RungSpec, ...] = ()
    approval: Approval = Approval()
    hourly_cap: int = Field(3, ge=0)
    daily_cap: int = Field(10, ge=0)
    quiet_days: tuple[QuietDay, ...] = ()
    bar: Bar = Bar()
    digest_to: tuple[MailboxText, ...] = ()
    also: Extra = Extra()
    trees: dict[Name, Extra] = Field({})
    opted_out: tuple[Address, ...] = ()
    stopped: bool = False
    smtp: Smtp = Smtp()
    inbox: InboxSpec = InboxSpec()
    unsubscribe_url: HttpsUrl = ""
    unsubscribe_secret: SecretPath | None = None
    archive_url: str = ""
    public_archive: str = Field("", pattern=r"^$|^https?://\S+$")


def problems(mail: Mail, trees: dict[str, list[str]]) -> Iterator[tuple[Path_, str]]:
    """What is wrong with values that are good one by one; ``trees`` are the watched branches by tree."""
    yield from _files(mail)
    yield from _names(mail, trees)
    smtp, inbox = mail.smtp, mail.inbox
    if smtp.user and smtp.password_file is None:
        yield ("mail", "smtp", "user"), "mail.smtp.user has no password; add mail.smtp.password_file"
    if smtp.user and smtp.security == "none" and smtp.host not in _LOOPBACK:
        text = "mail.smtp.user: its password would travel in the clear; set mail.smtp.security to starttls or tls"
        yield ("mail", "smtp", "user"), text
    if sum(map(bool, (inbox.maildir, inbox.imap, inbox.lmtp))) > 1:
        yield ("mail", "inbox"), "mail.inbox: mail comes in one way only; keep maildir, imap or lmtp"


def _files(mail: Mail) -> Iterator[tuple[Path_, str]]:
    smtp, imap = mail.smtp, mail.inbox.imap
    wanted: list[tuple[Path | None, Path_]] = [
        (smtp.password_file, ("mail", "smtp", "password_file")),
        (smtp.ca_file, ("mail", "smtp", "ca_file")),
        (smtp.dkim.key_file if smtp.dkim else None, ("mail", "smtp", "dkim", "key_file")),
        (imap.password_file if imap else None, ("mail", "inbox", "imap", "password_file")),
        (imap.ca_file if imap else None, ("mail", "inbox", "imap", "ca_file")),
        (mail.unsubscribe_secret, ("mail", "unsubscribe_secret")),
    ]
    for path, where in wanted:
        if path is not None and not path.is_file():
            yield where, f"{'.'.join(map(str, where))}: no such file: {path}; create it or correct the path"


def _names(mail: Mail, trees: dict[str, list[str]]) -> Iterator[tuple[Path_, str]]:
    known = ", ".join(sorted(trees)) or "none"
    for name in mail.trees:
        if name not in trees:
            yield ("mail", "trees", name), f"mail.trees: tree {name!r} is not defined; there are: {known}"
    branches = [f"{tree}:{branch}" for tree, names in trees.items() for branch in names]
    for number, rung in enumerate(mail.rungs):
        if not _matches(branches, rung.tree):
            text = f"mail.rungs: {rung.tree!r} matches no TREE:BRANCH; there are: {', '.join(sorted(branches))}"
            yield ("mail", "rungs", number, "tree"), text


def _matches(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)
