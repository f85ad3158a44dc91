"""A whole laboratory in a folder: an upstream repository, the service's context, and workers that only pretend.

The repository is real, the database is real, every step of the service is the real one; what a worker would measure
comes from the file ``level`` of the commit and its files ``effect…``, plus noise. Tests of real worker processes are in
test_chaos.py.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bisectbot.clock import Clock
from bisectbot.config import Config, load
from bisectbot.jobs.assignment import BuildAssignment, BuildClaim, RunAssignment, RunClaim
from bisectbot.results.delivery import BootRecord, BuildDelivery, Outcome, RunDelivery
from bisectbot.service import scheduler
from bisectbot.service.advance import advance
from bisectbot.service.bisections import open_bisections
from bisectbot.service.catalog import synchronise
from bisectbot.service.claims import claim_build, claim_run
from bisectbot.service.context import Context
from bisectbot.service.deliveries import Receipt, deliver_build, deliver_run
from bisectbot.service.detect import detect
from bisectbot.service.dispatch import dispatch
from bisectbot.service.hints import Hints
from bisectbot.service.people.requests import requests
from bisectbot.service.people.trials import trials
from bisectbot.service.plan import plan
from bisectbot.service.reap import reap
from bisectbot.service.report import report
from bisectbot.service.suspect import suspect
from bisectbot.service.watch import watch
from bisectbot.source.git import Git
from bisectbot.source.mirror import Mirror
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.database import Database

GROUP = "lkp-icl-2sp2"
HOST = "lkp-icl-2sp2-1"
NOT_COMPILED = ("doc", "Next/", "localversion")
TREE, BRANCH, KPI = "demo", "main", "demo.ops"
STEPS: tuple[Callable[[Context], int], ...] = (
    watch, plan, requests, trials, detect, suspect, open_bisections, advance, report, reap, dispatch,
)  # fmt: skip


class Recorder(Hints):
    """Where the service's hints go when no worker process listens: a list."""

    def __init__(self) -> None:
        super().__init__("memory://")
        self.sent: list[tuple[str, int]] = []

    def run(self, host: str, run: int) -> bool:
        self.sent.append((host, run))
        return True

    def build(self, build: int) -> bool:
        self.sent.append(("build", build))
        return True


class Upstream:
    """A repository that somebody develops in. Commits are made without a work tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        who = {"NAME": "Ada Byron", "EMAIL": "ada@example.org"}
        self._clock = 1_700_000_000
        self._who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        self.git = Git(path)
        self.git.init_bare()

    def commit(self, files: dict[str, str], *parents: str, subject: str = "") -> str:
        """A commit with exactly these files."""
        self._clock += 60
        date = f"@{self._clock} +0000"
        writer = Git(self.path, env={**self._who, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})
        rows = ""
        for name, text in sorted(files.items()):
            blob = writer.run("hash-object", "-w", "--stdin", input=text)
            rows += f"100644 blob {blob}\t{name}\n"
        tree = writer.run("mktree", input=rows)
        words = [word for parent in parents for word in ("-p", parent)]
        return writer.run("commit-tree", tree, *words, "-m", subject or f"level {files.get('level', '').strip()}")

    def line(self, levels: Sequence[float | None], *, first: str | None = None, start: int = 0) -> list[str]:
        """A line of commits, one per level; None does not build."""
        made: list[str] = []
        tip = first
        for number, level in enumerate(levels, start):
            files = {"level": "broken\n" if level is None else f"{level}\n", "number": f"{number}\n"}
            tip = self.commit(files, *([tip] if tip else []), subject=f"change {number}")
            made.append(tip)
        return made

    def push(self, sha: str, branch: str = BRANCH) -> None:
        self.git.run("update-ref", f"refs/heads/{branch}", sha)


def _effect(text: str, environment: dict[str, str]) -> float:
    """A number; "-3 unless ALIGN" is one only in a build without that variable."""
    number, _, unless = text.partition(" unless ")
    return 0.0 if unless and unless in environment else float(number)


@dataclass
class Lab:
    """``sigma`` is the noise of a run; ``faults`` may replace the outcome of a run or build (None: as usual)."""

    folder: Path
    context: Context
    upstream: Upstream
    hints: Recorder
    sigma: float = 1.0
    boots: bool = True
    rng: random.Random = field(default_factory=lambda: random.Random(3))
    faults: Callable[[RunAssignment | BuildAssignment], tuple[Outcome, str] | None] = lambda _: None
    runs_made: int = 0
    booted: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        return self.context.config

    def tick(self) -> None:
        """One round of the scheduler."""
        for step in STEPS:
            step(self.context)

    def build(self) -> BuildAssignment | None:
        """Let a builder take one build and deliver it."""
        given = claim_build(self.context, BuildClaim("builder", "builder-1"))
        if given is not None:
            assert deliver_build(self.context, self.built(given)) is Receipt.ACCEPTED
        return given

    def built(self, given: BuildAssignment) -> BuildDelivery:
        fault = self.faults(given)
        if fault is not None:
            return BuildDelivery(given.build, given.token, *fault)
        level = self.level(given)
        if level is None:
            return BuildDelivery(given.build, given.token, Outcome.UNTESTABLE, "make: error")
        rows = self.context.mirror.git.run("ls-tree", "-r", given.commit).splitlines()
        compiled = "\n".join(row for row in rows if not row.split("\t", 1)[1].startswith(NOT_COMPILED))
        signature = hashlib.sha256(compiled.encode()).hexdigest()
        artifact = self.context.artifacts.put([f"{level}\n".encode()])
        return BuildDelivery(given.build, given.token, Outcome.DONE, artifact=artifact, signature=signature, seconds=60)

    def level(self, given: BuildAssignment) -> float | None:
        """What the commit's build makes of a run; None: it does not build."""
        git = self.context.mirror.git
        content = git.run("show", f"{given.commit}:level")
        if content == "broken":
            return None
        rows = (row.split("\t", 1) for row in git.run("ls-tree", given.commit).splitlines())
        effects = [words.split()[2] for words, path in rows if path.startswith("effect")]
        environment = dict(given.recipe.environment)
        return float(content) + sum(_effect(git.run("cat-file", "blob", blob), environment) for blob in effects)

    def claim(self, host: str = HOST) -> RunAssignment | None:
        signature, boot = self.booted.get(host, ("", ""))
        return claim_run(self.context, RunClaim(host, f"worker of {host}", signature, boot))

    def run(self, host: str = HOST) -> RunAssignment | None:
        """Let a host take one run and deliver it."""
        given = self.claim(host)
        if given is not None:
            assert deliver_run(self.context, self.measured(given)) is Receipt.ACCEPTED
        return given

    def measured(self, given: RunAssignment) -> RunDelivery:
        self.runs_made += 1
        fault = self.faults(given)
        if fault is not None:
            return RunDelivery(given.run, given.token, *fault, host_s=10.0)
        signature, key = self.booted.get(given.host, ("", ""))
        if given.fresh_boot or signature != given.signature:
            key = f"{given.host}-boot-{self.runs_made}"
            self.booted[given.host] = (given.signature, key)
        level = float(self.context.artifacts.read(given.artifact))
        boot = BootRecord(key, 180.0, 0.0) if self.boots else None
        value = self.rng.gauss(level, self.sigma)
        stats = (("vmstat.cpu.sy", self.rng.gauss(20, 0.1)), ("meminfo.Active", self.rng.gauss(1e6, 10)))
        return RunDelivery(
            given.run,
            given.token,
            Outcome.DONE,
            samples=((KPI, value),),
            stats=stats,
            boot=boot,
            environment=(("microcode", "0xd000331"),),
            seconds=300.0,
            host_s=480.0,
        )

    def work(self, rounds: int = 1000) -> None:
        """Tick, build and run until nothing is left to do."""
        for _ in range(rounds):
            self.tick()
            busy = self.build() is not None
            busy = sum(self.run(host) is not None for host in self.config.hosts) > 0 or busy
            if not busy:
                self.tick()
                if self.build() is None and all(self.run(host) is None for host in self.config.hosts):
                    return
        raise AssertionError("the laboratory does not come to rest")


def write_config(folder: Path, upstream: Path, database_url: str, changes: dict[str, Any] | None = None) -> Path:
    """A configuration of one simulated host; ``changes`` are merged into it, None takes a key away. ``facts`` among
    them are those of host groups."""
    config: dict[str, Any] = {
        "state": "state",
        "database": database_url,
        "tick": "1s",
        "mail": {"sender": "bisectbot <bot@example.org>", "operators": ["ops@example.org"], "policy": "author"},
        "trees": {
            TREE: {"url": str(upstream), "interval": "0s", "branches": {BRANCH: {"build": "b", "jobs": ["bench"]}}}
        },
        "builds": {"b": {"command": "grep -q '[0-9]' level", "outputs": ["level", "number"]}},
        "jobs": {
            "bench": {
                "command": "cat level",
                "groups": [GROUP],
                "runs": 3,
                "kpis": {KPI: {"unit": "ops/s", "better": "more"}},
            }
        },
        "worker": {"state": "workers"},
    }
    _merge(config, changes or {})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts").mkdir(exist_ok=True)
    (folder / "model.yaml").write_text(yaml.safe_dump({"rules": [{"file": "level"}]}))
    for group, facts in config.pop("facts", {}).items():
        (folder / "hosts" / f"{group}.yaml").write_text(yaml.safe_dump(facts))
    hosts = config.pop("hosts", None) or {HOST: {"group": GROUP}}
    for name, host in hosts.items():
        whole = {"driver": "simulated", "simulated": {"model": "../model.yaml"}, **host}
        (folder / "hosts" / f"{name}.yaml").write_text(yaml.safe_dump(whole))
    path = folder / "bisectbot.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def make_lab(folder: Path, database_url: str, changes: dict[str, Any] | None = None, scale: float = 1000.0) -> Lab:
    """A laboratory whose farm time runs ``scale`` times faster than the clock."""
    upstream = Upstream(folder / "upstream.git")
    config = load(write_config(folder, upstream.path, database_url, changes))
    hints = Recorder()
    context = Context(
        config=config,
        database=Database(config.database_url),
        artifacts=Artifacts(config.state / "artifacts"),
        mirror=Mirror(config.state / "mirror.git"),
        hints=hints,
        clock=Clock(scale),
    )
    with context.database.write() as session:
        synchronise(session, config)
    return Lab(folder, context, upstream, hints)


assert set(STEPS) <= {step for steps in scheduler.LOOPS.values() for step in steps}
