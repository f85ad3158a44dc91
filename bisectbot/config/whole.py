"""``bisectbot.yaml``, whole, with the host files beside it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, PrivateAttr

from bisectbot.config.builds import Build
from bisectbot.config.chat import Chat
from bisectbot.config.hosts import Host
from bisectbot.config.jobs import JobSpec
from bisectbot.config.mail import Mail
from bisectbot.config.policy import BisectionPolicy, CanarySpec, CostsSpec, Server, WorkerSpec
from bisectbot.config.trees import Branch, Tree
from bisectbot.jobs.assignment import Job
from bisectbot.jobs.hosts import Host as HostFacts
from bisectbot.yamlfile import (
    Name,
    RelativePath,
    Seconds,
    Section,
)


class Config(Section):
    """``bisectbot.yaml``, whole. ``hosts`` is filled from the folder of host files beside it."""

    state: RelativePath = Path("/var/lib/bisectbot")
    database: str = ""
    broker: str = "embedded"
    server: Server = Server()
    mail: Mail = Mail()
    chat: Chat = Chat()
    tick: Seconds = 5.0
    trees: dict[Name, Tree] = Field(min_length=1)
    builds: dict[Name, Build] = Field(min_length=1)
    jobs: dict[Name, JobSpec] = Field(min_length=1)
    bisection: BisectionPolicy = BisectionPolicy()
    canary: CanarySpec = CanarySpec()
    costs: CostsSpec = CostsSpec()
    worker: WorkerSpec = WorkerSpec()
    hosts: dict[Name, Host] = Field({})

    _units: dict[str, tuple[Job, ...]] = PrivateAttr(default_factory=dict)
    _facts: dict[str, HostFacts] = PrivateAttr(default_factory=dict)

    @property
    def database_url(self) -> str:
        """SQLAlchemy's address of the database; SQLite below ``state`` unless told otherwise."""
        return self.database or f"sqlite:///{self.state / 'bisectbot.db'}"

    @property
    def token_path(self) -> Path:
        """The file with the workers' secret: as configured, or one that `serve` makes below ``state``."""
        return self.server.token_file or self.state / "worker.token"

    @property
    def broker_socket(self) -> Path:
        """Where the embedded broker listens: short, since the path of a Unix socket has at most 107 bytes."""
        digest = hashlib.sha256(str(self.state.absolute()).encode()).hexdigest()[:12]
        folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        return folder / f"bisectbot-{os.getuid()}-{digest}" / "broker"

    @property
    def broker_url(self) -> str:
        """Celery's address of the broker."""
        return f"redis+socket://{self.broker_socket}" if self.broker == "embedded" else self.broker

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """Of each host group that has a file (``hosts/GROUP.yaml``)."""
        return self._facts

    def units(self, name: str) -> tuple[Job, ...]:
        """The unit jobs of ``jobs.NAME``, for every host group; job files as they were when the service started."""
        return self._units[name]

    def jobs_of(self, branch: Branch) -> list[Job]:
        """The unit jobs of a branch, for every host group."""
        return [job for name in branch.jobs for job in self.units(name)]
