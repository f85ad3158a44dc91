"""Series out of text."""

from __future__ import annotations

import pytest
import yaml

from bisectbot.detect.table import Columns, otava_tests, read_series
from bisectbot.errors import UserError
from bisectbot.jobs.kpi import Better


@pytest.mark.parametrize("delimiter", list(",;\t| "))
def test_any_delimiter_with_a_header(delimiter: str):
    rows = [("commit", "ops"), ("a1", "1.5"), ("b2", "2.5")]
    (series,) = read_series("\n".join(delimiter.join(row) for row in rows), "x.csv")
    assert (series.name, series.runs, series.labels) == ("ops", [[1.5], [2.5]], ["a1", "b2"])


def test_numbers_alone_need_no_header():
    (series,) = read_series("1\n2\n3\n", "x")
    assert series.runs == [[1], [2], [3]]
    assert series.labels == ["0", "1", "2"]


def test_no_header_but_commits_and_dates():
    text = "2026-01-01,f00d1,10\n2026-01-02,f00d2,11\n"
    (series,) = read_series(text, "x")
    assert (series.runs, series.labels) == ([[10], [11]], ["f00d1", "f00d2"])


def test_rows_of_one_commit_are_its_runs():
    (series,) = read_series("commit,v\na1,1\na1,2\nb2,3\na1,4\n", "x")
    assert (series.runs, series.labels) == ([[1, 2, 4], [3]], ["a1", "b2"])


def test_without_commits_rows_of_one_time_are_runs_and_time_orders():
    (series,) = read_series("time,v\n2026-01-02,3\n2026-01-01,1\n2026-01-02,4\n", "x")
    assert series.runs == [[1], [3, 4]]


def test_every_number_column_is_a_series_and_empty_cells_are_missing():
    first, second = read_series("commit;a;b;note\nc1;1;;x\nc2;2;20;y\n", "x")
    assert (first.name, first.runs) == ("a", [[1], [2]])
    assert (second.name, second.runs, second.labels) == ("b", [[20]], ["c2"])


def test_columns_may_be_named():
    text = "when,what,one,two\n1,x,5,6\n2,y,7,8\n"
    (series,) = read_series(text, "x", Columns(time="when", commit="what", values=("two",)))
    assert (series.runs, series.labels) == ([[6], [8]], ["x", "y"])


@pytest.mark.parametrize(
    "text",
    [
        '{"commit": "a", "v": [1, 2]}\n{"commit": "b", "v": 3}\n',
        '[{"commit": "a", "v": 1}, {"commit": "a", "v": 2}, {"commit": "b", "v": 3}]',
    ],
)
def test_json_objects(text: str):
    (series,) = read_series(text, "x")
    assert (series.name, series.runs, series.labels) == ("v", [[1, 2], [3]], ["a", "b"])


@pytest.mark.parametrize("text", ["[1, 2]\n[3]\n", "[[1, 2], [3]]", '{"name": "n", "values": [[1, 2], [3]]}'])
def test_json_lists_of_runs(text: str):
    (series,) = read_series(text, "x")
    assert series.runs == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x: empty"),
        ("# nothing\n", "x: only comments"),
        ("commit,v\na,1\nb,nan\n", "x:3, column v: nan is no measurement"),
        ("commit,v\na,1\nb,-inf\n", "x:3, column v: -inf is no measurement"),
        ("commit,v,w\na,1,2\nb,1\n", "x:3: 2 cells, but the table has 3 columns"),
        ('{"v": 1}\n{"v": \n', "x:2: no JSON"),
        ('{"v": 1}\n{"v": {}, "w": "x"}\n{"v": [true]}\n', "x:3, v: true is no number"),
        ("commit,v\na,\nb,\n", "x: no values found"),
    ],
)
def test_bad_input_is_told_with_its_place(text: str, message: str):
    with pytest.raises(UserError) as error:
        read_series(text, "x")
    assert message in str(error.value)


def test_a_wrong_column_is_told_with_those_there_are():
    with pytest.raises(UserError, match="no column 'ops'; there are: commit, v"):
        read_series("commit,v\na,1\n", "x", Columns(values=("ops",)))


OTAVA = """
templates:
  common: {type: csv, time_column: when, attributes: [branch, commit], csv_options: {delimiter: ";"}}
tests:
  fast:
    inherit: [common]
    file: data/%{TEST_NAME}.csv
    metrics:
      latency: {column: lat, scale: 1000, direction: -1}
      rate: {}
  plain: {type: csv, file: p.csv, metrics: [a, b]}
  other: {type: graphite, prefix: x}
"""


def test_an_otava_configuration():
    fast, plain = otava_tests(yaml.safe_load(OTAVA), "otava.yaml")
    assert fast.file == "data/fast.csv"
    assert fast.columns == Columns("when", "commit", ("lat", "rate"), ";")
    assert [(metric.name, metric.scale, metric.better) for metric in fast.metrics] == [
        ("latency", 1000, Better.LESS),
        ("rate", 1, Better.MORE),
    ]
    assert plain.columns == Columns("time", None, ("a", "b"), ",")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no tests"),
        ("tests: {a: {type: json}}", "no test of type csv"),
        ("tests: {a: {type: csv, metrics: [x]}}", "test a has no 'file'"),
        ("tests: {a: {inherit: b}}", "inherits 'b', which is no template"),
    ],
)
def test_a_wrong_otava_configuration_is_told(text: str, message: str):
    with pytest.raises(UserError, match=message):
        otava_tests(yaml.safe_load(text), "otava.yaml")
