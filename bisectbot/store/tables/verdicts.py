"""Where a level changed and who changed it: steps, bisections, experiments."""

from __future__ import annotations

import enum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from bisectbot.store.tables.base import Base, Key, Sha, words
from bisectbot.store.tables.code import Branch, Head
from bisectbot.store.tables.farm import Build, Job, Kpi, Series


class StepState(enum.StrEnum):
    SUSPECTED = "suspected"
    """Found by the detector; more runs at its two heads are asked for."""
    REAL = "real"
    REFUTED = "refuted"
    WITHDRAWN = "withdrawn"
    """The detector no longer sees it, before anything was published."""
    BISECTING = "bisecting"
    CLOSED = "closed"
    ACCEPTED = "accepted"


class Step(Base):
    """A lasting change of level. Its head may move within ``first``..``last`` while it keeps its id."""

    __tablename__ = "step"
    id: Mapped[Key]
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id"), index=True)
    head_id: Mapped[int] = mapped_column(ForeignKey("head.id"))
    """First head of the new level."""
    parent_head_id: Mapped[int] = mapped_column(ForeignKey("head.id"))
    """The measured head before it."""
    first: Mapped[int]
    last: Mapped[int]
    """The interval of heads (by number) in which it may lie."""
    old_level: Mapped[float]
    new_level: Mapped[float]
    noise: Mapped[float]
    """Standard deviation of one head's result, the larger of the two sides'."""
    percent: Mapped[float | None]
    probability: Mapped[float]
    direction: Mapped[str] = mapped_column(String(16))
    state: Mapped[StepState] = mapped_column(words(StepState), default=StepState.SUSPECTED, index=True)
    reason: Mapped[str] = mapped_column(default="")
    engine: Mapped[str] = mapped_column(String(32))
    found: Mapped[float]
    bisection_id: Mapped[int | None] = mapped_column(ForeignKey("bisection.id"), index=True)
    series: Mapped[Series] = relationship()
    head: Mapped[Head] = relationship(foreign_keys=[head_id])
    parent_head: Mapped[Head] = relationship(foreign_keys=[parent_head_id])


class BisectionState(enum.StrEnum):
    WAITING = "waiting"
    """For the daily budget, or for a bisection of the same interval."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class Bisection(Base):
    """The search between a good and a bad commit. What is stored is what the search was told; see service/advance."""

    __tablename__ = "bisection"
    id: Mapped[Key]
    branch_id: Mapped[int | None] = mapped_column(ForeignKey("branch.id"))
    tree: Mapped[str]
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"))
    kpi_id: Mapped[int] = mapped_column(ForeignKey("kpi.id"))
    good: Mapped[Sha]
    bad: Mapped[Sha]
    recipe: Mapped[dict[str, Any]]
    history: Mapped[str] = mapped_column(String(64), default="")
    """Artifact with the candidates in the order that the search numbers them, "" until it has been laid out."""
    settings: Mapped[dict[str, Any]]
    """effect, sessions at the good level, confidence, costs, seed: the arguments of the search."""
    request_id: Mapped[int | None] = mapped_column(ForeignKey("request.id"))
    automatic: Mapped[bool] = mapped_column(default=True)
    state: Mapped[BisectionState] = mapped_column(words(BisectionState), index=True)
    stage: Mapped[str] = mapped_column(String(32), default="")
    verdict: Mapped[dict[str, Any] | None]
    """What the search says; see service/verify for what was tried after it."""
    verification: Mapped[dict[str, Any] | None]
    engine: Mapped[str] = mapped_column(String(32), default="")
    reason: Mapped[str] = mapped_column(default="")
    created: Mapped[float]
    finished: Mapped[float | None]
    reported: Mapped[bool] = mapped_column(default=False)
    branch: Mapped[Branch | None] = relationship()
    job: Mapped[Job] = relationship()
    kpi: Mapped[Kpi] = relationship()


class ExperimentState(enum.StrEnum):
    PENDING = "pending"
    DONE = "done"
    LOST = "lost"
    """No result will come (cancelled, or the machinery gave up)."""
    SKIPPED = "skipped"
    """Its commit is untestable."""


class Experiment(Base):
    """What the search asked for, with what it knew then (``told``), in the order ``number``."""

    __tablename__ = "experiment"
    __table_args__ = (Index(None, "bisection_id", "number", unique=True),)
    id: Mapped[Key]
    bisection_id: Mapped[int] = mapped_column(ForeignKey("bisection.id"))
    number: Mapped[int] = mapped_column(BigInteger)
    nodes: Mapped[list[Any]]
    """Index of its commit among the candidates; several: their merge."""
    sha: Mapped[Sha]
    build_id: Mapped[int | None] = mapped_column(ForeignKey("build.id"))
    runs: Mapped[int]
    fresh_boot: Mapped[bool]
    state: Mapped[ExperimentState] = mapped_column(words(ExperimentState), default=ExperimentState.PENDING)
    told: Mapped[dict[str, Any]]
    reason: Mapped[str] = mapped_column(default="")
    check: Mapped[str] = mapped_column(String(16), default="")
    """The check after the search that it belongs to (its nodes are then the check's two sides), "" the search."""
    created: Mapped[float]
    build: Mapped[Build | None] = relationship()
