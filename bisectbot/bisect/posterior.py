"""Which commit made the change: every hypothesis weighed by all that was observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bisectbot.bisect.belief import Belief
from bisectbot.bisect.counted import Counted
from bisectbot.bisect.graph import Candidates
from bisectbot.bisect.measured import Measured, Scale
from bisectbot.bisect.tables import Tables
from bisectbot.bisect.terms import Commit, Session

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

P_NONE: Final = 0.1
P_LOST: Final = 0.15
P_TWO: Final = 0.06
MOST_CLASSES: Final = 40
KEPT_PAIRS: Final = 10
"""Prior that nothing changed; where good has commits that bad lacks, that one of those matters; that two did."""


@dataclass(frozen=True)
class Observed:
    """One boot of `commit` and its runs."""

    commit: Commit
    session: Session


@dataclass(frozen=True)
class Posterior:
    """Hypotheses that no tested commit tells apart form a class; all arrays of classes are (J,).

    Rows of `belief` are the classes, then "nothing changed", then pairs of classes: two changes.
    """

    candidates: Candidates
    labels: Ints
    mass: Floats
    class_mass: Floats
    weight: Floats
    none: float
    keys: tuple[Commit, ...]
    states: Bools
    belief: Belief | None
    pairs: Ints
    pair_weight: Floats

    def of_commits(self) -> Floats:
        """Probability that a commit made the change, or of two that did is the one that is known better."""
        density = self._involved() / self.class_mass
        first, second = self.pairs.T
        share = self.weight.copy()
        np.add.at(share, np.where(density[first] >= density[second], first, second), self.pair_weight)
        return self.mass * (share / self.class_mass)[self.labels]

    def involved(self) -> Floats:
        """Probability that a commit made the change or one of two: sums to more than 1 where two did."""
        return self.mass * (self._involved() / self.class_mass)[self.labels]

    def _involved(self) -> Floats:
        share = self.weight.copy()
        np.add.at(share, self.pairs.ravel(), np.repeat(self.pair_weight, 2))
        return share

    @property
    def two(self) -> float:
        """Probability that there are two culprits."""
        return float(self.pair_weight.sum())

    def rows(self) -> Floats:
        """Probability of each row of the belief."""
        return np.concatenate([self.weight, [self.none], self.pair_weight])

    def sides(self, parts: Floats) -> Floats:
        """From the part of each class that a commit contains (commits, J): how likely each row sees the

        commit with none, one or both of its changes: (commits, 3, rows).
        """
        first, second = parts[:, self.pairs[:, 0]], parts[:, self.pairs[:, 1]]
        nothing = np.zeros((len(parts), 1))
        bad = np.hstack([parts, nothing, first * second])
        middle = np.hstack([np.zeros_like(parts), nothing, first + second - 2 * first * second])
        return np.stack([1 - middle - bad, middle, bad], axis=1)

    def parts(self, commits: Sequence[Commit]) -> Floats:
        """Part of each class under which the commit is at the bad level: (commits, J)."""
        result = np.zeros((len(commits), len(self.weight)))
        for i, commit in enumerate(commits):
            sees = self.candidates.sees(commit)
            result[i] = np.bincount(self.labels, self.mass * sees, len(self.weight)) / self.class_mass
        return result

    def bad(self, commits: Sequence[Commit]) -> Floats:
        """Probability that each commit is not at the good level."""
        return 1 - self.sides(self.parts(commits))[:, 0] @ self.rows()


def prior_mass(
    candidates: Candidates,
    weights: Mapping[int, float] | Sequence[float] | None,
    alike: Sequence[tuple[Commit, Commit]],
) -> Floats:
    """Prior of each hypothesis; sums to 1 - P_NONE. Only a proof (equal images) makes it zero."""
    n, new = len(candidates), len(candidates.new)
    given = np.ones(n)
    if weights is not None:
        get = weights.get if isinstance(weights, Mapping) else lambda c, _: weights[c]
        given = np.array([max(float(get(int(c), 1.0)), 1e-6) for c in candidates.commits])
    for one, other in alike:
        given[candidates.sees(one) != candidates.sees(other)] = 0.0
    lost = P_LOST if 0 < new < n else float(new == 0)
    result = np.zeros(n)
    for part, share in ((slice(0, new), 1 - lost), (slice(new, n), lost)):
        total = given[part].sum()
        if total > 0:
            result[part] = given[part] / total * share
    total = result.sum()
    return result * ((1 - P_NONE) / total) if total > 0 else result


def classes(candidates: Candidates, mass: Floats, keys: Sequence[Commit]) -> tuple[Ints, Bools]:
    """Label of each hypothesis, and per class which keys are at the bad level, (J, keys).

    Two hypotheses share a class when every key sees both or neither; hashing sums of random words keeps
    this linear in the number of keys.
    """
    words = np.random.default_rng(0).integers(1, 2**63, size=len(keys), dtype=np.uint64)
    signature = np.zeros(len(mass), dtype=np.uint64)
    sees = [candidates.sees(key) for key in keys]
    for word, seen in zip(words, sees, strict=True):
        signature += np.where(seen, word, np.uint64(0))
    signature[mass == 0] = 1  # the impossible share a class of their own, of weight zero
    _, first, labels = np.unique(signature, return_index=True, return_inverse=True)
    states = np.array([seen[first] for seen in sees], dtype=np.bool_).reshape(len(keys), len(first)).T
    return labels.astype(np.int64), states


def infer(
    candidates: Candidates,
    mass: Floats,
    observed: Sequence[Observed],
    *,
    effect: float | None = None,
    history: Sequence[Session] = (),
    tables: Tables | None = None,
    pace_s: float = 480.0,
) -> Posterior:
    """Weigh all hypotheses; with nothing observed the prior. `pace_s` is what a boot and a run take."""
    keys = tuple(dict.fromkeys(o.commit for o in observed))
    labels, states = classes(candidates, mass, keys)
    class_mass = np.bincount(labels, mass, len(states))
    safe_mass = np.where(class_mass > 0, class_mass, 1.0)
    no_pairs = np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    if not observed:
        total = mass.sum() + P_NONE
        return Posterior(
            candidates, labels, mass, safe_mass, class_mass / total, P_NONE / total, keys, states, None, *no_pairs
        )
    column = np.array([keys.index(o.commit) for o in observed])
    x = np.vstack([states[:, column], np.zeros((1, len(observed)))]).astype(np.float64)
    sessions = [o.session for o in observed]
    belief: Belief
    if _binary(sessions, history, effect):
        belief = Counted(sessions, x)
    else:
        belief = Measured(
            sessions,
            x,
            [o.commit for o in observed],
            scale=_scale(candidates, observed, effect),
            history=history,
            tables=tables or Tables(),
            claimed=bool(effect),
            pace_s=pace_s,
        )
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.append(class_mass, P_NONE)) + belief.log_evidence
    in_class = class_mass.astype(np.float64)
    pairs, log_pairs = _pairs(belief, states[:, column], log_weight[:-1], in_class)
    weight = np.exp(log_weight - (whole := np.logaddexp(logsumexp(log_weight), logsumexp(log_pairs))))
    pair_weight = np.exp(log_pairs - whole)
    kept = np.argsort(-pair_weight, kind="stable")[:KEPT_PAIRS]
    if len(kept) and pair_weight.sum() > 0.01:
        belief.keep_two(kept)
        pairs, pair_weight = pairs[kept], pair_weight[kept] * (pair_weight.sum() / pair_weight[kept].sum())
    else:
        pairs, pair_weight = no_pairs
        if len(kept):
            belief.keep_two(kept[:0])
        weight = weight / weight.sum()
    return Posterior(
        candidates,
        labels,
        mass,
        safe_mass,
        weight[:-1],
        float(weight[-1]),
        keys,
        states,
        belief,
        pairs,
        pair_weight,
    )


def _pairs(belief: Belief, x: Bools, log_weight: Floats, class_mass: Floats) -> tuple[Ints, Floats]:
    """Pairs of classes of which one lies before the other, (P, 2), and their log weights."""
    some = np.sort(np.argsort(-log_weight, kind="stable")[:MOST_CLASSES])
    some = some[class_mass[some] > 0]
    first, second = (some[i] for i in np.triu_indices(len(some), 1))
    contains = (x[first] & ~x[second]).any(axis=1), (x[second] & ~x[first]).any(axis=1)
    nested = contains[0] ^ contains[1]
    pairs = np.stack([first, second], axis=1)[nested]
    if not len(pairs):
        return pairs, np.zeros(0) - np.inf
    one = x[pairs[:, 0]] ^ x[pairs[:, 1]]
    both = x[pairs[:, 0]] & x[pairs[:, 1]]
    log_evidence = belief.two(one, both)
    if log_evidence is None:
        return pairs[:0], np.zeros(0) - np.inf
    prior = np.log(2 * class_mass[pairs].prod(axis=1) * P_TWO)
    return pairs, prior + log_evidence


def _binary(sessions: Sequence[Session], history: Sequence[Session], effect: float | None) -> bool:
    values = {v for s in (*sessions, *history) for v in s.values}
    return values <= {0.0, 1.0} and (effect is None or abs(effect) <= 1)


def _scale(candidates: Candidates, observed: Sequence[Observed], effect: float | None) -> Scale:
    """The claim, or what both ends show, or the range of what was seen so far."""
    values = np.array([v for o in observed for v in o.session.values])
    shift = float(np.median(observed[0].session.values))
    if effect:
        return Scale(shift, effect)
    ends = []
    for end in (candidates.good[0], candidates.bad):
        there = [v for o in observed if o.commit == end for v in o.session.values]
        ends.append(float(np.median(there)) if there else None)
    good, bad = ends
    spread = float(values.max() - values.min())
    unit = bad - good if good is not None and bad is not None else 0.0
    if abs(unit) < 0.1 * spread:  # as large as all that was seen, and signed: mirrored values are the same case
        unit = math.copysign(spread, unit or float(np.median(values)) - shift)
    return Scale(shift, unit or max(abs(shift), 1.0) * 1e-6)
