"""Stored runs of several commits, side by side: what LKP's comparison table is made from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, selectinload

from bisectbot.errors import UserError
from bisectbot.results.matrix import MatrixSet, RunMatrix
from bisectbot.service import catalog
from bisectbot.service.claims import recipe_of
from bisectbot.service.context import Context
from bisectbot.service.deliveries import STATS
from bisectbot.service.surroundings import surroundings
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.tables import Artifact, Build, Commit, Run, RunState

Key = tuple[int, str, int | None]  # job, build recipe, environment: what differs in one of these is not compared


def comparisons(context: Context, session: Session, revisions: Sequence[str]) -> list[MatrixSet]:
    """Put the runs of these commits side by side: a set per job, build recipe and environment that all of them ran in.

    Raises UserError for a revision that names no commit, for the same commit twice, and when there is nothing to
    compare.
    """
    shas = [context.mirror.git.resolve(revision) for revision in revisions]
    if len(set(shas)) < len(shas):
        raise UserError(f"compare: {' and '.join(revisions)} name the same commit")
    query = (
        select(Run)
        .join(Run.build)
        .join(Build.commit)
        .where(Commit.sha.in_(shas), Run.state == RunState.DONE)
        .options(selectinload(Run.samples), joinedload(Run.build).joinedload(Build.commit), joinedload(Run.job))
        .order_by(Run.finished, Run.id)
    )
    runs: dict[Key, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in session.execute(query).scalars():
        key = (run.job_id, run.build.recipe_digest, run.environment_id)
        runs[key][run.build.commit.sha].append(run)
    common = [by_commit for key, by_commit in sorted(runs.items(), key=str) if len(by_commit) == len(shas)]
    if not common:
        raise UserError(f"compare: no job has finished runs of all of {', '.join(revisions)} in one environment")
    return [_set(context, session, by_commit, shas) for by_commit in common]


def stats_of(session: Session, artifacts: Artifacts, run: Run) -> dict[str, float]:
    """Give every number of a run: its KPIs and what its monitors recorded."""
    stats: dict[str, float] = {}
    artifact = session.execute(select(Artifact.sha256).filter_by(run_id=run.id, name=STATS)).scalar_one_or_none()
    if artifact is not None:
        stats.update(json.loads(zstandard.decompress(artifacts.read(artifact))))
    stats.update({sample.kpi.name: sample.value for sample in run.samples})
    return stats


def _set(context: Context, session: Session, runs: Mapping[str, Sequence[Run]], shas: Sequence[str]) -> MatrixSet:
    first = runs[shas[0]][0]
    around = surroundings(session, context.config, catalog.job_spec(first.job), recipe_of(first.build))
    matrices = {
        sha: RunMatrix.from_runs([stats_of(session, context.artifacts, run) for run in runs[sha]]) for sha in shas
    }
    return MatrixSet(matrices, around.axes)
