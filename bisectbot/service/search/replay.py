"""A bisection recomputed from its records: what was known after each result, and whether the verdict still stands."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.service.commands import number
from bisectbot.service.context import Context
from bisectbot.service.search.searches import ENGINE, Settings, load, new_search, tell_run
from bisectbot.service.search.verdicts import search_verdict
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
        search = new_search(wire.from_plain(Settings, row.settings), loaded.layout)
        shas = loaded.history.shas
        subjects = dict(session.execute(select(Commit.sha, Commit.subject).where(Commit.sha.in_(shas))).all())
        nodes = {item.experiment.id: item.node for item in loaded.experiments}
        frames: list[Frame] = []

        def frame(node: int | tuple[int, ...], value: float | None, reason: str) -> None:
            posterior = search.posterior()
            best, probability = max(posterior, key=lambda pair: pair[1])
            sha = shas[node] if isinstance(node, int) else "+".join(shas[n][:12] for n in node)
            told = tuple(p for _, p in posterior)
            frames.append(Frame(sha, subjects.get(sha, ""), value, reason, shas[best], probability, told))

        for node, run in [*loaded.earlier, *((nodes[run.experiment_id or 0], run) for run in loaded.observed)]:
            value = tell_run(search, node, run, row.kpi_id, loaded.keys)
            if value is not None:
                frame(node, value, "")
        for item in loaded.experiments:
            if item.state is ExperimentState.SKIPPED:
                search.skip(item.node, item.reason)
                frame(item.node, None, item.reason)
        final = loaded.search.verdict()
        stored = search_verdict(row)
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
