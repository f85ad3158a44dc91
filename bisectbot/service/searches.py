"""A bisection as the database holds it, turned into the engine's `Search`, and back.

What is stored is what the search was told: its arguments, the experiments in their order and what came of them.
Posterior and next experiment are recomputed, so a restart in the middle changes nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
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
class Loaded:
    """A search with everything that is known, and what is still on its way."""

    search: Search
    history: History
    pending: tuple[Experiment, ...]
    experiments: tuple[Experiment, ...]
    observed: tuple[Run, ...]
    """The runs that count, in the order in which they came back."""
    lost: int
    """How many of the newest experiments were lost in a row."""


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
    """Everything that a bisection knows; closes experiments whose results are all in."""
    history = load_history(context.artifacts, bisection.history)
    search = new_search(wire.from_plain(Settings, bisection.settings), history)
    experiments = tuple(
        session.execute(
            select(Experiment)
            .where(Experiment.bisection_id == bisection.id)
            .order_by(Experiment.number)
            .options(joinedload(Experiment.build))
        ).scalars()
    )
    runs = _runs(session, experiments)
    for experiment in experiments:
        _close(experiment, runs[experiment.id])
    _tell_identical(search, experiments)
    observed = sorted(
        (run for group in runs.values() for run in group if run.state is RunState.DONE),
        key=lambda run: (run.finished or 0.0, run.id),
    )
    nodes = {experiment.id: node_of(experiment) for experiment in experiments}
    for run in observed:
        value = next((sample.value for sample in run.samples if sample.kpi_id == bisection.kpi_id), None)
        if value is not None and run.experiment_id is not None:
            host = run.host.name if run.host else None
            search.observe(nodes[run.experiment_id], [value], host=host, boot=run.boot_id, at=run.finished)
    for experiment in experiments:
        if experiment.state is ExperimentState.SKIPPED:
            search.skip(nodes[experiment.id], experiment.reason)
    lost = 0
    for experiment in reversed(experiments):
        if experiment.state is not ExperimentState.LOST:
            break
        lost += 1
    pending = tuple(e for e in experiments if e.state is ExperimentState.PENDING)
    return Loaded(search, history, pending, experiments, tuple(observed), lost)


def node_of(experiment: Experiment) -> int | tuple[int, ...]:
    """The engine's word for an experiment's commit."""
    return int(experiment.nodes[0]) if len(experiment.nodes) == 1 else tuple(int(node) for node in experiment.nodes)


def as_planned(experiment: Experiment) -> Planned:
    """An experiment as the engine planned it."""
    return Planned(node_of(experiment), experiment.runs, fresh_boot=experiment.fresh_boot)


def _runs(session: Session, experiments: tuple[Experiment, ...]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = defaultdict(list)
    query = select(Run).where(Run.experiment_id.in_([e.id for e in experiments])).order_by(Run.id)
    for run in session.execute(query.options(selectinload(Run.samples), joinedload(Run.host))).scalars():
        if run.experiment_id is not None:
            found[run.experiment_id].append(run)
    return found


def _close(experiment: Experiment, runs: list[Run]) -> None:
    """Decide what became of a pending experiment, if nothing more will come."""
    if experiment.state is not ExperimentState.PENDING:
        return
    build: Build | None = experiment.build
    if any(run.state is RunState.DONE for run in runs) and not any(run.state.open for run in runs):
        experiment.state = ExperimentState.DONE
    elif build is not None and build.state is BuildState.UNTESTABLE:
        experiment.state, experiment.reason = ExperimentState.SKIPPED, f"does not build: {build.message}"
    elif not any(run.state.open for run in runs):
        failed = next((run for run in runs if run.failure in {FailureKind.UNTESTABLE, FailureKind.RUN}), None)
        if failed is not None:
            experiment.state, experiment.reason = ExperimentState.SKIPPED, failed.message
        else:
            experiment.state, experiment.reason = ExperimentState.LOST, "the machinery gave no result"


def _tell_identical(search: Search, experiments: tuple[Experiment, ...]) -> None:
    """Builds with the same signature are the same thing."""
    first: dict[str, Experiment] = {}
    for experiment in experiments:
        build = experiment.build
        if build is None or build.state is not BuildState.READY or not build.signature or len(experiment.nodes) > 1:
            continue
        known = first.setdefault(build.signature, experiment)
        if known.nodes != experiment.nodes:
            search.identical(int(experiment.nodes[0]), int(known.nodes[0]))
