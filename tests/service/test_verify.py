"""After the search: the culprit taken back, built with forced alignment, tried on another host group."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from sqlalchemy import select

from bisectbot.jobs.assignment import BuildAssignment, RunAssignment
from bisectbot.report import Report as Told
from bisectbot.report import from_json
from bisectbot.results.delivery import BuildDelivery, Outcome
from bisectbot.service.bisections import create
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.search.replay import replay
from bisectbot.store.tables import Bisection, Experiment, HostGroup, Job, Kpi, Outbox, Report
from tests.service.conftest import MakeLab
from tests.support.lab import BRANCH, GROUP, HOST, KPI, TREE, Lab

ALIGN = {"bisection": {"verify": {"alignment": {"ALIGN": "64"}}}}
Files = dict[str, str]


def line(lab: Lab, patches: Sequence[Files]) -> list[str]:
    """A line of commits; each adds (or with "" removes) files."""
    files: Files = {"level": "100\n", "number": "0\n"}
    shas: list[str] = []
    for number, patch in enumerate(patches):
        files = {name: text for name, text in {**files, **patch}.items() if text}
        shas.append(lab.upstream.commit(files, *shas[-1:], subject=f"change {number}"))
    lab.upstream.push(shas[-1])
    return shas


def plain(count: int, start: int = 0) -> list[Files]:
    """Changes without any effect, in files of their own."""
    return [{f"file-{start + number}": "x\n"} for number in range(count)]


def bisect(lab: Lab, good: str, bad: str) -> Bisection:
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, BRANCH, good, bad, kpi=KPI))
    lab.work()
    with lab.context.database.read() as session:
        return session.execute(select(Bisection)).scalar_one()


def told(lab: Lab) -> tuple[Told, Report, Outbox]:
    with lab.context.database.read() as session:
        report = session.execute(select(Report)).scalar_one()
        return (
            from_json(json.dumps(report.twin)),
            report,
            session.execute(select(Outbox).filter_by(kind="report")).scalar_one(),
        )


def checks(lab: Lab) -> list[str]:
    return list(status.bisection_status(lab.context, "B1").checks)


def test_the_culprit_is_taken_back_and_put_there_again(lab: Lab) -> None:
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(6, 6)])
    row = bisect(lab, shas[0], shas[-1])
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", shas[6])
    [check] = [check for check in checks(lab) if "taken back" in check]
    assert check.startswith("confirmed: taken back on top of the bad end: without it ")
    assert "with it there again " in check
    report, stored, _ = told(lab)
    assert report.evidence is not None
    assert check in {f"{one.outcome}: {one.what}" for one in report.evidence.checks}
    assert "taken back on top of the bad end" in " ".join(stored.body.split())
    assert replay(lab.context, "B1").agrees
    with lab.context.database.read() as session:
        names = session.execute(select(Experiment.check).where(Experiment.bisection_id == row.id)).scalars()
        assert set(names) == {"", "revert"}


def test_a_conflict_in_the_revert_is_said_and_changes_nothing_else(lab: Lab) -> None:
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(4, 6), {"effect": "-10.5\n"}, *plain(3, 10)])
    bisect(lab, shas[0], shas[-1])
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[6]
    assert any("conflicts with what came later, in effect" in check for check in checks(lab))
    _, stored, _ = told(lab)
    assert stored.state.value == "released"


def test_a_culprit_whose_revert_changes_nothing_is_not_mailed(lab: Lab) -> None:
    """Something later keeps the level: the commit made the step, and is not what makes it last."""
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(6, 6)])
    honest = lab.built

    def kept_down(given: BuildAssignment) -> BuildDelivery:
        delivery = honest(given)
        subject = lab.context.mirror.git.run("show", "-s", "--format=%s", given.commit)
        if subject.startswith("Revert"):  # what came later has the same effect
            artifact = lab.context.artifacts.put([b"90\n"])
            return BuildDelivery(**{**delivery.__dict__, "artifact": artifact})
        return delivery

    lab.built = kept_down  # type: ignore[method-assign]
    row = bisect(lab, shas[0], shas[-1])
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("no_single_culprit", "")
    assert "no difference" in row.reason
    assert "no culprit is told" in row.reason
    assert row.reported
    with lab.context.database.read() as session:
        assert session.execute(select(Report)).scalars().all() == []
        assert session.execute(select(Outbox)).scalars().all() == []
    assert replay(lab.context, "B1").agrees


@pytest.mark.parametrize(("text", "held"), [("-3 unless ALIGN\n", True), ("-3\n", False)])
def test_an_effect_of_code_layout_is_labelled_and_held(make: MakeLab, text: str, held: bool) -> None:
    lab = make(ALIGN)
    lab.sigma = 0.2
    shas = line(lab, [*plain(6), {"effect": text}, *plain(6, 6)])
    row = bisect(lab, shas[0], shas[-1])
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[6]
    [check] = [check for check in checks(lab) if "forced alignment" in check]
    assert check.startswith("refuted" if held else "confirmed")
    report, stored, mail = told(lab)
    assert stored.state.value == ("held" if held else "released")
    assert ("where the code lies" in stored.reason) is held
    assert ("where the code lies" in row.reason) is held
    assert mail.state.value == ("awaiting_approval" if held else "queued")
    if not held:  # real, and what does it is not known
        assert report.explanation is not None
        assert not report.explanation.differences
        assert "No mechanism" in stored.body


def test_large_effects_are_not_built_again(make: MakeLab) -> None:
    lab = make(ALIGN)
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])
    bisect(lab, shas[0], shas[-1])
    assert not any("alignment" in check for check in checks(lab))


def test_another_host_group_is_asked_if_it_is_idle(make: MakeLab) -> None:
    hosts = {HOST: {"group": GROUP}, "other-1": {"group": "other"}}
    lab = make({"jobs": {"bench": {"groups": [GROUP, "other"]}}, "hosts": hosts})
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])
    lab.work()
    with lab.context.database.write() as session:
        kpi = session.execute(select(Kpi).join(Job).join(HostGroup).where(HostGroup.name == GROUP)).scalar_one()
        create(
            lab.context,
            session,
            tree=TREE,
            branch_id=None,
            ends=(shas[0], shas[-1]),
            kpi=kpi,
            recipe=lab.config.builds["b"].recipe("b"),
            effect=-10.0,
            history=[],
            automatic=True,
        )
    lab.work()
    [check] = [check for check in checks(lab) if "another host group" in check]
    assert check.startswith("confirmed: measured on another host group (other): parent "), check


def test_each_check_is_optional(make: MakeLab) -> None:
    lab = make({"bisection": {"verify": {"revert": False}}})
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])
    bisect(lab, shas[0], shas[-1])
    assert checks(lab) == ["not done: taking the commit back on top of the bad end"]
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[4]


def test_a_restart_in_the_middle_of_a_check_goes_on(lab: Lab) -> None:
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])
    lost = {"left": 2}

    def lose(given: BuildAssignment | RunAssignment) -> tuple[Outcome, str] | None:
        if isinstance(given, RunAssignment) and lost["left"] and _is_trial(lab, given.commit):
            lost["left"] -= 1
            return Outcome.INFRA, "connection lost"
        return None

    lab.faults = lose
    bisect(lab, shas[0], shas[-1])
    assert lost["left"] == 0
    assert any(check.startswith("confirmed: taken back") for check in checks(lab))


def _is_trial(lab: Lab, commit: str) -> bool:
    return lab.context.mirror.git.run("show", "-s", "--format=%s", commit).startswith(("Revert", "Reapply"))


def test_an_untestable_revert_decides_nothing(lab: Lab) -> None:
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])

    def broken(given: BuildAssignment | RunAssignment) -> tuple[Outcome, str] | None:
        if isinstance(given, BuildAssignment) and _is_trial(lab, given.commit):
            return Outcome.UNTESTABLE, "make: error"
        return None

    lab.faults = broken
    bisect(lab, shas[0], shas[-1])
    assert any(check.startswith("undecided: taken back") and "does not build" in check for check in checks(lab))
    assert told(lab)[1].state.value == "released"
