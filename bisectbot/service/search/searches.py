"""A bisection as the database holds it, turned into the engine's `Search`, and back.

What is stored is what the search was told: its arguments, the experiments in their order and what came of them.
Posterior and next experiment are recomputed, so a restart in the middle changes nothing.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, selectinload

from bisectbot.bisect import CommitGraph, Costs, Search
from bisectbot.bisect import Experiment as Planned
from bisectbot.bisect import Session as Boot
from bisectbot.jobs import wire
from bisectbot.service.context import Context
from bisectbot.service.search.candidates import AT_ONCE, Layout, read
from bisectbot.source.history import History
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
    older sessions at the good level; ``budget_s`` host seconds; ``since`` the number of its first experiment after it
    was last taken up again: what the machinery lost before is forgiven."""

    effect: float | None
    history: tuple[tuple[str, str, tuple[float, ...], float], ...]
    confidence: float
    costs: Costs
    hosts: int
    budget_s: float | None
    seed: int
    since: int = 0


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

    @property
    def signature(self) -> str:
        """What its build made, "" while it is not ready."""
        build = self.experiment.build
        return build.signature if build is not None and build.state is BuildState.READY else ""


@dataclass(frozen=True)
class Loaded:
    """A search with everything that is known, and what is still on its way."""

    search: Search
    layout: Layout
    experiments: tuple[Known, ...]
    observed: tuple[Run, ...]
    """The runs that count, in the order in which they came back."""
    earlier: tuple[tuple[int, Run], ...]
    """Runs of other bisections that were finished before this one began, of candidates with the same image."""
    keys: Epochs
    since: int

    @property
    def history(self) -> History:
        return self.layout.history

    @property
    def pending(self) -> tuple[Known, ...]:
        """Experiments whose results are still to come."""
        return tuple(item for item in self.experiments if item.state is ExperimentState.PENDING)

    @property
    def lost(self) -> int:
        """How many of the newest experiments were lost in a row."""
        return lost_in_a_row(self.experiments, self.since)


class Epochs:
    """Hosts as the search is told of them: in another environment a host is another one, and is never pooled.

    ``keys`` are the names under which hosts were seen, ``now`` each host's newest.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._first: dict[str, int | None] = {}
        self.now: dict[str, str] = {}
        self.keys: list[str] = []
        for run in runs:
            host = _host(run)
            self._first.setdefault(host, run.environment_id)
            self.now[host] = self.key(run)
            if self.now[host] not in self.keys:
                self.keys.append(self.now[host])

    def key(self, run: Run) -> str:
        """The host in its first environment goes by its name alone."""
        host = _host(run)
        same = run.environment_id == self._first.setdefault(host, run.environment_id)
        return host if same else f"{host}@{run.environment_id}"

    @staticmethod
    def host(key: str) -> str:
        """The machine behind a key."""
        return key.partition("@")[0]


def _host(run: Run) -> str:
    return run.host.name if run.host else ""


def new_search(settings: Settings, layout: Layout) -> Search:
    """The search before anything was observed."""
    return Search(
        CommitGraph(layout.history.parents),
        good=[layout.history.good],
        bad=layout.history.bad,
        prior=layout.weights or None,
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
    layout = read(context.artifacts, bisection.history)
    settings = wire.from_plain(Settings, bisection.settings)
    search = new_search(settings, layout)
    known, observed = experiments_of(session, bisection, "")
    tell_identical(search, layout, known)
    keys = Epochs(observed)
    earlier = tuple(_earlier(session, bisection, layout, known))
    for node, run in earlier:
        tell_run(search, node, run, bisection.kpi_id, keys)
    nodes = {item.experiment.id: item.node for item in known}
    for run in observed:
        tell_run(search, nodes[run.experiment_id or 0], run, bisection.kpi_id, keys)
    for item in known:
        if item.state is ExperimentState.SKIPPED:
            search.skip(item.node, item.reason)
    return Loaded(search, layout, known, observed, earlier, keys, settings.since)


def experiments_of(session: Session, bisection: Bisection, check: str) -> tuple[tuple[Known, ...], tuple[Run, ...]]:
    """The experiments of the search (``check`` "") or of a check after it, and their finished runs as they came in."""
    rows = session.execute(
        select(Experiment)
        .where(Experiment.bisection_id == bisection.id, Experiment.check == check)
        .order_by(Experiment.number)
        .options(joinedload(Experiment.build))
    ).scalars()
    experiments = rows.all()
    runs = _runs(session, experiments)
    known = tuple(Known(row, *_became(row, runs[row.id])) for row in experiments)
    finished = (run for group in runs.values() for run in group if run.state is RunState.DONE)
    return known, tuple(sorted(finished, key=lambda run: (run.finished or 0.0, run.id)))


def tell_run(search: Search, node: int | tuple[int, ...], run: Run, kpi: int, keys: Epochs) -> float | None:
    """Tell the search what a run measured; returns the value, None if the run has none."""
    value = next((sample.value for sample in run.samples if sample.kpi_id == kpi), None)
    if value is not None:
        search.observe(node, [value], host=keys.key(run), boot=run.boot_id, at=run.finished)
    return value


def _earlier(
    session: Session, bisection: Bisection, layout: Layout, known: Sequence[Known]
) -> Iterator[tuple[int, Run]]:
    """What other searches measured of the same images with the same job; an alarm's own runs never count.

    What a person asks for is measured for them. A host counts in the environment alone in which it was when the
    bisection was asked for.
    """
    places: dict[str, int] = {}
    for node, signature in [*layout.images, *((item.node, item.signature) for item in known)]:
        if signature and isinstance(node, int):
            places.setdefault(signature, node)
    if not places or not bisection.automatic:
        return
    query = (
        select(Run, Build.signature)
        .join(Build, Run.build_id == Build.id)
        .join(Experiment, Run.experiment_id == Experiment.id)
        .where(
            Run.job_id == bisection.job_id,
            Run.state == RunState.DONE,
            Run.finished < bisection.created,
            Experiment.bisection_id != bisection.id,
            Build.signature != "",
        )
        .order_by(Run.finished, Run.id)
        .options(selectinload(Run.samples), joinedload(Run.host))
    )
    present: dict[int | None, int | None] = {}
    signatures = list(places)
    for start in range(0, len(signatures), AT_ONCE):
        chosen = query.where(Build.signature.in_(signatures[start : start + AT_ONCE]))
        for run, signature in session.execute(chosen):
            if run.host_id not in present:
                present[run.host_id] = _environment(session, run.host_id, bisection.created)
            if run.environment_id == present[run.host_id]:
                yield places[signature], run


def _environment(session: Session, host: int | None, before: float) -> int | None:
    """The environment of a host's last run that was over at that time."""
    query = select(Run.environment_id).where(Run.host_id == host, Run.state == RunState.DONE, Run.finished < before)
    return session.execute(query.order_by(Run.finished.desc(), Run.id.desc()).limit(1)).scalar_one_or_none()


def lost_in_a_row(experiments: Sequence[Known], since: int) -> int:
    """How many of the newest experiments, from number ``since`` on, were lost in a row."""
    results = (item.state for item in reversed(experiments) if item.experiment.number >= since)
    return sum(1 for _ in itertools.takewhile(lambda state: state is ExperimentState.LOST, results))


def close(experiments: Sequence[Known]) -> None:
    """Store what became of experiments whose results are all in; the session must be a writing one."""
    for item in experiments:
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


def tell_identical(search: Search, layout: Layout, known: Sequence[Known]) -> None:
    """Builds with the same signature are the same thing."""
    first: dict[str, int] = {}
    for node, signature in [*layout.images, *((item.node, item.signature) for item in known)]:
        if not signature or isinstance(node, tuple):
            continue
        same = first.setdefault(signature, node)
        if same != node:
            search.identical(node, same)
