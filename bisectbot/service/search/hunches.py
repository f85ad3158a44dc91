"""What is known of a bisection's commits before any is measured: what was compiled, and which functions moved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from bisectbot.service.comparison import stats_of
from bisectbot.service.context import Context
from bisectbot.service.deliveries import COMPILED
from bisectbot.source.git import Git
from bisectbot.source.relevance import files_of_functions, prior
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.tables import Artifact, Bisection, Build, Commit, Run, RunState

PROFILE = "perf-profile.self.cycles-pp."
MOVED = 0.5  # per cent of all samples: a smaller share of the profile cannot carry a step worth a search
LOOK_AT = 5  # runs of either end


@dataclass(frozen=True)
class Hunches:
    """``compiled`` source files of both ends' builds (empty: nobody knows), functions that ``moved``, the bad end."""

    compiled: frozenset[str]
    moved: frozenset[str]
    bad: str

    def __bool__(self) -> bool:
        return bool(self.compiled or self.moved)


def hunches(context: Context, session: Session, bisection: Bisection, recipe: str) -> Hunches:
    """Gather them from the builds and the runs of both ends."""
    compiled = [_compiled(context.artifacts, session, sha, recipe) for sha in (bisection.good, bisection.bad)]
    profiles = [_profile(context, session, bisection.job_id, sha) for sha in (bisection.good, bisection.bad)]
    every = frozenset[str]() if not all(compiled) else compiled[0] | compiled[1]
    return Hunches(every, moved_functions(*profiles), bisection.bad)


def weigh(git: Git, shas: Sequence[str], hints: Hunches) -> list[float]:
    """The prior of each commit; see `bisectbot.source.relevance.prior`."""
    hot = files_of_functions(git, hints.bad, hints.moved, hints.compiled) if hints.moved else frozenset[str]()
    return prior(git, shas, hints.compiled, moved=hot)


def moved_functions(before: Mapping[str, float], after: Mapping[str, float]) -> frozenset[str]:
    """Functions whose own share of a profile (percent, by name) differs by `MOVED` or more; none without both."""
    if not (before and after):
        return frozenset()
    return frozenset(name for name in {*before, *after} if abs(after.get(name, 0.0) - before.get(name, 0.0)) >= MOVED)


def _compiled(artifacts: Artifacts, session: Session, sha: str, recipe: str) -> frozenset[str]:
    query = (
        select(Artifact.sha256)
        .join(Build, Artifact.build_id == Build.id)
        .join(Commit, Build.commit_id == Commit.id)
        .where(Commit.sha == sha, Build.recipe_digest == recipe, Artifact.name == COMPILED)
        .order_by(Artifact.id.desc())
    )
    found = session.execute(query.limit(1)).scalar_one_or_none()
    return frozenset(json.loads(zstandard.decompress(artifacts.read(found)))) if found else frozenset()


def _profile(context: Context, session: Session, job: int, sha: str) -> dict[str, float]:
    """Each function's own share of the profile, the average of a commit's newest runs."""
    query = (
        select(Run)
        .join(Build, Run.build_id == Build.id)
        .join(Commit, Build.commit_id == Commit.id)
        .where(Commit.sha == sha, Run.job_id == job, Run.state == RunState.DONE)
        .order_by(Run.id.desc())
        .options(selectinload(Run.samples))
    )
    runs = [stats_of(session, context.artifacts, run) for run in session.execute(query.limit(LOOK_AT)).scalars()]
    shares: dict[str, float] = {}
    for stats in runs:
        for name, value in stats.items():
            if name.startswith(PROFILE):
                function = name.removeprefix(PROFILE)
                shares[function] = shares.get(function, 0.0) + value / len(runs)
    return shares
