"""Runs of several commits, side by side, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import zstandard
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe, Job
from bisectbot.jobs.kpi import Kpi
from bisectbot.results.compare import compare
from bisectbot.results.table import row_text
from bisectbot.service import catalog
from bisectbot.service.comparison import comparisons
from bisectbot.service.context import Context
from bisectbot.service.deliveries import STATS
from bisectbot.store.tables import Artifact, Build, BuildState, Commit, Run, RunState, Sample
from tests.source.fastimport import FastImport
from tests.support.lab import Lab

OPEN1 = Job(
    "wis", "will-it-scale", "command", "lkp-icl-2sp2", (Kpi("will-it-scale.ops"),), "true", (("test", "open1"),)
)
EXEC = Job("aim9", "aim9", "command", "lkp-ivb-2ep1", (Kpi("aim9.exec"),), "true")
RECIPE = wire.to_plain(BuildRecipe("kernel", "command", "make", kconfig="x86_64-rhel-8.3", compiler="gcc-12"))


class Runs:
    """Commits in the mirror, and runs of them in the database."""

    def __init__(self, context: Context, session: Session) -> None:
        self.context = context
        self.session = session
        history = FastImport(context.config.state / "mirror.git")
        numbers = [history.commit(subject) for subject in ("one", "two", "three")]
        history.ref("refs/heads/master", numbers[-1])
        history.write()
        self.shas = [history.sha(number) for number in numbers]
        self.commits = [Commit(sha=sha) for sha in self.shas]
        session.add_all(self.commits)
        session.flush()

    def run(self, commit: int, job: Job, value: float, *, recipe: str = "a", state: RunState = RunState.DONE) -> None:
        row = catalog.job_row(self.session, job)
        identity = {"commit_id": self.commits[commit].id, "recipe_digest": recipe * 64}
        build = catalog.find_or_add(self.session, Build, identity, recipe=RECIPE, state=BuildState.READY, created=0.0)
        run = Run(
            build_id=build.id, job_id=row.id, group_id=row.group_id, purpose=0, state=state, created=0.0, finished=1.0
        )
        self.session.add(run)
        self.session.flush()
        self.session.add(Sample(run_id=run.id, kpi_id=row.kpis[0].id, value=value))
        packed = zstandard.compress(json.dumps({"vmstat.system.cs": 100 * value}).encode())
        self.session.add(
            Artifact(run_id=run.id, name=STATS, sha256=self.context.artifacts.put([packed]), size=len(packed))
        )
        self.session.flush()

    def compared(self, *revisions: str) -> list[list[str]]:
        sets = comparisons(self.context, self.session, revisions)
        return [[row_text(row) for row in compare(each).rows] for each in sets]


@pytest.fixture
def runs(lab: Lab) -> Iterator[Runs]:
    with lab.context.database.write() as session:
        yield Runs(lab.context, session)


def test_a_table_per_job_that_ran_on_all(runs: Runs):
    for value in (100.0, 101.0, 99.0):
        runs.run(0, OPEN1, value)
        runs.run(2, OPEN1, value + 50)
        runs.run(0, EXEC, value)
        runs.run(2, EXEC, value - 50)
        runs.run(1, EXEC, value)
    runs.run(2, OPEN1, 5.0, state=RunState.FAILED)
    assert runs.compared(runs.shas[0][:12], runs.shas[2]) == [
        [
            "    100.00           +50.0%     150.00        will-it-scale.ops",
            "     10000           +50.0%      15000        vmstat.system.cs",
        ],
        [
            "    100.00           -50.0%      50.00        aim9.exec",
            "     10000           -50.0%       5000        vmstat.system.cs",
        ],
    ]
    (three,) = runs.compared(*runs.shas)
    assert three[0] == "    100.00            +0.0%     100.00           -50.0%      50.00        aim9.exec"


def test_another_recipe_is_another_comparison(runs: Runs):
    runs.run(0, OPEN1, 1.0)
    runs.run(1, OPEN1, 2.0, recipe="b")
    with pytest.raises(UserError, match="no job has finished runs of all of"):
        runs.compared(runs.shas[0], runs.shas[1])


def test_the_axes_name_compiler_and_configuration(runs: Runs):
    runs.run(0, OPEN1, 1.0)
    runs.run(1, OPEN1, 2.0)
    (pair,) = comparisons(runs.context, runs.session, runs.shas[:2])
    assert dict(pair.axes) == {
        "compiler": "gcc-12",
        "kconfig": "x86_64-rhel-8.3",
        "tbox_group": "lkp-icl-2sp2",
        "test": "open1",
        "testcase": "will-it-scale",
    }


@pytest.mark.parametrize(("revisions", "says"), [(("nope", "HEAD"), "names no commit"), ((0, 0), "the same commit")])
def test_what_cannot_be_compared(runs: Runs, revisions: tuple[str | int, ...], says: str):
    with pytest.raises(UserError, match=says):
        runs.compared(*(runs.shas[each] if isinstance(each, int) else each for each in revisions))
