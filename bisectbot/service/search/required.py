"""What must be measured before a search may go on as it likes: the merge base, and ends in a new environment."""

from __future__ import annotations

from bisectbot.bisect import Experiment as Planned
from bisectbot.bisect.terms import Commit
from bisectbot.service.search.searches import Loaded
from bisectbot.store.tables import ExperimentState

RUNS = 2
MOST_EPOCHS = 6
"""Hosts in so many new environments during one bisection: what is called an environment there is none."""


def required(loaded: Loaded) -> list[Planned]:
    """The experiments that come before any that the search would choose; none once they are made or on their way."""
    return [*_merge_base(loaded), *_ends_again(loaded)]


def unsteady(loaded: Loaded) -> str:
    """Why the bisection cannot go on because environments never stay the same; "" if it can."""
    new = _new_epochs(loaded)
    if len(new) < MOST_EPOCHS:
        return ""
    return f"the hosts' environment changed {len(new)} times during the bisection; runs of two are never pooled"


def _merge_base(loaded: Loaded) -> list[Planned]:
    """Of a good end that is no ancestor of bad: what both have tells at once on whose side the change is."""
    history = loaded.history
    if history.straight or len(history.bases) != 1:
        return []
    base = history.bases[0]
    return [] if any(item.node == base for item in loaded.experiments) else [Planned(base, RUNS)]


def _ends_again(loaded: Loaded) -> list[Planned]:
    """What was measured in another environment cannot be compared with what comes: both ends are measured again."""
    wanted: list[Planned] = []
    for key in _new_epochs(loaded):
        host = loaded.keys.host(key)
        if loaded.keys.now[host] != key:
            continue  # it has changed again since
        ends = (loaded.history.good, loaded.history.bad)
        missing = [end for end in ends if not _measured(loaded, end, key) and not _lost(loaded, end)]
        wanted += [Planned(end, RUNS, host=host, fresh_boot=True) for end in missing]
    return wanted


def _new_epochs(loaded: Loaded) -> list[str]:
    return [key for key in loaded.keys.keys if key != loaded.keys.host(key)]


def _measured(loaded: Loaded, end: Commit, key: str) -> bool:
    """Whether the end has runs under this key, or some are on their way to its host."""
    places = {item.experiment.id: item for item in loaded.experiments if item.node == end}
    done = any(run.experiment_id in places and loaded.keys.key(run) == key for run in loaded.observed)
    told = (item.experiment.told.get("host") for item in places.values() if item.state is ExperimentState.PENDING)
    return done or loaded.keys.host(key) in told


def _lost(loaded: Loaded, end: Commit) -> bool:
    """Whether it cannot be measured (any more); the search knows, and goes on without it."""
    return any(item.node == end and item.state is ExperimentState.SKIPPED for item in loaded.experiments)
