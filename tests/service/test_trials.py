"""Comparisons and tests of patches, from the order to the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bisectbot.errors import UserError
from bisectbot.results.trial import Outcome
from bisectbot.service.commands import Asker
from bisectbot.service.people import asks, trials
from bisectbot.service.people.asks import Limits, Wanted
from bisectbot.source.patch import patched
from tests.support.lab import BRANCH, GROUP, KPI, TREE, Lab

ADA = Asker("Ada")
PATCH = b"diff --git a/level b/level\n--- a/level\n+++ b/level\n@@ -1 +1 @@\n-90.0\n+100.0\n"


def pushed(lab: Lab, levels: Sequence[float | None]) -> list[str]:
    shas = lab.upstream.line(levels)
    lab.upstream.push(shas[-1])
    lab.tick()
    return shas


def trial(lab: Lab, *columns: tuple[str, str], runs: int = 9) -> trials.Trial:
    target = asks.target(lab.context, Wanted())
    return trials.Trial(columns, target.kpi, trials.recipe_of(lab.context, target), runs)


def test_a_patch_on_a_culprit_is_measured_beside_it_and_its_parent(lab: Lab) -> None:
    shas = pushed(lab, [100.0, 90.0])
    mended = patched(lab.context.mirror.git, shas[1], PATCH)
    asked = trial(lab, ("parent", shas[0]), ("culprit", shas[1]), ("culprit + patch", mended))
    lab.upstream.git.run("fetch", "-q", str(lab.context.mirror.path), f"{mended}:refs/heads/patch")
    request, new = trials.order_trial(lab.context, ADA, trials.TEST, asked, None)
    assert new
    lab.work()
    seen = trials.trial_status(lab.context, request)
    assert seen is not None
    assert seen.judgement is not None
    assert seen.judgement.outcome is Outcome.FIXED
    assert seen.state == "done"
    assert [len(column.runs) for column in seen.columns] == [9, 9, 9]
    assert [len(column.units) for column in seen.columns] == [3, 3, 3]
    assert trials.tested_by(lab.context, seen) == "Tested-by: bisectbot <bot@example.org>"


def test_two_commits_are_compared(lab: Lab) -> None:
    shas = pushed(lab, [100.0, 90.0])
    request, _ = trials.order_trial(lab.context, ADA, trials.COMPARE, trial(lab, ("a", shas[0]), ("b", shas[1])), None)
    lab.work()
    seen = trials.trial_status(lab.context, request)
    assert seen is not None
    assert seen.judgement is not None
    assert seen.judgement.outcome is Outcome.DIFFERENT
    assert trials.tested_by(lab.context, seen) == ""


def test_what_does_not_build_says_so(lab: Lab) -> None:
    shas = pushed(lab, [100.0, None])
    request, _ = trials.order_trial(lab.context, ADA, trials.COMPARE, trial(lab, ("a", shas[0]), ("b", shas[1])), None)
    lab.work()
    seen = trials.trial_status(lab.context, request)
    assert seen is not None
    assert seen.state == "failed"
    assert f"b ({shas[1][:12]}) gave no result" in seen.failure


def test_the_same_again_is_the_same_request_and_a_person_has_limits(lab: Lab) -> None:
    shas = pushed(lab, [100.0, 100.0, 100.0, 100.0])
    limits = Limits(2, 12.0)

    def order(one: int, other: int, who: Asker = ADA, runs: int = 3) -> tuple[str, bool]:
        columns = (("a", shas[one]), ("b", shas[other]))
        return trials.order_trial(lab.context, who, trials.COMPARE, trial(lab, *columns, runs=runs), limits)

    first, _ = order(0, 1)
    assert order(0, 1) == (first, False)
    assert order(0, 1, Asker("Grace"))[0] != first
    order(1, 2)
    with pytest.raises(UserError, match="you have 2 requests running, and 2 is the limit"):
        order(2, 3)
    with pytest.raises(UserError, match=r"beyond your 12 a day"):
        order(2, 3, Asker("Bob"), runs=150)
    assert order(2, 3, Asker("Grace"))[1]
    with pytest.raises(UserError, match="the same commit"):
        order(2, 2)


def test_what_is_meant_is_found_or_the_choices_are_told(lab: Lab) -> None:
    shas = pushed(lab, [100.0, 90.0])
    for wanted in (Wanted(), Wanted(kpi=KPI, group="icl"), Wanted(suite="demo", group="lkp-*"), Wanted(job="bench")):
        assert asks.target(lab.context, wanted, shas[0]).group == GROUP
    with pytest.raises(UserError, match=f"no such benchmark\\? there are: {KPI} on {GROUP}"):
        asks.target(lab.context, Wanted(kpi="x.y"))
    assert asks.revision(lab.context, BRANCH) == shas[1]
    assert asks.revision(lab.context, f"{BRANCH}~1") == shas[0]
    assert asks.revision(lab.context, shas[0][:10]) == shas[0]


@pytest.mark.parametrize(
    "word",
    ["-x", "--output=/tmp/x", "main@{1}", "a..b", "main:level", "$(id)", "", "a b", "^main", "x" * 300, "main^{/x}"],
)
def test_what_is_no_revision_never_reaches_git(lab: Lab, word: str) -> None:
    pushed(lab, [100.0])
    with pytest.raises(UserError, match=r"is no revision|names no commit"):
        asks.revision(lab.context, word)


def test_a_bisection_is_quoted_before_it_is_ordered(lab: Lab) -> None:
    shas = pushed(lab, [100.0] * 8 + [90.0] * 8)
    lab.work()
    quoted = asks.quote(lab.context, asks.target(lab.context, Wanted()), shas[0], shas[-1])
    assert quoted.commits == 15
    assert 3 <= quoted.steps <= 15
    assert quoted.host_s > 0
    assert quoted.wall_s > 0
    assert quoted.measured == 1  # the head
    request, bisection, new = asks.order_bisection(lab.context, ADA, quoted, None)
    assert (request, bisection, new) == ("Q1", "B1", True)
    assert asks.order_bisection(lab.context, ADA, quoted, None) == ("Q1", "B1", False)
    assert quoted.target.tree == TREE
