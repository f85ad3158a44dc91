"""What the server gives a worker that claims: a run or a build, whole, so that the worker needs nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from bisectbot.jobs.kpi import Kpi


@dataclass(frozen=True)
class Source:
    """Where a host gets a benchmark: a git ``url`` at a ``commit`` (40 hex), a tarball's with its ``sha256``, or a
    distribution's ``package`` (``NAME`` or ``NAME=VERSION``). ``build`` is a shell line in its folder."""

    url: str = ""
    commit: str = ""
    sha256: str = ""
    package: str = ""
    build: str = ""


@dataclass(frozen=True)
class Job:
    """One testcase with every parameter fixed, for one host group.

    ``benchmark`` names the adapter (``command``, ``will-it-scale``); ``command`` is the program's shell line where
    the adapter wants one. ``parameters`` are as reports show them (``nr_task`` 50%), ``params`` what they come to on
    the group's hosts (64), where that is known. ``timeout_s`` bounds one run in farm seconds, ``output_limit`` what
    it may print, in bytes. ``broad``: it stands for real use, as a micro-benchmark does not.
    ``monitors`` are what is recorded beside it; None: what is usual. ``source`` is where the host gets it from.
    """

    name: str
    testcase: str
    benchmark: str
    group: str
    kpis: tuple[Kpi, ...]
    command: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 600.0
    output_limit: int = 16 * 2**20
    params: tuple[tuple[str, str], ...] = ()
    broad: bool = False
    monitors: tuple[str, ...] | None = None
    source: Source | None = None


@dataclass(frozen=True)
class KernelRecipe:
    """What the builder ``kernel`` is told besides.

    A configuration begins with ``base``, a target of the tree's own Makefile (``x86_64_defconfig``), or "" for the
    first of the ``fragments``. Those are (name, text), merged in their order. ``variant`` is a second build of the same
    code, "" for the ordinary one; ``aligned`` puts every function, loop and jump target on a boundary of its own, so
    that code which only moved behaves as before.
    """

    base: str = ""
    fragments: tuple[tuple[str, str], ...] = ()
    arch: str = "x86_64"
    variant: str = ""


@dataclass(frozen=True)
class BuildRecipe:
    """How a commit becomes something that can be measured.

    ``builder`` names the builder (``command``, ``kernel``), ``command`` its shell line, run at the root of the work
    tree; ``outputs`` are globs of what to keep (all of the work tree's untracked and changed files if empty).
    ``kconfig`` and ``compiler`` are names (``x86_64-rhel-8.3``, ``gcc-12``), "" where there is none to choose.
    ``kernel`` is for the builder of that name.
    """

    name: str
    builder: str
    command: str = ""
    outputs: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 3600.0
    kconfig: str = ""
    compiler: str = ""

    kernel: KernelRecipe | None = None

    def digest(self) -> str:
        """16 hex digits that change when anything that shapes the result changes; part of a build's identity."""
        told: list[object] = [
            *(self.builder, self.command, self.kconfig, self.compiler),
            *(list(self.outputs), [list(pair) for pair in self.environment]),
        ]
        if self.kernel:
            told += [self.kernel.base, self.kernel.fragments, self.kernel.arch, self.kernel.variant]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class BuildAssignment:
    """A claimed build. ``fetch_url`` is where ``ref`` (of ``commit``, 40 hex) can be fetched from."""

    build: int
    token: int
    lease_s: float
    commit: str
    fetch_url: str
    ref: str
    recipe: BuildRecipe


@dataclass(frozen=True)
class RunAssignment:
    """A claimed run. ``artifact`` is the SHA-256 of the build's archive, ``signature`` what was built (equal code,
    equal signature). ``fresh_boot`` asks for a boot of its own; otherwise a host stays on what it has booted."""

    run: int
    token: int
    lease_s: float
    host: str
    job: Job
    commit: str
    artifact: str
    signature: str
    fresh_boot: bool = False


@dataclass(frozen=True)
class RunClaim:
    """A worker asks for work for ``host``. ``instance`` is unique to this worker process; ``signature`` and ``boot``
    tell what the host has booted, "" if nothing."""

    host: str
    instance: str
    signature: str = ""
    boot: str = ""


@dataclass(frozen=True)
class BuildClaim:
    """A builder asks for work; ``builder`` is its name, ``instance`` unique to this process."""

    builder: str
    instance: str


@dataclass(frozen=True)
class Heartbeat:
    """Still at it. ``kind`` is ``run`` or ``build``."""

    kind: str
    id: int
    token: int


@dataclass(frozen=True)
class HeartbeatReply:
    """``go_on`` False: stop at once, nobody wants the result (cancelled, or claimed by someone else)."""

    go_on: bool
    reason: str = ""
