"""The run contract, row by row."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.results.delivery import Outcome
from bisectbot.results.output import Plain, check_chosen, read_chosen, read_kpis, read_plain

KPI = ["ops"]


@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        ("12.5\n", 12.5),
        ("warming up\n42\ndone\n", 42.0),
        ("ops: 7", 7.0),
        ("ops = 7e3\n", 7000.0),
        ("ops: 7\nops: 7.0\n", 7.0),
        ("noise: 3\nops: -1\nunit: none\n", -1.0),
        ('{"ops": 9, "other": 1}', 9.0),
        ('\n[{"name": "x"}]\nops: 4\n', 4.0),
    ],
)
def test_a_number_for_the_kpi(stdout: str, value: float):
    reading = read_kpis(stdout, 0, KPI)
    assert (reading.outcome, reading.samples) == (Outcome.DONE, (("ops", value),))


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("", "no number for ops in the output"),
        ("other: 3\n", "no number for ops in the output; it has other"),
        ("a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n", "no number for ops in the output; it has a, b, c, d and 1 more"),
        ("ops: NaN\n", 'no finite number for ops: "ops: NaN"'),
        ("ops: 1e999\n", 'no finite number for ops: "ops: 1e999"'),
        ("-inf\n", 'no finite number for ops: "-inf"'),
        ("ops: fast\n", 'no number for ops: "ops: fast"'),
        ("ops: 12 MB/s\n", 'no number for ops: "ops: 12 MB/s"'),
        ("ops: 1\nops: 2\n", 'two numbers for ops: "ops: 1" and "ops: 2"'),
        ("1\n2\n", 'two numbers for ops: "1" and "2"'),
        ('{"ops": 1, "ops": 2}', 'two numbers for ops: "ops: 1" and "ops: 2"'),
        ('{"ops": NaN}', 'no finite number for ops: "ops: NaN"'),
        ('{"ops": true}', 'no number for ops: "ops: true"'),
        ('{"ops": 1' + "0" * 400 + "}", 'no finite number for ops: "ops: 1' + "0" * 111 + '..."'),
        ('{"ops": "7"}', 'no number for ops: "ops: "7""'),
    ],
)
def test_no_number_fails_the_run_and_quotes_the_line(stdout: str, message: str):
    reading = read_kpis(stdout, 0, KPI)
    assert (reading.outcome, reading.samples, reading.message) == (Outcome.FAILED, (), message)


def test_names_are_completed_and_other_numbers_are_stats():
    stdout = "ops: 10\nlatency: 2\nwis.load: 3\nload: 3\nbroken: NaN\n5\n"
    reading = read_kpis(
        stdout, 0, ["wis.ops", "latency"], full_name=lambda name: name if name.startswith("wis.") else f"wis.{name}"
    )
    assert reading.samples == (("wis.ops", 10.0), ("latency", 2.0))
    assert reading.stats == (("wis.load", 3.0),)


def test_nested_json_is_joined_with_dots():
    stdout = json.dumps({"jobs": [{"read": {"iops": 5}}], "ok": True})
    assert read_kpis(stdout, 0, ["jobs.0.read.iops"]).samples == (("jobs.0.read.iops", 5.0),)


@pytest.mark.parametrize(
    ("status", "outcome", "message"),
    [
        (1, Outcome.FAILED, "exit status 1"),
        (125, Outcome.UNTESTABLE, "the command said skip (exit status 125)"),
        (139, Outcome.FAILED, "exit status 139 (signal 11)"),
    ],
)
def test_with_a_kpi_only_status_0_counts(status: int, outcome: Outcome, message: str):
    reading = read_kpis("ops: 1\n", status, KPI)
    assert (reading.outcome, reading.samples, reading.message) == (outcome, (), message)


@pytest.mark.parametrize(
    ("stdout", "status", "plain"),
    [
        ("3.5\n", 0, Plain(Outcome.DONE, values=(3.5,))),
        ("1\n2\n\n3\n", 0, Plain(Outcome.DONE, values=(1.0, 2.0, 3.0))),
        ("cc -o x x.c\n17\n", 0, Plain(Outcome.DONE, values=(17.0,))),
        ("", 0, Plain(Outcome.DONE, good=True)),
        ("step\n1\nstep\n2\n", 0, Plain(Outcome.DONE, good=True)),
        ("3\n", 1, Plain(Outcome.DONE, good=False)),
        ("", 127, Plain(Outcome.DONE, good=False)),
        ("", 125, Plain(Outcome.UNTESTABLE, message="the command said skip (exit status 125)")),
        ("1\n", 137, Plain(Outcome.FAILED, message="exit status 137 (signal 9): aborted, as git bisect run would")),
        ("nan\n", 0, Plain(Outcome.FAILED, message='no finite number: "nan"')),
    ],
)
def test_without_a_kpi_it_is_git_bisect_run(stdout: str, status: int, plain: Plain):
    assert read_plain(stdout, status) == plain


@given(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["{}\n", "ops: {}", "ops={}", '{{"ops": {}}}'])
)
def test_any_finite_float_comes_back_unchanged(value: float, form: str):
    assert read_kpis(form.format(repr(value)), 0, KPI).samples == (("ops", value),)


@given(st.text(), st.integers(0, 255))
def test_any_output_is_read_without_a_crash(stdout: str, status: int):
    reading = read_kpis(stdout, status, KPI)
    assert (reading.outcome is Outcome.DONE) == bool(reading.samples) == (reading.message == "")
    read_plain(stdout, status)


@pytest.mark.parametrize(
    ("kpi", "stdout", "values"),
    [
        ("ops", "ops: 3", (3.0,)),
        ("/took (\\S+) ms/", "step took 3 ms\nstep took 4.5 ms\n", (3.0, 4.5)),
        ("$.jobs[0].iops", '{"jobs": [{"iops": 7}, {"iops": 8}]}', (7.0,)),
        ("$.jobs[*].iops", '{"jobs": [{"iops": 7}, {"iops": 8}]}', (7.0, 8.0)),
        ("$[1]", "[1, 2]", (2.0,)),
    ],
)
def test_a_kpi_chosen_by_name_pattern_or_path(kpi: str, stdout: str, values: tuple[float, ...]):
    assert read_chosen(stdout, 0, kpi) == Plain(Outcome.DONE, values=values)


@pytest.mark.parametrize(
    ("kpi", "stdout", "message"),
    [
        ("ops", "", "no number for ops in the output"),
        ("/took (.*) ms/", "took ages", "nothing in the output fits /took (.*) ms/"),
        ("/took (.*) ms/", "took nan ms", 'no finite number for /took (.*) ms/: "took nan ms"'),
        ("/took (.*) ms/", "took long ms", 'no finite number for /took (.*) ms/: "took long ms"'),
        ("$.a.b", '{"a": 1}', "nothing in the output fits $.a.b"),
        ("$.a", "no json", "nothing in the output fits $.a"),
        ("$.a", '{"a": "7"}', 'no finite number for $.a: "$.a: "7""'),
    ],
)
def test_a_chosen_kpi_that_is_not_there_fails_the_run(kpi: str, stdout: str, message: str):
    assert read_chosen(stdout, 0, kpi) == Plain(Outcome.FAILED, message=message)
    assert read_chosen(stdout, 125, kpi).outcome is Outcome.UNTESTABLE
    assert read_chosen(stdout, 1, kpi) == Plain(Outcome.FAILED, message="exit status 1")


@pytest.mark.parametrize("kpi", ["/no group/", "/(", "/(x", "/", "//", "$", "$.", "$.a[", "$a"])
def test_a_kpi_that_cannot_be_looked_for_is_refused(kpi: str):
    with pytest.raises(UserError, match=r"^[$/]"):
        check_chosen(kpi)
