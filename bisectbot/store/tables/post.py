"""Mail that leaves and mail that comes in: outbox, replies, bounces, who has opted out, what is switched off."""

from __future__ import annotations

import enum
from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from bisectbot.store.tables.base import Base, Key, Sha, words


class OutboxState(enum.StrEnum):
    DRAFT = "draft"
    AWAITING_APPROVAL = "awaiting_approval"
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DEFERRED = "deferred"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Outbox(Base):
    """A mail on its way, written in the transaction that decided it. The same row always has the same Message-ID."""

    __tablename__ = "outbox"
    id: Mapped[Key]
    report_id: Mapped[int | None] = mapped_column(ForeignKey("report.id"), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    message_id: Mapped[str] = mapped_column(unique=True)
    dedup_key: Mapped[str] = mapped_column(unique=True)
    state: Mapped[OutboxState] = mapped_column(words(OutboxState), index=True)
    way: Mapped[str] = mapped_column(String(16))
    """mail, file or digest."""
    rung: Mapped[int]
    addressees: Mapped[list[Any]] = mapped_column(default=list)
    """Whom it concerns and why, those included who do not get it: see service/post/letters."""
    waiting: Mapped[list[Any]]
    """Addresses that have not accepted it yet."""
    reached: Mapped[list[Any]] = mapped_column(default=list)
    """Addresses that have."""
    raw: Mapped[bytes] = mapped_column(LargeBinary)
    held: Mapped[list[Any]]
    approved_by: Mapped[str] = mapped_column(default="")
    token: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(default=0)
    not_before: Mapped[float] = mapped_column(default=0.0)
    last_error: Mapped[str] = mapped_column(default="")
    created: Mapped[float]
    sent: Mapped[float | None]
    corrected: Mapped[bool] = mapped_column(default=False)
    """Whether everybody whom it reached has been told that its report was wrong."""
    digest_id: Mapped[int | None] = mapped_column(ForeignKey("outbox.id"))
    """The digest that told of it."""


class Reply(Base):
    """A mail that came in, whoever wrote it, and what it answers. Of people's mail the whole is kept."""

    __tablename__ = "reply"
    id: Mapped[Key]
    message_id: Mapped[str] = mapped_column(unique=True)
    report_id: Mapped[int | None] = mapped_column(ForeignKey("report.id"), index=True)
    sender: Mapped[str]
    kind: Mapped[str] = mapped_column(String(16))
    """human, bounce, automatic or own."""
    subject: Mapped[str] = mapped_column(default="")
    body: Mapped[str]
    raw: Mapped[bytes] = mapped_column(LargeBinary, default=b"")
    vouched: Mapped[bool] = mapped_column(default=False)
    """Whether the sender's domain had signed it."""
    pending: Mapped[bool] = mapped_column(default=False, index=True)
    """Whether its commands are still to be handed over."""
    received: Mapped[float]


class Bounce(Base):
    """What a delivery status notification says of one address. ``action`` delivered: an operator vouches for it."""

    __tablename__ = "bounce"
    __table_args__ = (UniqueConstraint("notification", "address"),)
    id: Mapped[Key]
    notification: Mapped[str]
    """Message-ID of the mail that said it."""
    outbox_id: Mapped[int | None] = mapped_column(ForeignKey("outbox.id"), index=True)
    address: Mapped[str] = mapped_column(index=True)
    action: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    diagnostic: Mapped[str]
    at: Mapped[float]


class OptOut(Base):
    """Somebody who wants no mail; ``how``: one-click, mail, command or operator."""

    __tablename__ = "opt_out"
    id: Mapped[Key]
    address: Mapped[str] = mapped_column(unique=True)
    """In lower case."""
    how: Mapped[str]
    at: Mapped[float]


class Sighting(Base):
    """Where else a report's change has arrived: ``place`` is TREE:BRANCH. ``told``: people have been."""

    __tablename__ = "sighting"
    __table_args__ = (UniqueConstraint("report_id", "place"),)
    id: Mapped[Key]
    report_id: Mapped[int] = mapped_column(ForeignKey("report.id"))
    place: Mapped[str]
    sha: Mapped[Sha]
    exact: Mapped[bool]
    seen: Mapped[float]
    told: Mapped[bool] = mapped_column(default=False)


class Switch(Base):
    """What somebody has stopped at run time, by name; no row means that it runs."""

    __tablename__ = "switch"
    id: Mapped[Key]
    name: Mapped[str] = mapped_column(unique=True)
    who: Mapped[str]
    why: Mapped[str]
    since: Mapped[float]
