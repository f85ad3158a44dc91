"""Which commit made the change: every hypothesis weighed by all that was observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bisectbot.bisect.belief import Belief, Counted, Measured, Scale
from bisectbot.bisect.graph import Candidates
from bisectbot.bisect.terms import Commit, Session

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

P_NONE: Final = 0.06
P_LOST: Final = 0.15
"""Prior that nothing changed, and, where good has commits that bad lacks, that one of those matters."""


@dataclass(frozen=True)
class Observed:
    """One boot of `commit` and its runs."""

    commit: Commit
    session: Session


@dataclass(frozen=True)
class Posterior:
    """Hypotheses that no tested commit tells apart form a class; all arrays of classes are (J,).

    Rows of `belief` are the classes, then "nothing changed".
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

    def of_commits(self) -> Floats:
        """Probability of each hypothesis."""
        return self.mass * (self.weight / self.class_mass)[self.labels]

    def rows(self) -> Floats:
        """Probability of each row of the belief."""
        return np.append(self.weight, self.none)

    def seen(self, commits: Sequence[Commit]) -> Floats:
        """Part of each row that has the commit at the bad level: (commits, rows)."""
        parts = np.zeros((len(commits), len(self.weight) + 1))
        for i, commit in enumerate(commits):
            sees = self.candidates.sees(commit)
            parts[i, :-1] = np.bincount(self.labels, self.mass * sees, len(self.weight)) / self.class_mass
        return parts


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
) -> Posterior:
    """Weigh all hypotheses; with nothing observed the prior."""
    keys = tuple(dict.fromkeys(o.commit for o in observed))
    labels, states = classes(candidates, mass, keys)
    class_mass = np.bincount(labels, mass, len(states))
    safe_mass = np.where(class_mass > 0, class_mass, 1.0)
    if not observed:
        total = mass.sum() + P_NONE
        return Posterior(candidates, labels, mass, safe_mass, class_mass / total, P_NONE / total, keys, states, None)
    column = np.array([keys.index(o.commit) for o in observed])
    x = np.vstack([states[:, column], np.zeros((1, len(observed)))]).astype(np.float64)
    belief = _believe([o.session for o in observed], x, _scale(candidates, observed, effect), history, effect)
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.append(class_mass, P_NONE)) + belief.log_evidence
    weight = np.exp(log_weight - logsumexp(log_weight))
    return Posterior(candidates, labels, mass, safe_mass, weight[:-1], float(weight[-1]), keys, states, belief)


def _believe(
    sessions: Sequence[Session], x: Floats, scale: Scale, history: Sequence[Session], effect: float | None
) -> Belief:
    values = {v for s in (*sessions, *history) for v in s.values}
    if values <= {0.0, 1.0} and (effect is None or abs(effect) <= 1):
        return Counted(sessions, x)
    return Measured(sessions, x, scale, history, claimed=effect is not None)


def _scale(candidates: Candidates, observed: Sequence[Observed], effect: float | None) -> Scale:
    """The claim, or what both ends show, or the range of what was seen so far."""
    values = np.array([v for o in observed for v in o.session.values])
    shift = float(np.median(values))
    if effect:
        return Scale(shift, effect)
    ends = []
    for end in (candidates.good[0], candidates.bad):
        there = [v for o in observed if o.commit == end for v in o.session.values]
        ends.append(float(np.median(there)) if there else None)
    good, bad = ends
    spread = float(values.max() - values.min())
    unit = bad - good if good is not None and bad is not None else 0.0
    if abs(unit) < 0.1 * spread:
        unit = spread
    return Scale(shift, unit or max(abs(shift), 1.0) * 1e-6)
