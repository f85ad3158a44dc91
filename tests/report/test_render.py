"""The mail's text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from bisectbot.errors import UserError
from bisectbot.report import Commit, Direction, Explanation, Identity, Report, Side, Tree, render_mail
from bisectbot.report.model import foreign_identity
from bisectbot.report.render import MOST_BYTES, area_of
from bisectbot.report.sections import below_the_kernels_rule, value_text
from tests.report import samples

GOLDEN = Path(__file__).parents[1] / "golden" / "report"


def test_golden():
    mail = render_mail(samples.report())
    assert f"Subject: {mail.subject}\n{mail.body}" == (GOLDEN / "complete.txt").read_text(encoding="utf-8")


def test_subject():
    assert render_mail(samples.report()).subject == (
        "[linus:master] [mm/slub]  93b7d0a2c4:  will-it-scale.per_process_ops 3.2% regression"
    )


def test_subject_of_a_failure_in_an_unnamed_tree():
    finding = replace(samples.finding(None, Direction.FAILURE), stat="xfstests.xfs.348.fail")
    report = replace(samples.report(), finding=finding, tree=Tree())
    assert render_mail(report).subject == "[mm/slub]  93b7d0a2c4:  xfstests.xfs.348.fail"


@pytest.mark.parametrize(
    ("subject", "area"),
    [
        ("x86/acpi: Ignore invalid entries", "x86/acpi"),
        ("mm, slub: count", "mm, slub"),
        ('Revert "futex: Add it"', "futex"),
        ("Merge tag 'v7.1'", ""),
        ("selftests: cgroup: skip", "selftests"),
    ],
)
def test_area(subject: str, area: str):
    assert area_of(subject) == area


def test_nothing_that_we_write_names_another_robot():
    assert foreign_identity(render_mail(samples.report()).body) == []


@pytest.mark.parametrize("address", ["lkp@intel.com", "Kernel Test Robot <bot@example.org>", "bot@01.org"])
def test_another_robots_identity_is_refused(address: str):
    with pytest.raises(UserError, match="another robot"):
        Identity(address)


def test_prose_ends_at_column_78():
    body = render_mail(replace(samples.report(), notes=("word " * 60,))).body
    head = body.partition("Details are below:")[0]
    prose = [line for line in head.splitlines() if not line.startswith(("+--", "| t", "|  ", "| Closes", "[still"))]
    assert max(map(len, prose)) <= 78


@pytest.mark.parametrize("tables", [(2000,), (3, 2000), (900, 800, 700), (4, 4, 4)])
def test_body_is_capped_and_says_what_is_left_out(tables: tuple[int, ...]):
    report = replace(samples.report(), tables=tuple(samples.table(rows) for rows in tables))
    body = render_mail(report).body
    assert len(body.encode()) <= MOST_BYTES
    shown = body.count("proc-vmstat.counter_")
    left = sum(int(line.split()[1]) for line in body.splitlines() if line.startswith("[…"))
    assert shown + left == sum(tables)
    assert shown == sum(tables) or len(body.encode()) > MOST_BYTES - 400


@given(samples.reports)
@settings(max_examples=25, deadline=None)
def test_anything_can_be_worded(report: Report):
    mail = render_mail(report)
    assert len(mail.body.encode()) <= MOST_BYTES
    assert "\n" not in mail.subject
    assert mail.body.endswith("\n")


@pytest.mark.parametrize(
    ("percent", "direction", "broad", "below"),
    [
        (-5.0, Direction.REGRESSION, False, True),
        (-5.1, Direction.REGRESSION, False, False),
        (4.0, Direction.REGRESSION, True, False),
        (0.9, Direction.REGRESSION, True, True),
        (3.0, Direction.IMPROVEMENT, False, False),
        (None, Direction.FAILURE, False, False),
    ],
)
def test_the_kernels_rule(percent: float | None, direction: Direction, broad: bool, below: bool):
    report = replace(samples.report(), finding=samples.finding(percent, direction, broad=broad), also=())
    assert below_the_kernels_rule(report) is below
    assert ("hardly counts as a regression" in render_mail(report).body) is below


def test_a_broad_benchmark_lifts_a_micro_one_over_the_rule():
    broad = samples.finding(-1.5, broad=True)
    assert not below_the_kernels_rule(replace(samples.report(), also=(broad,)))


def test_honest_without_a_mechanism():
    nothing = Explanation(compared=("boot logs", "configs", "command lines"))
    body = render_mail(replace(samples.report(), explanation=nothing)).body
    assert "No mechanism found. Compared were boot logs, configs and command lines." in body


def test_honest_when_there_was_nothing_to_compare():
    body = render_mail(replace(samples.report(), explanation=Explanation())).body
    assert "No mechanism was looked for: neither side left anything to compare.\n" in body


def test_what_there_is_nothing_of_is_left_out():
    bare = replace(samples.finding(), parameters=(), machine=None)
    body = render_mail(replace(samples.report(), finding=bare, tables=(replace(samples.table(0), fails=()),))).body
    assert "parameters:" not in body
    assert "%stddev" not in body
    assert "5f0c1e27a9b34d66" not in body


def test_improvements_ask_for_no_tags():
    body = render_mail(replace(samples.report(), finding=samples.finding(3.2, Direction.IMPROVEMENT))).body
    assert "Reported-by" not in body


def test_how_far_the_runs_are_apart():
    report = samples.report()
    assert report.evidence is not None
    assert "No run of one side lies within the other side's range." in render_mail(report).body
    mixed = replace(report.evidence, culprit=Side("c" * 40, ((53_965.0, 52_000.0), (53_000.0,))))
    body = render_mail(replace(report, evidence=mixed)).body
    assert "  3 of 7 runs lie within the other side's range." in body  # two of the parent's, one of the commit's


def test_inseparable_suspects_are_named():
    report = samples.report()
    assert report.evidence is not None
    suspects = (Commit("ab" * 20, "mm: does not build"),)
    body = render_mail(replace(report, evidence=replace(report.evidence, suspects=suspects))).body
    assert "this commit or one of those below, with a probability of 99.3%" in body
    assert 'abababab ("mm: does not build")'[-24:] in body


def test_hosts_that_boot_nothing_have_no_boots():
    report = samples.report()
    assert report.evidence is not None
    parent, commit = Side("c" * 40, ((5.0, 6.0),), booted=False), Side("d" * 40, (), booted=False)
    body = render_mail(replace(report, evidence=replace(report.evidence, parent=parent, culprit=commit))).body
    rows = [line.split() for line in body.splitlines() if line.startswith(("  parent ", "  commit "))]
    assert rows == [["parent", "c" * 10, "2", "-", "5.50", "9.1%"], ["commit", "d" * 10, "0", "-"]]


def test_runs_in_boots_of_their_own_need_no_bars():
    report = samples.report()
    assert report.evidence is not None
    alone = Side("c" * 40, ((1.0,), (2.5,)))
    body = render_mail(replace(report, evidence=replace(report.evidence, parent=alone, culprit=alone))).body
    assert "  cccccccccc: 1 2.5\n" in body


@pytest.mark.parametrize(
    ("value", "text"),
    [(72665.0, "72665"), (1251.25, "1251"), (0.12345, "0.1235"), (5.706e15, "5.706e+15"), (-3.0, "-3")],
)
def test_values_are_short(value: float, text: str):
    assert value_text(value) == text
