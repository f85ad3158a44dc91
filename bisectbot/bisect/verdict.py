"""When the search is over, and what it then says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bisectbot.bisect.graph import Candidates
from bisectbot.bisect.posterior import Observed, Posterior
from bisectbot.bisect.terms import Commit, Evidence, Side, State, Verdict

Ints = NDArray[np.int64]

RANKED: Final = 20
SECOND_DOUBT: Final = 0.05
SECOND_SURE: Final = 0.9
CLEAR: Final = 3.0
"""A second change is looked for from the one probability on, and found at the other.

Where the whole step is not clear of the noise (in sigma), telling a part of it would cost more than finding
the culprit did: doubts are tolerated in proportion to that cost.
"""
END_BOOTS: Final = 4


@dataclass(frozen=True)
class Finding:
    """The best explanation: hypotheses that cannot be told apart, and what would confirm them.

    `checks` maps each commit that must be seen again in a fresh boot to the boots still missing.
    """

    group: Ints
    probability: float
    missing: tuple[Commit, ...]


def none_probability(posterior: Posterior) -> float:
    """That nothing changed, or less than would count as the step claimed."""
    rows = posterior.rows()
    if posterior.belief is None:
        return posterior.none
    return float(posterior.none + rows[: len(posterior.weight)] @ posterior.belief.small()[: len(posterior.weight)])


def find(posterior: Posterior, observed: Sequence[Observed], skipped: Collection[Commit]) -> Finding:
    """The likeliest group and the confirmation it lacks."""
    probability = posterior.involved()
    best = int(probability.argmax())
    group = inseparable(posterior.candidates, best, posterior.mass, skipped)
    checks = _around(posterior, group)
    return Finding(group, float(probability[group].sum()), missing_boots(checks, observed, skipped))


def inseparable(
    candidates: Candidates, hypothesis: int, mass: NDArray[np.float64], skipped: Collection[Commit]
) -> Ints:
    """Hypotheses that no testable commit tells from this one."""
    alone = np.array([hypothesis], dtype=np.int64)
    blocked = [i for i in range(len(candidates)) if candidates.key(i) in skipped] if skipped else []
    if not blocked:
        return alone
    new = len(candidates.new)
    side = np.arange(new) if hypothesis < new else np.arange(new, len(candidates))
    open_keys = np.setdiff1d(side, np.array(blocked))
    near = side[mass[side] > 0]
    bits = candidates.reach[np.ix_(open_keys, near >> 3)] & (128 >> (near & 7)).astype(np.uint8)
    own = candidates.reach[open_keys, hypothesis >> 3] & np.uint8(128 >> (hypothesis & 7))
    same = ((bits > 0) == (own > 0)[:, None]).all(axis=0)
    found: Ints = near[same]
    return found


def _around(posterior: Posterior, group: Ints) -> list[Commit]:
    """Parents and culprit; for a group the closest tested commits on either side of it."""
    candidates = posterior.candidates
    if len(group) == 1:
        h = int(group[0])
        return [*candidates.before(h), candidates.key(h)]
    seen = posterior.bad(posterior.keys)
    label = posterior.labels[group[0]]
    bad = [i for i in range(len(posterior.keys)) if posterior.states[label, i]]
    good = [i for i in range(len(posterior.keys)) if not posterior.states[label, i]]
    nearest = [max(good, key=lambda i: seen[i])] if good else []
    nearest += [min(bad, key=lambda i: seen[i])] if bad else []
    return [posterior.keys[i] for i in nearest]


def missing_boots(
    checks: Sequence[Commit], observed: Sequence[Observed], skipped: Collection[Commit]
) -> tuple[Commit, ...]:
    """Which commits still lack a boot made after all of them had been seen once."""
    checks = [c for c in checks if c not in skipped]
    first: dict[Commit, int] = {}
    for i, o in enumerate(observed):
        first.setdefault(o.commit, i)
    unseen = [c for c in checks if c not in first]
    if unseen:
        return tuple(unseen)
    if not checks:
        return ()
    start = max(first[c] for c in checks)
    again = {o.commit for o in observed[start + 1 :]}
    last = {o.commit: i for i, o in enumerate(observed)}
    # the one seen longest ago first: in turns, no single jump of a machine looks like the change
    return tuple(sorted((c for c in checks if c not in again), key=lambda c: last[c]))


def evidence(posterior: Posterior, observed: Sequence[Observed], confidence: float) -> list[Evidence]:
    """Per tested commit, in order of first test."""
    if not posterior.keys:
        return []
    bad = posterior.bad(posterior.keys)
    result = []
    for commit, p in zip(posterior.keys, bad, strict=True):
        boots = [o.session.values for o in observed if o.commit == commit]
        level = float(np.median(np.concatenate([np.asarray(b, dtype=np.float64) for b in boots])))
        side = Side.BAD if p >= confidence else Side.GOOD if p <= 1 - confidence else Side.UNDECIDED
        odds = float(p / (1 - p)) if p < 1 else float("inf")
        result.append(Evidence(commit, sum(map(len, boots)), len(boots), level, side, odds))
    return result


def ranking(posterior: Posterior) -> tuple[tuple[int, float], ...]:
    probability = posterior.of_commits()
    order = np.argsort(-probability, kind="stable")[:RANKED]
    return tuple((int(posterior.candidates.commits[i]), float(probability[i])) for i in order if probability[i] > 0)


def decide(
    posterior: Posterior,
    observed: Sequence[Observed],
    skipped: Collection[Commit],
    *,
    confidence: float,
    spent: float,
    budget: float | None,
    to_come: float,
) -> Verdict:
    """The state of the search, in words too."""
    finding = find(posterior, observed, skipped)
    candidates = posterior.candidates
    measured, interval = _effect(posterior)
    none = none_probability(posterior)
    state, probability, reason = (
        State.RUNNING,
        finding.probability,
        f"about {to_come / 3600:.1f} h of hosts to come",
    )
    if none >= confidence and not end_boots_missing(candidates, observed, skipped):
        state, probability = State.NOT_REPRODUCED, none
        reason = f"both ends are alike: bad minus good lies in {_span(interval)}"
    elif finding.probability >= confidence and not finding.missing and not _second_open(posterior, finding):
        state, reason = _found(candidates, finding)
    elif budget is not None and spent >= budget:
        state = State.GAVE_UP
        reason = (
            f"{spent / 3600:.1f} h of hosts spent of a budget of {budget / 3600:.1f} h; "
            f"about {to_come / 3600:.1f} h more would settle it"
        )
    suspects = tuple(int(c) for c in candidates.commits[finding.group])
    others, share = _others(posterior, finding) if state is not State.RUNNING else ((), 1.0)
    if others:
        reason += f"; it makes {share:.0%} of the change, another commit the rest"
    named = state in {State.CULPRIT, State.CHANGE_ON_GOOD_SIDE} and len(suspects) == 1
    return Verdict(
        state=state,
        culprit=suspects[0] if named else None,
        probability=probability,
        suspects=() if state is State.NOT_REPRODUCED else suspects,
        others=others,
        share=share,
        ranking=ranking(posterior),
        effect=measured,
        reason=reason,
        interval=interval,
        evidence=tuple(evidence(posterior, observed, confidence)),
    )


def _second_open(posterior: Posterior, finding: Finding) -> bool:
    """Is a second culprit likely, and not yet found?"""
    if posterior.belief is None or not len(posterior.pairs):
        return False
    unclear = max(CLEAR / max(posterior.belief.clarity(), 1e-3), 1.0) ** 2
    if posterior.two < SECOND_DOUBT * unclear:
        return False
    rest = posterior.involved()
    rest[finding.group] = 0.0
    return bool(rest.max() < SECOND_SURE * posterior.two)


def _others(posterior: Posterior, finding: Finding) -> tuple[tuple[int, ...], float]:
    """The second culprit, if there is one, and the share of the first named."""
    rest = posterior.involved()
    rest[finding.group] = 0.0
    second = int(rest.argmax())
    if posterior.belief is None or posterior.two < 0.5 or rest[second] < 0.5:
        return (), 1.0
    first_share = posterior.belief.first_share()
    before = bool(posterior.candidates.sees(int(posterior.candidates.commits[second]))[finding.group[0]])
    return (int(posterior.candidates.commits[second]),), first_share if before else 1 - first_share


def _found(candidates: Candidates, finding: Finding) -> tuple[State, str]:
    if finding.group[0] >= len(candidates.new):
        return (
            State.CHANGE_ON_GOOD_SIDE,
            "good has a change that bad lacks; giving it back restores the good level",
        )
    if len(finding.group) > 1:
        return (
            State.CULPRIT_SET,
            f"commits that cannot be tested leave {len(finding.group)} candidates inseparable",
        )
    return (
        State.CULPRIT,
        "the commit is at the bad level and what it was made on at the good one, seen again in turns",
    )


def end_boots_missing(
    candidates: Candidates, observed: Sequence[Observed], skipped: Collection[Commit]
) -> tuple[Commit, ...]:
    """Ends that were booted too few times to say that both are alike."""
    ends = [c for c in (candidates.good[0], candidates.bad) if c not in skipped]
    return tuple(c for c in ends if sum(o.commit == c for o in observed) < END_BOOTS)


def _effect(posterior: Posterior) -> tuple[float | None, tuple[float, float] | None]:
    if posterior.belief is None:
        return None, None
    mean, deviation = posterior.belief.step()
    rows = posterior.weight / max(posterior.weight.sum(), 1e-300)
    at = float(rows @ mean[:-1])
    spread = float(np.sqrt(max(rows @ (deviation[:-1] ** 2 + mean[:-1] ** 2) - at**2, 0.0)))
    return at, (at - 1.96 * spread, at + 1.96 * spread)


def _span(interval: tuple[float, float] | None) -> str:
    return "an unknown interval" if interval is None else f"{interval[0]:.4g} … {interval[1]:.4g}"
