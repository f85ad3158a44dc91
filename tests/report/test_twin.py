"""The machine-readable twin."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from bisectbot.errors import UserError
from bisectbot.report import Direction, Report, from_json, to_json
from bisectbot.results.table import Cell, Column, Row, Table
from tests.report import samples


@given(samples.reports)
@settings(max_examples=25, deadline=None)
def test_round_trip(report: Report):
    assert from_json(to_json(report)) == report


def test_json_is_strict():
    row = Row("a.b", (Cell(0.0), Cell(5.0, None, float("inf"))))
    report = replace(samples.report(), tables=(Table((Column("a"), Column("b")), rows=(row,)),))
    assert "Infinity" not in to_json(report)
    assert from_json(to_json(report)).tables[0].rows[0].cells[1] == Cell(5.0)


def test_later_fields_are_ignored():
    data = json.loads(to_json(samples.report()))
    data["colour"] = "green"
    data["finding"]["smell"] = 3
    assert from_json(json.dumps(data)) == samples.report()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "mail.json: not JSON"),
        ("[]", 'expected a report with "schema": "bisectbot.report/1"'),
        ('{"schema": "bisectbot.report/9"}', "found 'bisectbot.report/9'"),
        ('{"schema": "bisectbot.report/1"}', "mail.json: commit: Field required"),
        (to_json(samples.report()).replace('"regression"', '"doom"'), "mail.json: finding.direction:"),
    ],
)
def test_bad_input_gets_one_line(text: str, says: str):
    with pytest.raises(UserError) as error:
        from_json(text, "mail.json")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_unsigned_subjects_keep_the_sign_in_the_twin():
    assert json.loads(to_json(samples.report()))["finding"]["percent"] == -3.2
    assert samples.finding().direction is Direction.REGRESSION
