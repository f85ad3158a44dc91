"""Both seed reports by the service's own way: runs are delivered, the bisection ends, the report is stored."""

from __future__ import annotations

import itertools
import json
from collections import deque
from typing import Any

import pytest
from sqlalchemy import select, update

from bisectbot.jobs.assignment import RunAssignment
from bisectbot.report import Report, from_json
from bisectbot.report.model import foreign_identity
from bisectbot.report.render import tables_text
from bisectbot.results.delivery import ArtifactRef, BootRecord, Outcome, RunDelivery
from bisectbot.results.table_reader import read_row
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.plan import Why, want_runs
from bisectbot.service.report import report as report_step
from bisectbot.store.tables import Bisection, BisectionState, Experiment, Purpose, Run, RunState
from bisectbot.store.tables import Report as Stored
from tests.report import made
from tests.report.test_seeds import GOLDEN, SEEDS, Seed, printed
from tests.service.conftest import MakeLab
from tests.support.lab import STEPS, Lab

Runs = dict[str, list[dict[str, float]]]
LEVELS = {"parent": "1", "commit": "2"}

FACTS = {
    "lkp-icl-2sp2": {
        "nr_cpu": 128,
        "nr_socket": 2,
        "brand": "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz",
        "model": "Ice Lake",
        "memory": "256G",
    },
    "lkp-ivb-2ep1": {
        "nr_cpu": 48,
        "nr_socket": 2,
        "brand": "Intel(R) Xeon(R) CPU E5-2697 v2 @ 2.70GHz",
        "model": "Ivy Bridge-EP",
        "memory": "112G",
    },
}


def configuration(seed: Seed) -> dict[str, Any]:
    """The seed's tree, build, job and host group."""
    axes = dict(pair.split("=", 1) for pair in seed.axes.split())
    finding = seed.finding
    return {
        "trees": {"demo": {"branches": {"main": {"build": "b", "jobs": [finding.testcase]}}}},
        "builds": {"b": {"kconfig": axes["kconfig"], "compiler": axes["compiler"]}},
        "jobs": {
            "bench": None,
            finding.testcase: {
                "command": "true",
                "groups": [axes["tbox_group"]],
                "parameters": dict(finding.parameters),
                "kpis": {finding.stat: {"better": "more"}},
            },
        },
        "hosts": {f"{axes['tbox_group']}-1": {"group": axes["tbox_group"]}},
        "facts": {axes["tbox_group"]: {**FACTS[axes["tbox_group"]], "rootfs": axes["rootfs"]}},
    }


def made_runs(seed: Seed) -> Runs:
    """Twenty runs a side, each with all of its stats, that print as the seed's mail does."""
    rows = [row for line in printed(seed) if (row := read_row(line, 2))]
    sides = made.matrices(rows, {seed.finding.stat: seed.runs})
    return {
        level: [
            {name: float(value) for name, values in side.stats.items() if (value := values[run]) is not None}
            for run in range(side.runs)
        ]
        for level, side in zip(LEVELS.values(), sides, strict=True)
    }


class Replayed:
    """Delivers the made runs of each side one after the other, each in a boot of its own."""

    def __init__(self, lab: Lab, seed: Seed) -> None:
        self.lab, self.seed = lab, seed
        self.left = {level: deque(runs) for level, runs in made_runs(seed).items()}

    def __call__(self, given: RunAssignment) -> RunDelivery:
        level = self.lab.upstream.git.run("show", f"{given.commit}:level")
        stats = self.left[level].popleft()
        side = list(LEVELS.values()).index(level)
        logs: tuple[ArtifactRef, ...] = ()
        if log := self.seed.boot_logs[side].encode():
            logs = (ArtifactRef("dmesg", self.lab.context.artifacts.put([log]), len(log)),)
        kpi = self.seed.finding.stat
        return RunDelivery(
            given.run,
            given.token,
            Outcome.DONE,
            samples=((kpi, stats.pop(kpi)),),
            stats=tuple(stats.items()),
            boot=BootRecord(f"boot of {given.run}", 180.0, 0.0),
            artifacts=logs,
            seconds=300.0,
            host_s=480.0,
        )


def reported(make: MakeLab, seed: Seed) -> tuple[Report, Stored]:
    lab = make(configuration(seed))
    parent = lab.upstream.commit({"level": "1\n", "number": "0\n"}, subject=seed.parent.subject)
    commit = lab.upstream.commit({"level": "2\n", "number": "1\n"}, parent, subject=seed.commit.subject)
    lab.upstream.push(commit)
    replayed = Replayed(lab, seed)
    lab.measured = replayed  # type: ignore[method-assign]
    steps = [step for step in STEPS if step is not report_step]
    for step in steps:
        step(lab.context)
    with lab.context.database.write() as session:  # the head's own runs are not what the mails tell of
        session.execute(update(Run).values(state=RunState.CANCELLED))
    submit_bisection(lab.context, "ada", BisectArguments("demo", "main", parent, commit, kpi=seed.finding.stat))
    while not finished(lab):
        for step in steps:
            step(lab.context)
        lab.build()
        lab.run(next(iter(lab.config.hosts)))
    run_the_rest(lab, replayed)
    assert report_step(lab.context) == 1
    with lab.context.database.read() as session:
        stored = session.execute(select(Stored)).scalar_one()
    return from_json(json.dumps(stored.twin)), stored


def finished(lab: Lab) -> bool:
    with lab.context.database.read() as session:
        states = session.execute(select(Bisection.state)).scalars().all()
    return states == [BisectionState.DONE]


def run_the_rest(lab: Lab, replayed: Replayed) -> None:
    """The search stopped as soon as it was sure; the mails were made from twenty runs a side."""
    with lab.context.database.write() as session:
        row = session.execute(select(Bisection)).scalar_one()
        experiments = session.execute(select(Experiment).order_by(Experiment.id)).scalars().all()
        for experiment in {experiment.sha: experiment for experiment in experiments}.values():
            assert experiment.build is not None
            side = lab.upstream.git.run("show", f"{experiment.sha}:level")
            why = Why(Purpose.REQUEST, branch_id=row.branch_id, experiment_id=experiment.id)
            want_runs(session, experiment.build, row.job, len(replayed.left[side]), why)
    while lab.run(next(iter(lab.config.hosts))):
        pass


def block(mail: str, first: str) -> list[str]:
    """The paragraph that begins with ``first``."""
    lines = mail[mail.index(f"\n{first}") + 1 :].splitlines()
    return list(itertools.takewhile(bool, lines))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_the_seed_is_produced_whole(make: MakeLab, seed: Seed) -> None:
    report, stored = reported(make, seed)
    mail = stored.body
    golden = (GOLDEN / f"{seed.name}.mail.txt").read_text(encoding="utf-8")
    # What names the commits and the tree is this repository's; all else is the seed's.
    commits = {report.commit.short: seed.commit.short}
    assert report.parent is not None
    commits[report.parent.short] = seed.parent.short
    for ours, theirs in commits.items():
        mail = mail.replace(ours, theirs)
    area = seed.subject.split("[")[2]
    assert stored.subject.replace(report.commit.short, seed.commit.short) == f"[demo:main] [{area}"
    for first in ("testcase: ", "parameters:", f"Runs of {report.finding.stat}"):
        assert block(mail, first) == block(golden, first)
    assert golden[golden.index("The two sides differ") : golden.index("Details are below")] in mail
    rows = tables_text(report).splitlines()[-len(printed(seed)) :]
    assert sorted(rows) == sorted(printed(seed))  # the mails print them in two orders; this service in one
    assert foreign_identity(f"{stored.subject}\n{stored.body}") == []
