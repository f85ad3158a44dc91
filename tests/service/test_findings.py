"""What the service hands to the report room."""

from __future__ import annotations

import json

from sqlalchemy import select

from bisectbot.report import from_json
from bisectbot.service.commands import submit_bisection
from bisectbot.service.requests import BisectArguments
from bisectbot.store.tables import Report
from tests.support.lab import BRANCH, KPI, TREE, Lab


def test_a_bisection_that_was_asked_for_is_reported_with_evidence_and_table(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 5 + [90.0] * 3)
    lab.upstream.push(shas[-1])
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
    (table,) = report.tables
    assert [column.text for column in table.columns] == [report.parent.named, report.commit.named]
    [row] = [row for row in table.rows if row.name == KPI]  # also when a verdict needed two runs a side only
    assert row.cells[1].change is not None
    assert -15 < row.cells[1].change < -5
