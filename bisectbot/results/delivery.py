"""What a worker brings home: the outcome of a run or a build, with everything that was recorded."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Outcome(enum.StrEnum):
    """How a run or a build ended, and so what may be concluded from it."""

    DONE = "done"
    """A run with samples, a build with an artifact."""
    UNTESTABLE = "untestable"
    """The commit's own fault: does not build, does not boot, says skip (exit 125)."""
    FAILED = "failed"
    """The run itself failed: bad exit, no number, too slow. Twice makes the commit untestable here."""
    INFRA = "infra"
    """The machinery's fault: never counts against the commit."""
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class ArtifactRef:
    """A stored file: its name beside the run (``stdout``), SHA-256 and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class BootRecord:
    """One attempt to boot a build on a host. ``key`` is unique to it; ``seconds`` it took (farm time).

    ``phase`` is how far it came (``resetting``, ``kernel_started``, …, ``verified``). ``failure`` is what it died of
    (``panic``, ``kernel_hang``, …; "" if it is sound), ``blame`` whose fault that is (``kernel``, ``machine``),
    ``message`` says it in a line. ``signature`` is the build's.
    """

    key: str
    seconds: float
    started: float
    phase: str = ""
    failure: str = ""
    blame: str = ""
    message: str = ""
    signature: str = ""


@dataclass(frozen=True)
class RunDelivery:
    """The result of a run. ``samples`` are the KPIs' values, ``stats`` all other numbers; ``environment`` are the
    facts whose change opens a new epoch; ``started`` is seconds since 1970, ``seconds`` farm time in the benchmark,
    ``host_s`` farm time for which the host was taken (boot and preparation included). ``boot`` is the one that the run
    happened in, ``boots`` all attempts since the last delivery, that one included if it was new."""

    run: int
    token: int
    outcome: Outcome
    message: str = ""
    samples: tuple[tuple[str, float], ...] = ()
    stats: tuple[tuple[str, float], ...] = ()
    boot: BootRecord | None = None
    environment: tuple[tuple[str, str], ...] = ()
    started: float = 0.0
    seconds: float = 0.0
    host_s: float = 0.0
    artifacts: tuple[ArtifactRef, ...] = ()
    boots: tuple[BootRecord, ...] = ()


@dataclass(frozen=True)
class BuildDelivery:
    """The result of a build. ``artifact`` is the archive's SHA-256, ``signature`` is equal for equal code;
    ``compiled`` lists the source files that went into it, as far as the builder knows."""

    build: int
    token: int
    outcome: Outcome
    message: str = ""
    artifact: str = ""
    signature: str = ""
    compiled: tuple[str, ...] = ()
    seconds: float = 0.0
    artifacts: tuple[ArtifactRef, ...] = ()
