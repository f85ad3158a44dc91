"""Runs of several commits, side by side, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.jobs.assignment import Job
from bisectbot.jobs.kpi import Kpi
from bisectbot.results.compare import compare
from bisectbot.results.table import row_text
from bisectbot.service import catalog
from bisectbot.service.comparison import comparisons
from bisectbot.service.deliveries import STATS
from bisectbot.source.git import Git
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.database import Database
from bisectbot.store.tables import Artifact, Build, BuildState, Commit, Run, RunState, Sample
from tests.source.fastimport import FastImport

OPEN1 = Job(
    "wis", "will-it-scale", "command", "lkp-icl-2sp2", (Kpi("will-it-scale.ops"),), "true", (("test", "open1"),)
)
EXEC = Job("aim9", "aim9", "command", "lkp-ivb-2ep1", (Kpi("aim9.exec"),), "true")


class Lab:
    """Commits in a repository, and runs of them in a database."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.artifacts = Artifacts(folder / "artifacts")
        history = FastImport(folder / "mirror.git")
        numbers = [history.commit(subject) for subject in ("one", "two", "three")]
        history.ref("refs/heads/master", numbers[-1])
        history.write()
        self.shas = [history.sha(number) for number in numbers]
        self.git = Git(folder / "mirror.git")
        self.commits = [Commit(sha=sha) for sha in self.shas]
        session.add_all(self.commits)
        session.flush()

    def run(self, commit: int, job: Job, value: float, *, recipe: str = "a", state: RunState = RunState.DONE) -> None:
        row = catalog.job_row(self.session, job)
        identity = {"commit_id": self.commits[commit].id, "recipe_digest": recipe * 64}
        build = catalog.find_or_add(self.session, Build, identity, recipe={}, state=BuildState.READY, created=0.0)
        run = Run(
            build_id=build.id, job_id=row.id, group_id=row.group_id, purpose=0, state=state, created=0.0, finished=1.0
        )
        self.session.add(run)
        self.session.flush()
        self.session.add(Sample(run_id=run.id, kpi_id=row.kpis[0].id, value=value))
        packed = zstandard.compress(json.dumps({"vmstat.system.cs": 100 * value}).encode())
        self.session.add(Artifact(run_id=run.id, name=STATS, sha256=self.artifacts.put([packed]), size=len(packed)))
        self.session.flush()

    def compared(self, *revisions: str) -> list[list[str]]:
        sets = comparisons(self.session, self.git, self.artifacts, revisions)
        return [[row_text(row) for row in compare(each).rows] for each in sets]


@pytest.fixture
def lab(database: Database, tmp_path: Path) -> Iterator[Lab]:
    with database.write() as session:
        yield Lab(session, tmp_path)


def test_a_table_per_job_that_ran_on_all(lab: Lab):
    for value in (100.0, 101.0, 99.0):
        lab.run(0, OPEN1, value)
        lab.run(2, OPEN1, value + 50)
        lab.run(0, EXEC, value)
        lab.run(2, EXEC, value - 50)
        lab.run(1, EXEC, value)
    lab.run(2, OPEN1, 5.0, state=RunState.FAILED)
    assert lab.compared(lab.shas[0][:12], lab.shas[2]) == [
        [
            "    100.00           +50.0%     150.00        will-it-scale.ops",
            "     10000           +50.0%      15000        vmstat.system.cs",
        ],
        [
            "    100.00           -50.0%      50.00        aim9.exec",
            "     10000           -50.0%       5000        vmstat.system.cs",
        ],
    ]
    (three,) = lab.compared(*lab.shas)
    assert three[0] == "    100.00            +0.0%     100.00           -50.0%      50.00        aim9.exec"


def test_another_recipe_is_another_comparison(lab: Lab):
    lab.run(0, OPEN1, 1.0)
    lab.run(1, OPEN1, 2.0, recipe="b")
    with pytest.raises(UserError, match="no job has finished runs of all of"):
        lab.compared(lab.shas[0], lab.shas[1])


@pytest.mark.parametrize(("revisions", "says"), [(("nope", "HEAD"), "names no commit"), ((0, 0), "the same commit")])
def test_what_cannot_be_compared(lab: Lab, revisions: tuple[str | int, ...], says: str):
    with pytest.raises(UserError, match=says):
        lab.compared(*(lab.shas[each] if isinstance(each, int) else each for each in revisions))
