from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.source.git import Git
from bisectbot.source.watch import Every, Policy
from tests.source.fastimport import FastImport

NOON = 43_200.0


def test_which_commits_of_a_push_are_measured(upstream: FastImport) -> None:
    root = upstream.commit("root")
    side = upstream.commit("side", [root])
    merge = upstream.commit("merge", [root, side])
    plain = upstream.commit("plain", [merge])
    other = upstream.commit("merge again", [plain, side])
    end = upstream.commit("end", [other])
    upstream.write()
    git = Git(upstream.path)
    names = {upstream.sha(number): number for number in (root, side, merge, plain, other, end)}

    def heads(every: Every, old: int | None, *, rebuilt: bool = False) -> list[int]:
        start = upstream.sha(old) if old else None
        return [names[sha] for sha in Policy(every).heads(git, start, upstream.sha(end), rebuilt=rebuilt)]

    assert heads(Every.HEAD, root) == [end]
    assert heads(Every.MERGE, root) == [merge, other, end]
    assert heads(Every.COMMIT, root) == [merge, plain, other, end]
    assert heads(Every.COMMIT, None) == [end]
    assert heads(Every.COMMIT, root, rebuilt=True) == [end]
    assert heads(Every.HEAD, end) == []


def test_at_most_so_many_a_day_and_none_in_quiet_hours() -> None:
    policy = Policy(per_day=3, quiet=(22, 6))
    assert policy.room(NOON, []) == 3
    assert policy.room(NOON, [NOON - 86_400, NOON - 86_399, NOON]) == 1
    assert policy.room(NOON, [NOON] * 5) == 0
    assert policy.room(NOON, [NOON + 3600.0] * 3) == 0  # the clock was put back by an hour
    assert policy.room(NOON, [NOON + 40 * 86_400.0] * 3) == 3  # it had been wrong by weeks
    assert [policy.room(3600.0 * hour, []) for hour in (5, 6, 21, 22, 23)] == [0, 3, 3, 0, 0]
    assert Policy(quiet=(9, 17)).room(NOON, []) == 0
    assert Policy(quiet=(9, 12)).room(NOON, []) is None
    assert Policy(quiet=(0, 0)).room(0.0, []) is None


@given(st.integers(0, 60), st.one_of(st.none(), st.integers(0, 70)))
def test_the_newest_waits_least_and_the_rest_is_spread(count: int, room: int | None) -> None:
    waiting = [f"{number:02}" for number in range(count)]
    chosen = Policy().choose(waiting, room)
    assert len(chosen) == (count if room is None else min(count, room))
    assert chosen == sorted(set(chosen))
    if chosen:
        assert chosen[-1] == waiting[-1]
        gaps = [int(b) - int(a) for a, b in zip(["-1", *chosen], chosen, strict=False)]
        assert max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize("kwargs", [{"per_day": 0}, {"quiet": (22, 25)}, {"quiet": (-1, 3)}])
def test_a_policy_that_is_none_is_refused(kwargs: dict[str, object]) -> None:
    with pytest.raises(UserError):
        Policy(**kwargs)  # type: ignore[arg-type]
