"""The run matrix: what is missing stays missing, numbers stay as read, JSON goes there and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.results.matrix import MatrixSet, RunMatrix

CASES = Path(__file__).parents[2].parent / "shared" / "lkp" / "oracle"

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
names = st.text(min_size=1).filter(lambda name: name != "stats_source")


@st.composite
def matrices(draw: st.DrawFn) -> RunMatrix:
    runs = draw(st.integers(1, 5))
    rows = st.lists(numbers | st.none(), min_size=runs, max_size=runs).map(tuple)
    stats = draw(st.dictionaries(names, rows, min_size=1, max_size=6))
    return RunMatrix(runs, stats, tuple(f"/r/{run}/stats.json" for run in range(runs)))


@given(matrices())
def test_json_there_and_back(matrix: RunMatrix):
    assert RunMatrix.from_json(json.loads(json.dumps(matrix.to_json()))) == matrix


@given(st.dictionaries(st.text(), matrices()), st.dictionaries(st.text(), st.text()))
def test_sets_there_and_back(columns: dict[str, RunMatrix], axes: dict[str, str]):
    both = MatrixSet(columns, axes)
    again = MatrixSet.loads(json.dumps(both.to_json()))
    assert again == both
    assert list(again.matrices) == list(columns)


@given(matrices())
def test_zero_filled_changes_only_what_is_missing(matrix: RunMatrix):
    filled = matrix.zero_filled()
    for name, row in matrix.stats.items():
        assert filled.stats[name] == tuple(0 if value is None else value for value in row)
    assert filled.zero_filled() == filled


def test_runs_become_columns_and_gaps_stay_gaps():
    matrix = RunMatrix.from_runs([{"a.x": 1, "a.y": 2.5}, {"a.y": 3, "a.z": 0}], sources=["0", "1"])
    assert matrix.stats == {"a.x": (1, None), "a.y": (2.5, 3), "a.z": (None, 0)}
    assert matrix.zero_filled().stats["a.x"] == (1, 0)


def test_an_absent_tail_is_missing_and_integers_stay_integers():
    data = {"a.x": [1, 2], "a.y": [1.0], "stats_source": ["0/stats.json", "1/stats.json", "2/stats.json"]}
    matrix = RunMatrix.from_json(data)
    assert matrix.runs == 3
    assert matrix.stats == {"a.x": (1, 2, None), "a.y": (1.0, None, None)}
    assert type(matrix.stats["a.x"][0]) is int
    assert type(matrix.stats["a.y"][0]) is float


def test_incomplete_runs_are_known_and_can_be_left_out():
    matrix = RunMatrix(3, {"last_state.is_incomplete_run": (0, 1, None), "a.x": (1, 2, 3)}, ("0", "1", "2"))
    assert matrix.incomplete == (1,)
    complete = matrix.select([run for run in range(matrix.runs) if run not in matrix.incomplete])
    assert complete == RunMatrix(2, {"last_state.is_incomplete_run": (0, None), "a.x": (1, 3)}, ("0", "2"))


def test_text_rows_are_left_out():
    assert RunMatrix.from_json({"a.x": [1], "a.note": ["fine"]}).stats == {"a.x": (1,)}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([1], "m: expected an object of stat: [values], found list"),
        ({"a": 3}, "m: a: expected a list with one value per run, found 3"),
        ({"a": [1, True]}, "m: a: expected a number or null, found True"),
        ({"a": [float("nan")]}, "m: a: expected a number or null, found nan"),
        ({"a": ["x", 1]}, "m: a: expected a number or null, found 'x'"),
        ({"a": [1, 2], "stats_source": ["0"]}, "m: a: 2 values, but stats_source lists 1 runs"),
    ],
)
def test_what_is_no_matrix_is_said_in_one_line(data: object, words: str):
    with pytest.raises(UserError) as error:
        RunMatrix.from_json(data, "m")
    assert str(error.value) == words


def test_what_is_no_json_is_said_with_its_place():
    with pytest.raises(UserError, match=r"^case\.json: not JSON: .*line 1 column 15"):
        MatrixSet.loads('{"matrices": {,}', "case.json")


def test_rows_of_the_wrong_width_are_a_bug():
    with pytest.raises(ValueError, match="a: 1 values for 2 runs"):
        RunMatrix(2, {"a": (1,)})


def test_lkp_cases_are_read_without_loss():
    for path in sorted(CASES.glob("case*.json")):
        data = json.loads(path.read_text())
        case = MatrixSet.from_json(data)
        assert list(case.matrices) == list(data["matrices"])
        assert case.to_json() == data
