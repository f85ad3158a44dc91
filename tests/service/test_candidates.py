"""What a bisection chooses from, and what it must measure first."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from bisectbot.jobs.assignment import BuildAssignment, RunAssignment
from bisectbot.results.delivery import BuildDelivery, RunDelivery
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.search.candidates import read
from bisectbot.service.search.hunches import moved_functions
from bisectbot.store.tables import Build, Experiment, Report, Run
from tests.service.test_verify import bisect, line, plain, told
from tests.support.lab import BRANCH, KPI, TREE, Lab


def experiments(lab: Lab) -> list[Experiment]:
    with lab.context.database.read() as session:
        return list(session.execute(select(Experiment).filter_by(check="").order_by(Experiment.number)).scalars())


def graph(lab: Lab) -> tuple[str, str, str]:
    """Good and bad fork from a base; returns the three (base, good, bad) without effects of their own."""
    base = lab.upstream.commit({"level": "100\n"}, subject="base")
    good = lab.upstream.commit({"level": "100\n", "g": "1\n"}, base, subject="good")
    bad = lab.upstream.commit({"level": "100\n", "b": "1\n"}, base, subject="bad")
    return base, good, bad


def push(lab: Lab, good: str, bad: str) -> None:
    lab.upstream.push(good)
    lab.tick()
    lab.upstream.push(bad)


def test_the_merge_base_comes_first_when_good_is_no_ancestor_of_bad(lab: Lab) -> None:
    base, good, fork = graph(lab)
    culprit = lab.upstream.commit({"level": "100\n", "b": "1\n", "effect": "-10\n"}, fork, subject="culprit")
    bad = lab.upstream.commit({"level": "100\n", "b": "2\n", "effect": "-10\n"}, culprit, subject="later")
    push(lab, good, bad)
    row = bisect(lab, good, bad)
    assert experiments(lab)[0].sha == base
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", culprit)
    assert "their merge base was measured first" in row.reason


def test_the_search_turns_round_when_good_has_what_made_the_difference(lab: Lab) -> None:
    _, good, bad = graph(lab)
    gift = lab.upstream.commit({"level": "100\n", "g": "1\n", "effect": "10\n"}, good, subject="gift")
    good = lab.upstream.commit({"level": "100\n", "g": "2\n", "effect": "10\n"}, gift, subject="later")
    push(lab, good, bad)
    row = bisect(lab, good, bad)
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("change_on_good_side", gift)
    assert "turned round" in row.reason
    with lab.context.database.read() as session:
        assert session.execute(select(Report)).scalars().all() == []  # nobody made anything worse


def test_in_a_new_environment_both_ends_are_measured_again(lab: Lab) -> None:
    shas = line(lab, [*plain(10), {"effect": "-10\n"}, *plain(10, 10)])
    honest, changed = lab.measured, {"after": 10**9}

    def updated(given: RunAssignment) -> RunDelivery:
        """From some run on, with another microcode, which costs as much as the culprit."""
        delivery = honest(given)
        if _experiment(lab, given.run) is not None and changed["after"] > 10**8 and len(experiments(lab)) >= 5:
            changed["after"] = given.run
        if given.run < changed["after"]:
            return delivery
        samples = tuple((name, value - 10.0) for name, value in delivery.samples)
        return replace(delivery, environment=(("microcode", "0xd000400"),), samples=samples)

    lab.measured = updated  # type: ignore[method-assign]
    bisect(lab, shas[0], shas[-1])
    again = [one for one in experiments(lab) if one.told.get("required")]
    assert {one.sha for one in again} == {shas[0], shas[-1]}
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", shas[10])


def _experiment(lab: Lab, run: int) -> int | None:
    with lab.context.database.read() as session:
        return session.get_one(Run, run).experiment_id


def test_an_environment_that_never_stays_the_same_ends_the_bisection_with_that_reason(lab: Lab) -> None:
    shas = line(lab, [*plain(4), {"effect": "-10\n"}, *plain(4, 4)])
    honest = lab.measured

    def always_new(given: RunAssignment) -> RunDelivery:
        return replace(honest(given), environment=(("uptime", str(given.run)),))

    lab.measured = always_new  # type: ignore[method-assign]
    row = bisect(lab, shas[0], shas[-1])
    assert "environment changed" in row.reason
    assert status.bisection_status(lab.context, "B1").line.verdict == ""


def test_what_is_not_compiled_comes_last_and_what_moved_in_the_profile_first(lab: Lab) -> None:
    """Commits on docs, which no build compiles, weigh a hundredth; those on the file of a hot function ten times."""
    hot = {"fast.c": "int fast_path(int x)\n{\n\treturn x + 1;\n}\n", "effect": "-10\n"}
    shas = line(
        lab,
        [*plain(3), {"docs": "a\n"}, {"docs": "b\n"}, {"fast.c": "int fast_path(int x)\n{\n}\n"}, hot, *plain(2, 3)],
    )
    plainly, honest = lab.built, lab.measured

    def with_list(given: BuildAssignment) -> BuildDelivery:
        files = lab.context.mirror.git.run("ls-tree", "--name-only", given.commit).splitlines()
        return replace(plainly(given), compiled=tuple(name for name in files if name != "docs"))

    def with_profile(given: RunAssignment) -> RunDelivery:
        delivery = honest(given)
        share = 20.0 if delivery.samples[0][1] < 95 else 5.0
        return replace(delivery, stats=(("perf-profile.self.cycles-pp.fast_path", share),))

    lab.built, lab.measured = with_list, with_profile  # type: ignore[method-assign]
    lab.upstream.push(shas[0])  # both ends have been measured as heads
    lab.work()
    lab.upstream.push(shas[-1])
    lab.work()
    row = bisect(lab, shas[0], shas[-1])
    layout = read(lab.context.artifacts, row.history)
    weights = {layout.history.shas[node]: weight for node, weight in enumerate(layout.weights)}
    assert [weights[sha] for sha in shas[1:7]] == [1.0, 1.0, 0.01, 0.01, 10.0, 10.0]
    assert status.bisection_status(lab.context, "B1").line.culprit == shas[6]
    assert {experiment.sha for experiment in experiments(lab)}.isdisjoint(shas[3:4])


def test_functions_move_by_half_a_percent_or_more() -> None:
    before = {"a": 10.0, "b": 3.0, "gone": 0.7}
    assert moved_functions(before, {"a": 10.4, "b": 3.5}) == {"b", "gone"}
    assert moved_functions(before, {}) == frozenset()


def test_builds_are_found_again_when_all_ids_have_changed(lab: Lab) -> None:
    """The branch is made anew with the same content: nothing is built twice, and what was measured counts."""
    patches = [*plain(6), {"effect": "-10\n"}, *plain(6, 6)]
    first = line(lab, patches)
    bisect(lab, first[0], first[-1])
    built = _builds(lab)
    second = line(lab, patches)  # the same, later
    assert set(first).isdisjoint(second)
    lab.work()
    with lab.context.database.read() as session:
        adopted = [build for build in session.execute(select(Build)).scalars() if "equal content" in build.message]
    assert adopted
    assert _builds(lab) == built


def _builds(lab: Lab) -> int:
    """How many were made, and not taken over."""
    with lab.context.database.read() as session:
        return sum("equal content" not in build.message for build in session.execute(select(Build)).scalars())


def test_a_culprit_that_is_taken_back_later_is_told_with_that_fact(lab: Lab) -> None:
    shas = line(lab, [*plain(5), {"effect": "-10\n"}, *plain(3, 5), {"effect": ""}, *plain(2, 8)])
    bisect(lab, shas[0], shas[8])
    report, stored, _ = told(lab)
    assert report.commit.id == shas[5]
    assert any(shas[9][:12] in note and "takes it back" in note for note in report.notes), report.notes
    assert "takes it back" in " ".join(stored.body.split())


def test_ends_that_share_nothing_end_the_bisection_with_that_reason(lab: Lab) -> None:
    one = lab.upstream.commit({"level": "100\n"}, subject="one")
    other = lab.upstream.commit({"level": "90\n"}, subject="other")
    push(lab, one, other)
    row = bisect(lab, one, other)
    assert "share no history" in row.reason


def test_a_branch_that_is_made_anew_upstream_changes_no_bisection_that_runs(lab: Lab) -> None:
    """Another history is pushed, the former is gone there; we clean up, too. All that it needs is kept."""
    shas = line(lab, [*plain(6), {"effect": "-10\n"}, *plain(6, 6)])
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, BRANCH, shas[0], shas[-1], kpi=KPI))
    while len(experiments(lab)) < 3:
        lab.tick()
        lab.build()
        lab.run()
    line(lab, plain(3, 50))
    for git in (lab.upstream.git, lab.context.mirror.git):
        git.run("reflog", "expire", "--expire=now", "--all")
        git.run("gc", "--prune=now", "--quiet")
        lab.tick()
    assert not lab.upstream.git.has(shas[-1])
    lab.work()
    seen = status.bisection_status(lab.context, "B1")
    assert (seen.line.verdict, seen.line.culprit) == ("culprit", shas[6])
