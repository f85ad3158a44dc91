"""A bisection recomputed from its records: what was known after each result, and whether the verdict still stands."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.service.commands import number
from bisectbot.service.context import Context
from bisectbot.service.searches import ENGINE, Settings, load, load_history, new_search
from bisectbot.service.status import verdict_of
from bisectbot.store.tables import Bisection, Commit, ExperimentState


@dataclass(frozen=True)
class Frame:
    """After one result: what came in (KPI units), and the posterior over the candidates, in their order."""

    commit: str
    subject: str
    value: float | None
    """None: the commit was skipped."""
    reason: str
    likeliest: str
    probability: float
    posterior: tuple[float, ...]


@dataclass(frozen=True)
class Replay:
    """A whole bisection. ``stored`` and ``recomputed`` are verdict states with the culprit's id, "" if none."""

    id: str
    unit: str
    engine: str
    frames: tuple[Frame, ...]
    candidates: tuple[str, ...]
    stored: str
    recomputed: str
    probability: float
    agrees: bool


def replay(context: Context, word: str) -> Replay:
    """Feed the recorded results to a new search, one by one. Raises UserError if there is nothing to replay."""
    with context.database.read() as session:
        row = session.get(Bisection, number(word, "B"))
        if row is None:
            raise UserError(f"there is no bisection {word.upper()}; see `bisectbot status`")
        if not row.history:
            raise UserError(f"B{row.id} has not begun: {row.reason or 'nothing was measured yet'}")
        loaded = load(context, session, row)
        history = load_history(context.artifacts, row.history)
        search = new_search(wire.from_plain(Settings, row.settings), history)
        shas = history.shas
        subjects = dict(session.execute(select(Commit.sha, Commit.subject).where(Commit.sha.in_(shas))).all())
        nodes = {item.experiment.id: item.node for item in loaded.experiments}
        frames: list[Frame] = []

        def frame(node: int | tuple[int, ...], value: float | None, reason: str) -> None:
            posterior = search.posterior()
            best, probability = max(posterior, key=lambda pair: pair[1])
            sha = shas[node] if isinstance(node, int) else "+".join(shas[n][:12] for n in node)
            told = tuple(p for _, p in posterior)
            frames.append(Frame(sha, subjects.get(sha, ""), value, reason, shas[best], probability, told))

        for run in loaded.observed:
            value = next((s.value for s in run.samples if s.kpi_id == row.kpi_id), None)
            if value is None or run.experiment_id is None:
                continue
            host = run.host.name if run.host else None
            search.observe(nodes[run.experiment_id], [value], host=host, boot=run.boot_id, at=run.finished)
            frame(nodes[run.experiment_id], value, "")
        for item in loaded.experiments:
            if item.state is ExperimentState.SKIPPED:
                search.skip(item.node, item.reason)
                frame(item.node, None, item.reason)
        final = loaded.search.verdict()
        stored = verdict_of(row)
        recomputed = f"{final.state.value} {shas[final.culprit]}" if final.culprit is not None else final.state.value
        kept = ""
        if stored is not None:
            kept = f"{stored.state.value} {shas[stored.culprit]}" if stored.culprit is not None else stored.state.value
        return Replay(
            id=f"B{row.id}",
            unit=row.kpi.unit,
            engine=f"{row.engine or ENGINE}, now {ENGINE}",
            frames=tuple(frames),
            candidates=tuple(shas[node] for node, _ in search.posterior()),
            stored=kept,
            recomputed=recomputed,
            probability=final.probability,
            agrees=stored is None or kept == recomputed,
        )
