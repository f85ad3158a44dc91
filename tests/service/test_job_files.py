"""A branch whose jobs come from an LKP job file, from the head to the runs and what workers are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from bisectbot.service import commands
from bisectbot.service.people.requests import BisectArguments
from bisectbot.store.tables import Job, Run
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, GROUP, TREE, Lab

JOB_FILE = """\
testcase: will-it-scale
will-it-scale:
  test: [open1, read1]
  mode: [process, thread]
  nr_task: [50%]
"""


def lab_of(make: MakeLab, tmp_path: Path, select: dict[str, str]) -> Lab:
    """A laboratory whose branch has the job ``open1``, from an LKP job file."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "wis.yaml").write_text(JOB_FILE)
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / f"{GROUP}.yaml").write_text("nr_cpu: 128\nmemory: 256G\n")
    job = {
        "file": "jobs/wis.yaml",
        "select": select,
        "groups": [GROUP],
        "runs": 4,
        "kpis": {"will-it-scale.per_process_ops": {"better": "more"}},
    }
    branches = {BRANCH: {"build": "b", "jobs": ["open1"]}}
    return make({"jobs": {"open1": job}, "trees": {TREE: {"branches": branches}}})


def test_a_head_gets_the_runs_of_each_selected_unit_job(make: MakeLab, tmp_path: Path) -> None:
    lab = lab_of(make, tmp_path, {"test": "open1"})
    [tip] = lab.upstream.line([100.0])
    lab.upstream.push(tip)
    lab.tick()
    with lab.context.database.read() as session:
        counted = session.execute(select(Job.name, func.count()).join(Run, Run.job_id == Job.id).group_by(Job.name))
        assert dict(counted.all()) == {"wis-process-50%-open1": 4, "wis-thread-50%-open1": 4}
    lab.build()
    lab.tick()
    given = lab.claim()
    assert given is not None
    assert given.job.testcase == given.job.benchmark == "will-it-scale"
    assert dict(given.job.parameters)["nr_task"] == "50%"
    assert dict(given.job.params)["nr_task"] == "64"


@pytest.mark.parametrize("job", ["", "open1", "will-it-scale", "wis-process-50%-open1"])
def test_a_bisection_may_be_asked_for_by_any_of_the_job_s_names(make: MakeLab, tmp_path: Path, job: str) -> None:
    lab = lab_of(make, tmp_path, {"test": "open1", "mode": "process"})
    shas = lab.upstream.line([100.0, 90.0])
    lab.upstream.push(shas[-1])
    lab.tick()
    asked = BisectArguments(TREE, BRANCH, shas[0], shas[1], job)
    word = commands.submit_bisection(lab.context, "ada", asked)
    lab.tick()
    assert commands.request_answer(lab.context, word) == ("B1", "Q1 is running: B1")
