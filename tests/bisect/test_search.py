"""Whole searches in small laboratories whose truth is known."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from bisectbot.bisect import Commit, CommitGraph, Costs, Experiment, Search, Session, State
from bisectbot.errors import UserError


class Lab:
    """One host that stays on its kernel, or several without boots; Gaussian runs of deviation 1."""

    def __init__(
        self,
        search: Search,
        graph: CommitGraph,
        culprits: Sequence[int],
        steps: Sequence[float],
        *,
        seed: int = 0,
        hosts: Sequence[str] = ("h",),
        broken: Iterable[int] = (),
        rate: tuple[float, float] | None = None,
    ) -> None:
        self.search, self.graph, self.rng = search, graph, np.random.default_rng(seed)
        self.culprits, self.steps, self.broken, self.rate = culprits, steps, set(broken), rate
        self.hosts, self.boot = list(hosts), 0
        self.booted: dict[str, Commit] = {}
        self.tested: list[Commit] = []

    def level(self, commit: Commit):
        has = self.graph.contains(commit)
        return sum(step for c, step in zip(self.culprits, self.steps, strict=True) if has[c])

    def run(self, limit: int = 150):
        while self.search.verdict().state is State.RUNNING:
            assert len(self.tested) < limit, self.search.verdict()
            plan = self.search.plan(idle=len(self.hosts), booted=self.booted)
            assert plan
            for experiment, host in zip(plan, self.hosts, strict=False):
                self.do(experiment, experiment.host or host)
        return self.search.verdict()

    def do(self, experiment: Experiment, host: str):
        commit = experiment.commit
        self.tested.append(commit)
        if (commit[-1] if isinstance(commit, tuple) else commit) in self.broken:
            self.search.skip(commit, "does not build")
            return
        if experiment.fresh_boot or self.booted.get(host) != commit:
            self.boot += 1
            self.booted[host] = commit
        if self.rate is not None:
            values = (self.rng.random(experiment.runs) < self.rate[int(self.level(commit) > 0)]).astype(float)
        else:
            values = self.level(commit) + self.rng.normal(size=experiment.runs)
        self.search.observe(commit, values, host=host, boot=self.boot)


@pytest.mark.parametrize(("n", "step", "culprit"), [(1, 8, 1), (10, 8, 10), (40, 5, 1), (1000, 6, 618)])
def test_names_the_culprit_of_a_line(n: int, step: float, culprit: int):
    graph = CommitGraph.linear(n + 1)
    verdict = Lab(Search(graph, good=[0], bad=n, effect=step), graph, [culprit], [step]).run()
    assert (verdict.state, verdict.culprit, verdict.suspects) == (State.CULPRIT, culprit, (culprit,))
    assert verdict.probability >= 0.99


def test_needs_no_claim_and_no_named_hosts():
    graph = CommitGraph.linear(13)
    search = Search(graph, good=[0], bad=12, costs=Costs(build_s=0.5, builders=1, boot_s=0, run_s=0.5))
    assert Lab(search, graph, [7], [-5]).run().culprit == 7


def test_says_that_both_ends_are_alike():
    graph = CommitGraph.linear(101)
    verdict = Lab(Search(graph, good=[0], bad=100, effect=4.0), graph, [], []).run()
    assert verdict.state is State.NOT_REPRODUCED
    assert verdict.interval is not None
    assert verdict.culprit is None


def test_a_value_that_repeats_exactly_is_believed_at_once():
    graph = CommitGraph.linear(65)
    search = Search(graph, good=[0], bad=64, effect=-3.0)
    runs = 0
    while search.verdict().state is State.RUNNING:
        (experiment, *_) = search.plan()
        runs += experiment.runs
        search.observe(experiment.commit, [100.0 - 3.0 * graph.contains(experiment.commit)[23]] * experiment.runs)
    assert search.verdict().culprit == 23
    assert runs <= 15


def test_finds_a_culprit_inside_a_merged_branch_and_the_merge_itself():
    # 0 - 1 - 2 is the trunk, 3 - 4 - 5 a branch from 1 that 6 merges
    graph = CommitGraph([[], [0], [1], [1], [3], [4], [2, 5], [6]])
    for culprit in range(1, 8):
        verdict = Lab(Search(graph, good=[0], bad=7, effect=6.0), graph, [culprit], [6]).run()
        assert verdict.culprit == culprit


def test_untestable_commits_leave_a_set():
    graph = CommitGraph.linear(41)
    verdict = Lab(Search(graph, good=[0], bad=40, effect=6.0), graph, [22], [6], broken=range(20, 27)).run()
    assert verdict.state is State.CULPRIT_SET
    assert verdict.suspects == tuple(range(20, 28))


def test_a_change_that_the_new_side_lost():
    # 3 is good and grew from 0 over 1 and 2; bad is 6, over 4 and 5 from 0: it lacks what 2 improved
    graph = CommitGraph([[], [0], [1], [2], [0], [4], [5]])
    verdict = Lab(Search(graph, good=[3], bad=6, effect=-6.0), graph, [2], [6]).run()
    assert (verdict.state, verdict.culprit) == (State.CHANGE_ON_GOOD_SIDE, 2)


def test_branch_commits_are_tested_on_top_of_good():
    # good is 1, an older change on 0; the branch 2, 3, 4 from 0 is merged with it as 5, the bad end
    graph = CommitGraph([[], [0], [0], [2], [3], [1, 4]])
    lab = Lab(Search(graph, good=[1], bad=5, effect=6.0), graph, [1, 3], [-5, 6])
    assert lab.run().culprit == 3
    assert (1, 3) in lab.tested


def test_several_hosts_get_different_work():
    graph = CommitGraph.linear(1001)
    lab = Lab(Search(graph, good=[0], bad=1000, effect=8.0, hosts=4), graph, [333], [8], hosts="abcd")
    assert lab.run().culprit == 333


def test_pending_ends_are_not_planned_twice():
    search = Search(CommitGraph.linear(9), good=[0], bad=8)
    first = search.plan(idle=2)
    assert [e.commit for e in first] == [0, 8]
    assert not {e.commit for e in search.plan(idle=2, pending=first)} & {0, 8}


def test_pass_and_fail():
    graph = CommitGraph.linear(33)
    lab = Lab(Search(graph, good=[0], bad=32), graph, [11], [1], rate=(0.02, 0.6))
    assert lab.run().culprit == 11


def test_gives_up_at_the_budget():
    graph = CommitGraph.linear(1001)
    verdict = Lab(Search(graph, good=[0], bad=1000, effect=0.5, budget_s=7200), graph, [5], [0.5]).run()
    assert verdict.state is State.GAVE_UP
    assert verdict.ranking
    assert "more would settle it" in verdict.reason


def test_knows_the_price_of_a_small_step_before_the_first_run():
    history = [Session("h", i, (v,)) for i, v in enumerate(np.random.default_rng(1).normal(size=30))]
    dear, cheap = (
        Search(CommitGraph.linear(1001), good=[0], bad=1000, effect=step, history=history).estimate().host_s
        for step in (0.5, 5.0)
    )
    assert dear > 22 * 3600  # what information theory asks for at the least
    assert cheap < 5 * 3600


def test_older_runs_tell_about_the_noise():
    graph = CommitGraph.linear(65)
    history = [Session("h", i, (v,)) for i, v in enumerate(np.random.default_rng(1).normal(size=20))]
    assert Lab(Search(graph, good=[0], bad=64, effect=8.0, history=history), graph, [9], [8]).run().culprit == 9


@pytest.mark.parametrize("values", [[float("nan")], [1.0, float("inf")]])
def test_refuses_what_is_no_number(values: list[float]):
    with pytest.raises(UserError, match="not a number"):
        Search(CommitGraph.linear(3), good=[0], bad=2).observe(1, values)


def test_refuses_ends_that_contain_the_same():
    with pytest.raises(UserError, match="same commits"):
        Search(CommitGraph.linear(3), good=[2], bad=2)


def test_a_parent_with_the_image_of_an_older_commit_is_confirmed_by_its_runs():
    graph = CommitGraph.linear(12)
    search = Search(graph, [0], 11, seed=1)
    for commit in (5, 6, 7):
        search.identical(commit, 4)
    verdict = Lab(search, graph, [8], [10.0], seed=1).run(40)
    assert (verdict.state, verdict.culprit) == (State.CULPRIT, 8)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_equal_ends_are_said_to_be_equal_though_nobody_claimed_a_size(sigma: float) -> None:
    rng = np.random.default_rng(5)
    search = Search(CommitGraph.linear(20), good=[0], bad=19, costs=Costs(build_s=1, boot_s=0, run_s=1))
    runs = 0
    while search.verdict().state is State.RUNNING:
        for experiment in search.plan(idle=1):
            values = [float(rng.normal(100.0, sigma)) for _ in range(experiment.runs)]
            search.observe(experiment.commit, values)
            runs += len(values)
        assert runs < 150
    assert search.verdict().state is State.NOT_REPRODUCED
