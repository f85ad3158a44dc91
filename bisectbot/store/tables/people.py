"""What people asked for and what they are told: requests, reports, findings, persons. Mail itself is in `post`."""

from __future__ import annotations

import enum
from typing import Any

from sqlalchemy import Connection, ForeignKey, String, UniqueConstraint, event
from sqlalchemy.orm import Mapped, Mapper, mapped_column, relationship

from bisectbot.store.tables.base import Base, Key, Sha, words
from bisectbot.store.tables.code import Change
from bisectbot.store.tables.verdicts import Bisection, Step


class Person(Base):
    __tablename__ = "person"
    id: Mapped[Key]
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str] = mapped_column(String(16))
    identities: Mapped[dict[str, Any]]


class Token(Base):
    """A secret that lets a worker or a person in; only its SHA-256 is kept."""

    __tablename__ = "token"
    id: Mapped[Key]
    sha256: Mapped[Sha] = mapped_column(unique=True)
    name: Mapped[str]
    role: Mapped[str] = mapped_column(String(16))
    created: Mapped[float]
    revoked: Mapped[float | None]


class RequestState(enum.StrEnum):
    OPEN = "open"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Request(Base):
    """What a person asked for: bisect, compare, test."""

    __tablename__ = "request"
    id: Mapped[Key]
    kind: Mapped[str] = mapped_column(String(16))
    asker: Mapped[str]
    arguments: Mapped[dict[str, Any]]
    state: Mapped[RequestState] = mapped_column(words(RequestState), default=RequestState.OPEN, index=True)
    answer: Mapped[str] = mapped_column(default="")
    created: Mapped[float]


class ReportState(enum.StrEnum):
    HELD = "held"
    """Waits for approval, or failed the content gate."""
    RELEASED = "released"
    REJECTED = "rejected"


class Report(Base):
    """What people are told about one change; ``twin`` is the machine-readable form."""

    __tablename__ = "report"
    __table_args__ = (UniqueConstraint("change_id", "direction"),)
    id: Mapped[Key]
    change_id: Mapped[int] = mapped_column(ForeignKey("change.id"))
    direction: Mapped[str] = mapped_column(String(16))
    sha: Mapped[Sha]
    subject: Mapped[str]
    body: Mapped[str]
    twin: Mapped[dict[str, Any]]
    state: Mapped[ReportState] = mapped_column(words(ReportState))
    reason: Mapped[str] = mapped_column(default="")
    message_id: Mapped[str] = mapped_column(unique=True)
    created: Mapped[float]
    change: Mapped[Change] = relationship()
    findings: Mapped[list[Finding]] = relationship(back_populates="report")


class Finding(Base):
    """One bisection's contribution to a report, with the steps that it explains."""

    __tablename__ = "finding"
    id: Mapped[Key]
    report_id: Mapped[int] = mapped_column(ForeignKey("report.id"), index=True)
    bisection_id: Mapped[int] = mapped_column(ForeignKey("bisection.id"), unique=True)
    step_id: Mapped[int | None] = mapped_column(ForeignKey("step.id"))
    created: Mapped[float]
    told: Mapped[bool] = mapped_column(default=False)
    changed: Mapped[list[Any]] = mapped_column(default=list)
    """What it adds, as the report room's findings: for the addendum."""
    report: Mapped[Report] = relationship(back_populates="findings")
    bisection: Mapped[Bisection] = relationship()
    step: Mapped[Step | None] = relationship()


class Subscription(Base):
    __tablename__ = "subscription"
    id: Mapped[Key]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    rule: Mapped[dict[str, Any]]
    muted_until: Mapped[float | None]


class Judged(enum.StrEnum):
    """What people said of a report."""

    WRONG = "wrong"
    ACCEPTED = "accepted"
    """Right, and as it should be: the new level is the expected one."""
    FIXED = "fixed"
    """Right, and mended by another commit."""
    DUPLICATE = "duplicate"


class Judgement(Base):
    """One opinion on a report; the last one holds. ``probability`` is what the report had stated, for calibration."""

    __tablename__ = "judgement"
    id: Mapped[Key]
    report_id: Mapped[int] = mapped_column(ForeignKey("report.id"), index=True)
    judged: Mapped[Judged] = mapped_column(words(Judged))
    who: Mapped[str]
    why: Mapped[str]
    probability: Mapped[float | None]
    at: Mapped[float]


class Conversation(Base):
    """Where somebody waits for the end of a request. ``message`` is the transport's id of what it edits there,
    ``told`` what was said last."""

    __tablename__ = "conversation"
    id: Mapped[Key]
    request_id: Mapped[int] = mapped_column(ForeignKey("request.id"), index=True)
    transport: Mapped[str] = mapped_column(String(16))
    place: Mapped[dict[str, Any]]
    message: Mapped[str] = mapped_column(default="")
    told: Mapped[str] = mapped_column(default="")
    open: Mapped[bool] = mapped_column(default=True, index=True)
    request: Mapped[Request] = relationship()


class CommandLog(Base):
    """Every command that anybody gave, with its outcome; only ever appended to."""

    __tablename__ = "command_log"
    id: Mapped[Key]
    at: Mapped[float]
    who: Mapped[str]
    origin: Mapped[str]
    raw: Mapped[str]
    arguments: Mapped[dict[str, Any]]
    outcome: Mapped[str]


@event.listens_for(CommandLog, "before_update")
@event.listens_for(CommandLog, "before_delete")
def _keep(_mapper: Mapper[CommandLog], _connection: Connection, row: CommandLog) -> None:
    raise AssertionError(f"the log of commands is only appended to, and row {row.id} was to be changed")
