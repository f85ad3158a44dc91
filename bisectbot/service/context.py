"""What every part of the service is given: the configuration and the four things it works with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bisectbot.clock import Clock, from_environment
from bisectbot.config import Config
from bisectbot.service.hints import Hints
from bisectbot.source.mirror import Mirror
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.database import Database

LEASE_S = 90.0
"""Farm seconds for which a claim holds without a heartbeat."""


@dataclass(frozen=True)
class Context:
    config: Config
    database: Database
    artifacts: Artifacts
    mirror: Mirror
    hints: Hints
    clock: Clock

    @property
    def lease_s(self) -> float:
        """How long a lease holds, in real seconds."""
        return self.clock.real(LEASE_S)


def open_context(config: Config, clock: Clock | None = None) -> Context:
    """The service's context for ``config``; opens nothing yet but what is needed to say where things are."""
    state: Path = config.state
    return Context(
        config=config,
        database=Database(config.database_url),
        artifacts=Artifacts(state / "artifacts"),
        mirror=Mirror(state / "mirror.git"),
        hints=Hints(config.broker_url),
        clock=clock or from_environment(),
    )
