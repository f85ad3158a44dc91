"""What must never change a verdict, and what must always lead to one."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bisectbot.bisect import CommitGraph, Experiment, Search, State

SEEDS = st.integers(0, 2**32 - 1)
SLOW = settings(max_examples=6, deadline=None)

Boots = list[tuple[int, list[float]]]


def some_boots(seed: int, n: int) -> Boots:
    """Boots of both ends and of commits around a culprit, one to three runs each."""
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, n + 1))
    commits = [0, n, *rng.integers(0, n + 1, size=9).tolist()]
    return [(c, (3.0 * (c >= culprit) + rng.normal(size=int(rng.integers(1, 4)))).tolist()) for c in commits]


def told(boots: Boots, n: int, *, effect: float | None, graph: CommitGraph | None = None, bad: int | None = None):
    search = Search(
        graph or CommitGraph.linear(n + 1), good=[boots[0][0]], bad=n if bad is None else bad, effect=effect
    )
    for i, (commit, values) in enumerate(boots):
        search.observe(commit, values, host="h", boot=i, at=600.0 * i)
    return search


def same(one: Search, other: Search) -> None:
    np.testing.assert_allclose(
        sorted(p for _, p in one.posterior()), sorted(p for _, p in other.posterior()), atol=1e-4
    )
    assert one.verdict().state == other.verdict().state


@SLOW
@given(seed=SEEDS, factor=st.sampled_from([0.001, 0.5, 8.0, 1e6]), shift=st.sampled_from([-1e3, 0.0, 64.0]))
def test_unit_and_zero_of_the_values_do_not_matter(seed: int, factor: float, shift: float) -> None:
    boots = some_boots(seed, 20)
    other = [(c, [factor * (v + shift) for v in values]) for c, values in boots]
    for effect in (3.3, None):
        same(told(boots, 20, effect=effect), told(other, 20, effect=effect and factor * effect))


@SLOW
@given(seed=SEEDS)
@example(seed=1_514_467_865)  # both ends were measured at nearly the same level
def test_direction_does_not_matter(seed: int) -> None:
    boots = some_boots(seed, 20)
    mirrored = [(c, [-v for v in values]) for c, values in boots]
    for effect in (3.3, None):
        same(told(boots, 20, effect=effect), told(mirrored, 20, effect=effect and -effect))


@SLOW
@given(seed=SEEDS)
def test_order_of_the_runs_of_a_boot_does_not_matter(seed: int) -> None:
    boots = some_boots(seed, 20)
    turned = [(c, values[::-1]) for c, values in boots]
    same(told(boots, 20, effect=3.3), told(turned, 20, effect=3.3))


@SLOW
@given(seed=SEEDS)
def test_names_of_commits_do_not_matter(seed: int) -> None:
    n = 20
    new = np.random.default_rng(seed).permutation(n + 1).tolist()
    parents: list[list[int]] = [[] for _ in range(n + 1)]
    for c in range(1, n + 1):
        parents[new[c]] = [new[c - 1]]
    boots = some_boots(seed, n)
    plain = told(boots, n, effect=3.3)
    renamed = told([(new[c], values) for c, values in boots], n, effect=3.3, graph=CommitGraph(parents), bad=new[n])
    same(plain, renamed)
    assert [new[c] for c in plain.verdict().suspects] == list(renamed.verdict().suspects)


@SLOW
@given(seed=SEEDS, n=st.integers(1, 30))
def test_the_same_records_give_the_same_plans(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    first = Search(CommitGraph.linear(n + 1), good=[0], bad=n, effect=4.0, hosts=2, seed=seed)
    records: list[tuple[Experiment, list[float]]] = []
    pending: list[Experiment] = []
    for _ in range(12):
        pending += first.plan(idle=2 - len(pending), pending=pending) if len(pending) < 2 else []
        if not pending:
            break
        again = Search(CommitGraph.linear(n + 1), good=[0], bad=n, effect=4.0, hosts=2, seed=seed)
        for experiment, values in records:
            again.observe(experiment.commit, values)
        assert again.plan(idle=2, pending=pending[:1]) == first.plan(idle=2, pending=pending[:1])
        done = pending.pop(int(rng.integers(len(pending))))
        values = rng.normal(size=done.runs).tolist()
        first.observe(done.commit, values)
        records.append((done, values))


@SLOW
@given(n=st.integers(2, 40), step=st.sampled_from([1.0, -5.0, 1e-3]), seed=SEEDS)
def test_with_only_the_ends_testable_all_that_lies_between_is_a_set(n: int, step: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    search = Search(CommitGraph.linear(n + 1), good=[0], bad=n, effect=step)
    for commit in range(1, n):
        search.skip(commit, "does not build")
    while search.verdict().state is State.RUNNING:
        for experiment in search.plan():
            level = 50 * step + step * (experiment.commit == n)
            search.observe(experiment.commit, (level + 0.1 * step * rng.normal(size=experiment.runs)).tolist())
    assert search.verdict().state is State.CULPRIT_SET
    assert search.verdict().suspects == tuple(range(1, n + 1))
