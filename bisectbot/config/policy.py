"""How the service behaves: its server, when bisections start, what is tried after them, what things cost."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from bisectbot.yamlfile import (
    RelativePath,
    Seconds,
    SecretPath,
    Section,
)


class Server(Section):
    """``listen`` is where web serves, ``url`` how workers reach it, ``token_file`` holds the workers' secret.

    ``fetch_url`` is where builders fetch from: "" is the mirror's path, for builders on this machine.
    """

    listen: str = Field("127.0.0.1:8460", pattern=r"^[^\s:]+:\d+$|^\[[0-9a-fA-F:]+\]:\d+$")
    url: str = Field("http://127.0.0.1:8460", pattern=r"^https?://\S+$")
    token_file: SecretPath | None = None
    fetch_url: str = ""


class VerifyPolicy(Section):
    """What is tried once the search has named a commit, each by choice; what contradicts keeps it from its author.

    ``revert``: take it back on top of the bad end; ``reapply``: and put it there again. ``alignment``: variables added
    to the build's environment that force the alignment of functions; with them parent and culprit are built and
    measured when the effect is below ``alignment_below`` percent. ``second_group``: measure both on another host group
    of the same job, if one is idle.
    """

    revert: bool = True
    reapply: bool = True
    alignment: dict[str, str] = Field({})
    alignment_below: float = Field(5.0, gt=0, description="percent")
    second_group: bool = True
    budget: Seconds = Field(6 * 3600.0, description="host time for each check")


class BisectionPolicy(Section):
    """When bisections start by themselves, how sure they must be and what they may cost (farm hours)."""

    automatic: bool = True
    confidence: float = Field(0.99, gt=0.5, lt=1)
    budget: Seconds = 48 * 3600.0
    daily_budget: Seconds = 12 * 3600.0
    least_probability: float = Field(0.02, ge=0.005, le=0.99, description="of a step, before it is re-tested")
    verify: VerifyPolicy = VerifyPolicy()


class CanarySpec(Section):
    """One pinned commit that each host measures again and again: does it still measure what it did?"""

    commit: str = Field("", pattern=r"^([0-9a-f]{40})?$", description="40 hex digits; none, no canary")
    build: str = ""
    job: str = ""
    interval: Seconds = 24 * 3600.0
    runs: int = Field(3, ge=1, le=100, description="in one boot")
    aa_interval: Seconds = 24 * 3600.0
    aa_boots: int = Field(0, ge=0, le=100, description="of the pinned commit against itself, each time")


class CostsSpec(Section):
    """What things cost before the service has measured it itself (farm time)."""

    build: Seconds = 600.0
    boot: Seconds = 180.0
    run: Seconds = 300.0
    boot_failure: Seconds = 900.0
    builders: int = Field(4, ge=1)


class WorkerSpec(Section):
    """Of a worker's own machine: where it keeps its mirror, spool and logs; the lock that measuring shares."""

    state: RelativePath = Path("/var/lib/bisectbot/worker")
    exclusive: str = Field("", description="name of a machine-wide lock that builds wait for")
    slots: int = Field(1, ge=1, le=64, description="builds at once on this machine")
