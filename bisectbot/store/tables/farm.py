"""What is run where: groups, hosts, environments, jobs, builds, boots, runs, samples, artifacts, leases."""

from __future__ import annotations

import enum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from bisectbot.store.tables.base import Base, Key, Sha, words
from bisectbot.store.tables.code import Branch, Commit


class Lease(Base):
    """Who holds what until when. ``token`` grows with each new holder and fences off the earlier ones."""

    __tablename__ = "lease"
    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    token: Mapped[int] = mapped_column(BigInteger)
    until: Mapped[float]


class HostGroup(Base):
    __tablename__ = "host_group"
    id: Mapped[Key]
    name: Mapped[str] = mapped_column(unique=True)


class HostState(enum.StrEnum):
    GOOD = "good"
    UNKNOWN = "unknown"
    SUSPECT = "suspect"
    BAD = "bad"
    MAINTENANCE = "maintenance"
    RETIRED = "retired"


class Host(Base):
    """A machine. ``seen`` is when its worker last spoke; ``failures`` counts its own failures in a row."""

    __tablename__ = "host"
    id: Mapped[Key]
    name: Mapped[str] = mapped_column(unique=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("host_group.id"))
    state: Mapped[HostState] = mapped_column(words(HostState), default=HostState.UNKNOWN)
    reason: Mapped[str] = mapped_column(default="")
    since: Mapped[float] = mapped_column(default=0.0)
    trusted: Mapped[float] = mapped_column(default=0.0)
    """Until when it was good, if it is not: its canaries before are what those of today are held against."""
    seen: Mapped[float] = mapped_column(default=0.0)
    failures: Mapped[int] = mapped_column(default=0)
    hinted: Mapped[float] = mapped_column(default=0.0)
    """When its queue was last told to look."""
    booted: Mapped[str] = mapped_column(default="")
    """Signature of the build that it has booted, "" if none."""
    group: Mapped[HostGroup] = relationship(lazy="joined")


class Environment(Base):
    """One state of a host group's firmware, compiler and the like: an epoch. Runs of two are never pooled."""

    __tablename__ = "environment"
    __table_args__ = (UniqueConstraint("group_id", "digest"),)
    id: Mapped[Key]
    group_id: Mapped[int] = mapped_column(ForeignKey("host_group.id"))
    digest: Mapped[str] = mapped_column(String(64))
    facts: Mapped[dict[str, Any]]
    since: Mapped[float]


class Job(Base):
    """One testcase with every parameter fixed for one host group; ``digest`` is its identity."""

    __tablename__ = "job"
    id: Mapped[Key]
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str]
    testcase: Mapped[str]
    group_id: Mapped[int] = mapped_column(ForeignKey("host_group.id"))
    spec: Mapped[dict[str, Any]]
    group: Mapped[HostGroup] = relationship(lazy="joined")
    kpis: Mapped[list[Kpi]] = relationship(order_by="Kpi.id", back_populates="job")


class Kpi(Base):
    __tablename__ = "kpi"
    __table_args__ = (UniqueConstraint("job_id", "name"),)
    id: Mapped[Key]
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"))
    name: Mapped[str]
    unit: Mapped[str] = mapped_column(default="")
    better: Mapped[str] = mapped_column(String(8))
    least_effect: Mapped[float | None]
    job: Mapped[Job] = relationship(back_populates="kpis")


class Series(Base):
    """One KPI of one job along a branch's heads. ``stale``: new samples since it was last looked at."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("branch_id", "kpi_id"),)
    id: Mapped[Key]
    branch_id: Mapped[int] = mapped_column(ForeignKey("branch.id"))
    kpi_id: Mapped[int] = mapped_column(ForeignKey("kpi.id"))
    stale: Mapped[bool] = mapped_column(default=False, index=True)
    branch: Mapped[Branch] = relationship()
    kpi: Mapped[Kpi] = relationship()


class BuildState(enum.StrEnum):
    PLANNED = "planned"
    QUEUED = "queued"
    LEASED = "leased"
    BUILDING = "building"
    READY = "ready"
    UNTESTABLE = "untestable"
    FAILED = "failed"

    @property
    def open(self) -> bool:
        """Still to come."""
        return self in {BuildState.PLANNED, BuildState.QUEUED, BuildState.LEASED, BuildState.BUILDING}


class Build(Base):
    """A commit built in one way. ``signature`` is equal for equal code, ``artifact`` the archive's SHA-256."""

    __tablename__ = "build"
    __table_args__ = (
        UniqueConstraint("commit_id", "recipe_digest"),
        Index(None, "state", "rank"),
    )
    id: Mapped[Key]
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id"))
    recipe: Mapped[dict[str, Any]]
    recipe_digest: Mapped[str] = mapped_column(String(64))
    state: Mapped[BuildState] = mapped_column(words(BuildState), default=BuildState.PLANNED)
    rank: Mapped[int] = mapped_column(default=100)
    """The best purpose that waits for it; see Purpose."""
    token: Mapped[int] = mapped_column(BigInteger, default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    signature: Mapped[str] = mapped_column(String(64), default="", index=True)
    artifact: Mapped[str] = mapped_column(String(64), default="")
    message: Mapped[str] = mapped_column(default="")
    created: Mapped[float]
    not_before: Mapped[float] = mapped_column(default=0.0)
    hinted: Mapped[float] = mapped_column(default=0.0)
    finished: Mapped[float | None]
    seconds: Mapped[float] = mapped_column(default=0.0)
    commit: Mapped[Commit] = relationship()


class Boot(Base):
    """One attempt to boot a build on a host. ``phase`` is how far it came, ``failure`` what it died of ("" if it is
    sound), ``blame`` whose fault that is (``kernel``, ``machine``, ``nobody``)."""

    __tablename__ = "boot"
    id: Mapped[Key]
    key: Mapped[str] = mapped_column(String(64), unique=True)
    host_id: Mapped[int] = mapped_column(ForeignKey("host.id"))
    build_id: Mapped[int] = mapped_column(ForeignKey("build.id"))
    started: Mapped[float]
    seconds: Mapped[float]
    phase: Mapped[str] = mapped_column(String(32), default="")
    failure: Mapped[str] = mapped_column(String(32), default="")
    blame: Mapped[str] = mapped_column(String(16), default="")
    message: Mapped[str] = mapped_column(default="")


class Purpose(enum.IntEnum):
    """What a run is for; the order of work on a host."""

    BISECTION = 10
    CANARY = 15
    REQUEST = 20
    RETEST = 30
    NEWEST = 40
    BACKFILL = 50
    AA = 60
    """The canary's commit against itself: what a host alarms of without a reason."""


class RunState(enum.StrEnum):
    PLANNED = "planned"
    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def open(self) -> bool:
        """Still to come."""
        return self in {RunState.PLANNED, RunState.QUEUED, RunState.LEASED, RunState.RUNNING}


class FailureKind(enum.StrEnum):
    """Why a run or a build failed; decides what may be concluded."""

    NONE = ""
    UNTESTABLE = "untestable"
    RUN = "run"
    INFRA = "infra"


class Run(Base):
    """One execution of a job with a build on a host. ``token`` is the last one that was issued for it."""

    __tablename__ = "run"
    __table_args__ = (
        Index(None, "state", "group_id", "purpose", "id"),
        Index(None, "build_id", "job_id", "state"),
    )
    id: Mapped[Key]
    build_id: Mapped[int] = mapped_column(ForeignKey("build.id"))
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), index=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("host_group.id"))
    branch_id: Mapped[int | None] = mapped_column(ForeignKey("branch.id"))
    experiment_id: Mapped[int | None] = mapped_column(ForeignKey("experiment.id"), index=True)
    step_id: Mapped[int | None] = mapped_column(ForeignKey("step.id"), index=True)
    request_id: Mapped[int | None] = mapped_column(ForeignKey("request.id"), index=True)
    """Of a comparison or a test that a person asked for."""
    purpose: Mapped[int]
    state: Mapped[RunState] = mapped_column(words(RunState), default=RunState.PLANNED)
    failure: Mapped[FailureKind] = mapped_column(words(FailureKind), default=FailureKind.NONE)
    message: Mapped[str] = mapped_column(default="")
    fresh_boot: Mapped[bool] = mapped_column(default=False)
    wanted_host_id: Mapped[int | None] = mapped_column(ForeignKey("host.id"))
    host_id: Mapped[int | None] = mapped_column(ForeignKey("host.id"))
    boot_id: Mapped[int | None] = mapped_column(ForeignKey("boot.id"))
    environment_id: Mapped[int | None] = mapped_column(ForeignKey("environment.id"))
    token: Mapped[int] = mapped_column(BigInteger, default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    created: Mapped[float]
    failures: Mapped[int] = mapped_column(default=0)
    """How often the run itself failed; attempts also count the machinery's failures."""
    not_before: Mapped[float] = mapped_column(default=0.0)
    started: Mapped[float | None]
    finished: Mapped[float | None] = mapped_column(index=True)
    seconds: Mapped[float] = mapped_column(default=0.0)
    host_s: Mapped[float] = mapped_column(default=0.0)
    build: Mapped[Build] = relationship()
    job: Mapped[Job] = relationship()
    host: Mapped[Host | None] = relationship(foreign_keys=[host_id])
    boot: Mapped[Boot | None] = relationship()
    samples: Mapped[list[Sample]] = relationship(back_populates="run")


class Sample(Base):
    """A KPI's value in a run."""

    __tablename__ = "sample"
    __table_args__ = (UniqueConstraint("run_id", "kpi_id"),)
    id: Mapped[Key]
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"))
    kpi_id: Mapped[int] = mapped_column(ForeignKey("kpi.id"), index=True)
    value: Mapped[float]
    run: Mapped[Run] = relationship(back_populates="samples")
    kpi: Mapped[Kpi] = relationship()


class Artifact(Base):
    """A file in the artifact store that belongs to a run or a build."""

    __tablename__ = "artifact"
    id: Mapped[Key]
    run_id: Mapped[int | None] = mapped_column(ForeignKey("run.id"), index=True)
    build_id: Mapped[int | None] = mapped_column(ForeignKey("build.id"), index=True)
    name: Mapped[str]
    sha256: Mapped[Sha]
    size: Mapped[int] = mapped_column(BigInteger)
