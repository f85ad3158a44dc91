"""A bisection as the database holds it, turned into the engine's `Search`, and back.

What is stored is what the search was told: its arguments, the experiments in their order and what came of them.
Posterior and next experiment are recomputed, so a restart in the middle changes nothing.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, selectinload

from bisectbot.bisect import CommitGraph, Costs, Search
from bisectbot.bisect import Experiment as Planned
from bisectbot.bisect import Session as Boot
from bisectbot.jobs import wire
from bisectbot.service.context import Context
from bisectbot.source.history import History
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.tables import (
    Bisection,
    Build,
    BuildState,
    Experiment,
    ExperimentState,
    FailureKind,
    Run,
    RunState,
)

ENGINE = "bisect/1"


@dataclass(frozen=True)
class Settings:
    """The arguments of a search beside graph and ends. ``effect`` is bad minus good in KPI units; ``history`` are
    older sessions at the good level; ``budget_s`` host seconds."""

    effect: float | None
    history: tuple[tuple[str, str, tuple[float, ...], float], ...]
    confidence: float
    costs: Costs
    hosts: int
    budget_s: float | None
    seed: int


@dataclass(frozen=True)
class Known:
    """An experiment with what became of it, as its runs and its build tell now."""

    experiment: Experiment
    state: ExperimentState
    reason: str

    @property
    def node(self) -> int | tuple[int, ...]:
        """The engine's word for its commit."""
        nodes = [int(node) for node in self.experiment.nodes]
        return nodes[0] if len(nodes) == 1 else tuple(nodes)

    @property
    def planned(self) -> Planned:
        """The experiment as the engine planned it."""
        return Planned(self.node, self.experiment.runs, fresh_boot=self.experiment.fresh_boot)


@dataclass(frozen=True)
class Loaded:
    """A search with everything that is known, and what is still on its way."""

    search: Search
    history: History
    experiments: tuple[Known, ...]
    observed: tuple[Run, ...]
    """The runs that count, in the order in which they came back."""

    @property
    def pending(self) -> tuple[Known, ...]:
        """Experiments whose results are still to come."""
        return tuple(item for item in self.experiments if item.state is ExperimentState.PENDING)

    @property
    def lost(self) -> int:
        """How many of the newest experiments were lost in a row."""
        results = (item.state for item in reversed(self.experiments))
        return sum(1 for _ in itertools.takewhile(lambda state: state is ExperimentState.LOST, results))


def save_history(artifacts: Artifacts, history: History) -> str:
    """Keep the candidates, in the order that the search numbers them."""
    told = [history.shas, history.parents, history.boundary, history.good, history.bad, history.bases]
    return artifacts.put([zstandard.compress(json.dumps(told).encode())])


def load_history(artifacts: Artifacts, sha256: str) -> History:
    """What `save_history` kept."""
    shas, parents, boundary, good, bad, bases = json.loads(zstandard.decompress(artifacts.read(sha256)))
    return History(tuple(shas), tuple(tuple(p) for p in parents), boundary, good, bad, tuple(bases))


def new_search(settings: Settings, history: History) -> Search:
    """The search before anything was observed."""
    return Search(
        CommitGraph(history.parents),
        good=[history.good],
        bad=history.bad,
        effect=settings.effect,
        history=[Boot(host, boot, values, at) for host, boot, values, at in settings.history],
        confidence=settings.confidence,
        costs=settings.costs,
        hosts=settings.hosts,
        budget_s=settings.budget_s,
        seed=settings.seed,
    )


def load(context: Context, session: Session, bisection: Bisection) -> Loaded:
    """Everything that a bisection knows; changes nothing."""
    history = load_history(context.artifacts, bisection.history)
    search = new_search(wire.from_plain(Settings, bisection.settings), history)
    rows = session.execute(
        select(Experiment)
        .where(Experiment.bisection_id == bisection.id)
        .order_by(Experiment.number)
        .options(joinedload(Experiment.build))
    ).scalars()
    experiments = rows.all()
    runs = _runs(session, experiments)
    known = tuple(Known(row, *_became(row, runs[row.id])) for row in experiments)
    _tell_identical(search, known)
    finished = (run for group in runs.values() for run in group if run.state is RunState.DONE)
    observed = sorted(finished, key=lambda run: (run.finished or 0.0, run.id))
    nodes: dict[int | None, int | tuple[int, ...]] = {item.experiment.id: item.node for item in known}
    for run in observed:
        value = next((sample.value for sample in run.samples if sample.kpi_id == bisection.kpi_id), None)
        if value is not None:
            host = run.host.name if run.host else None
            search.observe(nodes[run.experiment_id], [value], host=host, boot=run.boot_id, at=run.finished)
    for item in known:
        if item.state is ExperimentState.SKIPPED:
            search.skip(item.node, item.reason)
    return Loaded(search, history, known, tuple(observed))


def close(loaded: Loaded) -> None:
    """Store what became of experiments whose results are all in; the session must be a writing one."""
    for item in loaded.experiments:
        if item.experiment.state is not item.state:
            item.experiment.state, item.experiment.reason = item.state, item.reason


def _runs(session: Session, experiments: Sequence[Experiment]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = defaultdict(list)
    query = select(Run).where(Run.experiment_id.in_([e.id for e in experiments])).order_by(Run.id)
    for run in session.execute(query.options(selectinload(Run.samples), joinedload(Run.host))).scalars():
        if run.experiment_id is not None:
            found[run.experiment_id].append(run)
    return found


def _became(experiment: Experiment, runs: list[Run]) -> tuple[ExperimentState, str]:
    """What became of an experiment, as far as its runs and its build tell."""
    build: Build | None = experiment.build
    if experiment.state is not ExperimentState.PENDING:
        return experiment.state, experiment.reason
    if build is not None and build.state is BuildState.UNTESTABLE:
        return ExperimentState.SKIPPED, f"does not build: {build.message}"
    if any(run.state.open for run in runs):
        return ExperimentState.PENDING, ""
    if any(run.state is RunState.DONE for run in runs):
        return ExperimentState.DONE, ""
    failed = next((run for run in runs if run.failure in {FailureKind.UNTESTABLE, FailureKind.RUN}), None)
    if failed is not None:
        return ExperimentState.SKIPPED, failed.message
    return ExperimentState.LOST, "the machinery gave no result"


def _tell_identical(search: Search, known: Sequence[Known]) -> None:
    """Builds with the same signature are the same thing."""
    first: dict[str, int] = {}
    for item in known:
        build = item.experiment.build
        if build is None or build.state is not BuildState.READY or not build.signature or isinstance(item.node, tuple):
            continue
        node = first.setdefault(build.signature, item.node)
        if node != item.node:
            search.identical(item.node, node)
