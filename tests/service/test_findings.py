"""What the service hands to the report room."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlalchemy import select

from bisectbot.jobs.assignment import BuildAssignment, RunAssignment
from bisectbot.report import from_json
from bisectbot.results.delivery import ArtifactRef, BuildDelivery, RunDelivery
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people.requests import BisectArguments
from bisectbot.store.tables import Report
from tests.support.lab import BRANCH, KPI, TREE, Lab


def test_a_bisection_that_was_asked_for_is_reported_with_evidence_and_table(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 5 + [90.0] * 3)
    lab.upstream.push(shas[-1])
    plain = lab.measured

    def with_traces(given: RunAssignment) -> RunDelivery:
        delivery = plain(given)
        cpus = 48 if delivery.samples[0][1] < 95 else 168
        log = f"[    1.{delivery.run:06}][    T0] smpboot: Allowing {cpus} CPUs\n".encode()
        words = f"mem={cpus}G root=/dev/{delivery.run}".encode()
        kept = {"dmesg": log, "cmdline": words}
        refs = (ArtifactRef(name, lab.context.artifacts.put([text]), len(text)) for name, text in kept.items())
        return replace(delivery, artifacts=tuple(refs))

    plainly = lab.built

    def with_config(given: BuildAssignment) -> BuildDelivery:
        level = lab.upstream.git.run("show", f"{given.commit}:level").partition(".")[0]
        text = f"CONFIG_A=y\nCONFIG_X={level}\n".encode()
        ref = ArtifactRef("config", lab.context.artifacts.put([text]), len(text))
        return replace(plainly(given), artifacts=(ref,))

    lab.measured = with_traces  # type: ignore[method-assign]
    lab.built = with_config  # type: ignore[method-assign]
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, BRANCH, shas[0], shas[-1], kpi=KPI))
    lab.work()
    with lab.context.database.read() as session:
        twin = session.execute(select(Report.twin)).scalar_one()
    report = from_json(json.dumps(twin))
    assert report.commit.id == shas[5]
    assert report.parent is not None
    assert report.evidence is not None
    assert min(len(report.evidence.parent.values), len(report.evidence.culprit.values)) >= 2
    assert report.explanation is not None
    assert report.explanation.compared == ("boot logs", "kernel configs", "kernel command lines")
    difference, configs, words = report.explanation.differences
    assert (configs.of, configs.parent, configs.culprit) == ("kernel configs", ("CONFIG_X=100",), ("CONFIG_X=90",))
    assert (words.of, words.parent, words.culprit) == ("kernel command lines", ("mem=168G",), ("mem=48G",))
    assert difference.of == "boot logs"
    assert [line.partition("smpboot: ")[2] for line in difference.parent] == ["Allowing 168 CPUs"]
    assert [line.partition("smpboot: ")[2] for line in difference.culprit] == ["Allowing 48 CPUs"]
    (table,) = report.tables
    assert [column.text for column in table.columns] == [report.parent.named, report.commit.named]
    [row] = [row for row in table.rows if row.name == KPI]  # also when a verdict needed two runs a side only
    assert row.cells[1].change is not None
    assert -15 < row.cells[1].change < -5
