"""What only the rebuild itself wrote, a merge's fix-up or the day's own files, is measured and never blamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from sqlalchemy import select

from bisectbot.jobs.assignment import BuildAssignment
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.people.status import BisectionLine
from bisectbot.service.post.letters import model_of
from bisectbot.service.search.candidates import Layout, read
from bisectbot.source.replay import Kind
from bisectbot.store.tables import Bisection, Report, ReportState
from tests.service.conftest import MakeLab
from tests.source.fastimport import FastImport
from tests.support.lab import KPI, TREE, Lab

pytestmark = pytest.mark.timeout(300)
GLUE, LOST, DRIVER, OTHER = "kernel/glue", "drm/old", "drm/driver", "net/core"


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    branches = {"master": {"kind": "rebuilt", "build": "b", "jobs": ["bench"]}}
    lab = make({"trees": {TREE: {"branches": branches}}, "builds": {"b": {"outputs": ["kernel"]}}})
    lab.sigma = 0.5
    return lab


class Days:
    """Two days of a next of two trees.

    On the second, net has taken a file away that drm still edits: only the merge of drm settles that, with a fix-up
    beside it. ``settled``: drm does not edit it, and what the merge holds is the fix-up alone.
    """

    def __init__(self, lab: Lab, *, settled: bool) -> None:
        self.repo = FastImport(lab.upstream.path)
        root = self._commit("root", [], {GLUE: "0\n", LOST: "0\n", DRIVER: "0\n", OTHER: "0\n"})
        net = [self._commit("net: old", [root], {OTHER: "1\n"})]
        drm = [self._commit("drm: old", [root], {DRIVER: "1\n"})]
        self.good = self._next(root, net[-1], drm[-1], {})
        net.append(self._commit("net: tune", [net[-1]], {OTHER: "2\n"}))
        net.append(self._commit("net: take it away", [net[-1]], {LOST: None}))
        drm.append(self._commit("drm: speak", [drm[-1]], {DRIVER: "2\n"}))
        edit = {DRIVER: "3\n"} if settled else {LOST: "1\n"}
        drm.append(self._commit("drm: edit", [drm[-1]], edit))
        self.bad = self._next(root, net[-1], drm[-1], {GLUE: "1\n", DRIVER: "2\n", **edit})
        self.repo.ref("refs/heads/master", self.bad)
        self.repo.ref("refs/tags/next-20260302", self.good)
        self.repo.write()
        self.edit, self.speak = self.repo.sha(drm[-1]), self.repo.sha(drm[-2])

    def _next(self, root: int, net: int, drm: int, fixed: Mapping[str, str | None]) -> int:
        merged = self._commit("Merge net", [root, net], {OTHER: "2\n" if fixed else "1\n"})
        merged = self._commit("Merge drm", [merged, drm], {DRIVER: "1\n", **fixed})
        heads = {"origin": root, "net": net, "drm": drm}
        self.repo.write()
        rows = "".join(f"{name}\t\t{self.repo.sha(number)}\n" for name, number in heads.items())
        return self._commit(
            "Add linux-next specific files", [merged], {"Next/SHA1s": f"Name\t\tSHA1\n----\t\t----\n{rows}"}
        )

    def _commit(self, subject: str, parents: list[int], files: Mapping[str, str | None]) -> int:
        return self.repo.commit(subject, parents, dict(files))


def content(lab: Lab, sha: str) -> dict[str, str]:
    """What the files hold that may matter; "" where there is none."""
    git = lab.context.mirror.git
    there = set(git.run("ls-tree", "-r", "--name-only", sha).splitlines())
    return {name: git.run("show", f"{sha}:{name}") if name in there else "" for name in (GLUE, LOST, DRIVER, OTHER)}


def searched(
    lab: Lab, level: Callable[[dict[str, str]], float | None], *, settled: bool = False
) -> tuple[Days, BisectionLine, Layout]:
    """A bisection of both days by levels as the files say, to its end."""

    def measured(given: BuildAssignment) -> float | None:
        return level(content(lab, given.commit))

    lab.level = measured  # type: ignore[method-assign]
    lab.upstream.push(lab.upstream.commit({"a": "1\n"}, subject="another project"))
    days = Days(lab, settled=settled)
    lab.tick()
    good, bad = days.repo.sha(days.good), days.repo.sha(days.bad)
    submit_bisection(lab.context, "ada", BisectArguments(TREE, "master", good, bad, kpi=KPI))
    lab.work()
    with lab.context.database.read() as session:
        history = session.execute(select(Bisection.history)).scalar_one()
    return days, status.bisection_status(lab.context, "B1").line, read(lab.context.artifacts, history)


def reports(lab: Lab) -> list[Report]:
    with lab.context.database.read() as session:
        return list(session.execute(select(Report)).scalars())


def test_a_commit_in_one_step_with_fix_ups_is_not_blamed_for_them(lab: Lab) -> None:
    """What drm edits applies only as the merge settled it, in one step with the fix-up, which is what costs."""
    days, line, layout = searched(lab, lambda files: 91.0 if files[GLUE] == "1" else 100.0)
    assert (layout.origins[-1].kind, layout.origins[-1].shas) == (Kind.REST, (days.edit,))
    assert (line.verdict, line.culprit) == ("culprit_set", "")
    assert "merges and their fix-ups" in line.reason
    [stored] = reports(lab)
    assert stored.sha == days.edit  # what is there of commits
    assert (stored.state, "cannot be told" in stored.reason) == (ReportState.HELD, True)
    assert any("their fix-ups" in note for note in model_of(stored).notes)


def test_what_lies_before_such_a_step_is_named_as_ever(lab: Lab) -> None:
    days, line, _ = searched(lab, lambda files: 91.0 if files[DRIVER] == "2" else 100.0)
    assert (line.verdict, line.culprit) == ("culprit", days.speak)


def test_an_untestable_commit_before_fix_ups_is_a_suspect_beside_them(lab: Lab) -> None:
    """The last commits that people wrote cannot be built before the merge that mends them."""

    def level(files: dict[str, str]) -> float | None:
        broken = files[DRIVER] == "2" and files[GLUE] == "0"
        return None if broken else 91.0 if files[GLUE] == "1" else 100.0

    days, line, _ = searched(lab, level)
    assert line.verdict == "culprit_set"
    assert "merges and their fix-ups" in line.reason
    [stored] = reports(lab)
    assert stored.sha == days.edit
    assert [suspect.id for suspect in model_of(stored).evidence.suspects] == [days.speak]  # type: ignore[union-attr]
    assert stored.state is ReportState.HELD


def test_where_only_fix_ups_can_be_it_nobody_is_named(lab: Lab) -> None:
    _, line, _ = searched(lab, lambda files: 91.0 if files[GLUE] == "1" else 100.0, settled=True)
    assert (line.verdict, line.culprit) == ("no_single_culprit", "")
    assert "merges and their fix-ups" in line.reason
    assert reports(lab) == []
