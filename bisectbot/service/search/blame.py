"""Whom a verdict names: the commit that people wrote, what it was measured against, and what is to be said of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from bisectbot.bisect import State, Verdict
from bisectbot.errors import UserError
from bisectbot.service.care import doubts
from bisectbot.service.context import Context
from bisectbot.service.search.candidates import Layout
from bisectbot.service.search.searches import Loaded, load
from bisectbot.service.search.verdicts import ITS_OWN, verification_of
from bisectbot.source.git import Git
from bisectbot.source.history import Change, CommitInfo, changes, facts
from bisectbot.source.replay import Kind
from bisectbot.source.sightings import find, undone
from bisectbot.store.tables import Bisection


@dataclass(frozen=True)
class Blamed:
    """The culprit and its parent, with the runs that were made of each (or of the same image)."""

    commit: CommitInfo
    identity: Change
    parent: CommitInfo
    verdict: Verdict
    suspects: tuple[CommitInfo, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    """Ids of the runs."""
    uncertain: str
    """Why a person should look before it is mailed; "" if nobody need."""
    notes: tuple[str, ...] = ()


def blame(context: Context, session: Session, row: Bisection, verdict: Verdict) -> Blamed:
    """Gather what is known of the verdict's culprit."""
    loaded = load(context, session, row)
    layout, git = loaded.layout, context.mirror.git
    culprit, first = _blamed(verdict)
    below = layout.history.parents[first]
    parent = below[0] if below else layout.history.good
    others = sorted(node for node in verdict.suspects if node != culprit)
    written = list(dict.fromkeys(sha for node in (*others, culprit) for sha in layout.proposed(node)))
    infos = facts(git, written)
    commit = infos[-1]
    return Blamed(
        commit=commit,
        identity=changes(git, [commit])[0],
        parent=_parent(git, layout, commit, parent),
        verdict=verdict,
        suspects=tuple(infos[:-1]),
        before=_runs_of(loaded, parent),
        after=_runs_of(loaded, culprit),
        uncertain=_uncertain(verdict, len(infos), verification_of(row).hold or doubts.of(session, row.id)),
        notes=(*_of_line(row, layout), *_with_its_own(verdict, layout), *_taken_back(context, row, commit)),
    )


def _blamed(verdict: Verdict) -> tuple[int, int]:
    """The candidate that a report names, and the first that may be it.

    Of several that cannot be told apart, the last is named: it is the one that was measured at the new level.
    """
    if verdict.culprit is not None:
        return verdict.culprit, verdict.culprit
    return max(verdict.suspects), min(verdict.suspects)


def _parent(git: Git, layout: Layout, commit: CommitInfo, measured: int) -> CommitInfo:
    """What people know as the commit's parent: of a step of our own line, not what it was measured against."""
    if layout.origins and commit.parents:
        return facts(git, commit.parents[:1])[0]
    return facts(git, [layout.history.shas[measured]])[0]


def _uncertain(verdict: Verdict, named: int, hold: str) -> str:
    if verdict.state is State.CULPRIT_SET and named == 1:
        return verdict.reason
    if verdict.state is State.CULPRIT_SET:
        return f"{named} commits cannot be told apart: {verdict.reason}"
    if named > 1:
        return f"{named} commits cannot be told apart: they apply only together"
    return hold


def _runs_of(loaded: Loaded, node: int) -> tuple[int, ...]:
    """The runs of a commit and of every tested commit whose build is the same."""
    same = {item.signature for item in loaded.experiments if item.node == node and item.signature}
    alike = {item.experiment.id for item in loaded.experiments if item.node == node or item.signature in same}
    earlier = (run.id for place, run in loaded.earlier if place == node)
    return (*earlier, *(run.id for run in loaded.observed if run.experiment_id in alike))


def _of_line(row: Bisection, layout: Layout) -> tuple[str, ...]:
    if not layout.origins:
        return ()
    heads = f"The branch is rebuilt: its heads {row.good[:12]} and {row.bad[:12]} were compared change by change, each"
    return (f"{heads} on top of what both contain; that is where the commit and what is below it were measured.",)


def _with_its_own(verdict: Verdict, layout: Layout) -> tuple[str, ...]:
    """That a set of suspects holds what nobody proposed: the letter's words would lay it all on the commit."""
    kinds = [origin.kind for node in verdict.suspects if (origin := layout.origin(node)) is not None]
    if verdict.state is not State.CULPRIT_SET or Kind.REST not in kinds:
        return ()
    return (f"Not told apart from the commit, and as likely the cause: {ITS_OWN}.",)


def _taken_back(context: Context, row: Bisection, commit: CommitInfo) -> tuple[str, ...]:
    """That a later commit of the same branch takes the culprit back: its author knows."""
    git = context.mirror.git
    where = f"refs/remotes/{row.tree}/{row.branch.name}" if row.branch is not None else row.bad
    try:
        where = git.resolve(where)
    except UserError:  # upstream has the branch no more
        where = row.bad
    [change] = changes(git, [commit])
    seen = find(git, commit, change, where)
    if seen is None:
        return ()
    [info] = facts(git, [seen.sha])
    later = undone(git, info, where)
    if later is None:
        return ()
    [by] = facts(git, [later.sha])
    what = "takes it back" if later.exact else "says that it takes it back"
    return (f"Later on the same branch, {by.short} {what}.",)
