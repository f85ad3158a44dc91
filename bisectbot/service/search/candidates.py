"""What a bisection chooses from: its candidates in order, what people proposed of each, how likely each is beforehand.

Laid out once, when a bisection begins, and kept: it stays the same whatever becomes of the branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.config import BranchKind
from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service.context import Context
from bisectbot.service.search.hunches import Hunches, hunches, weigh
from bisectbot.source.content import contents
from bisectbot.source.git import Git
from bisectbot.source.history import Change, History, commits, facts
from bisectbot.source.replay import Kind, Replay, replay
from bisectbot.store.artifacts import Artifacts
from bisectbot.store.tables import Bisection, Build, BuildState, Commit

AT_ONCE = 500
"""So many values in one question to the database."""


@dataclass(frozen=True)
class Origin:
    """What one step of a replay line is made from: the commits that people wrote (40 digits), and their changes' keys.

    Of an amended change the new version is the last.
    """

    kind: Kind
    tree: str
    shas: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The candidates. ``origins`` tells of each commit after the first what it stands for; empty: it is people's own.

    ``weights`` are the prior's, for each commit (empty: all alike); ``images`` the signatures of what had been built
    before, by place.
    """

    history: History
    origins: tuple[Origin, ...] = ()
    weights: tuple[float, ...] = ()
    images: tuple[tuple[int, str], ...] = ()

    def origin(self, node: int) -> Origin | None:
        """What a step of a replay line is made from; None for a commit that people wrote."""
        return self.origins[node - 1] if self.origins and node > 0 else None

    def proposed(self, node: int) -> tuple[str, ...]:
        """The commits that people wrote behind a candidate, the one to name last; empty: only the rebuild's own."""
        origin = self.origin(node)
        if origin is None:
            return (self.history.shas[node],)
        return origin.shas[-1:] if origin.kind is Kind.AMEND else origin.shas

    def known_as(self, node: int) -> str:
        """The id to show: of what people wrote, if there is any."""
        return next(reversed(self.proposed(node)), self.history.shas[node])


def save(artifacts: Artifacts, layout: Layout) -> str:
    """Keep the candidates; returns the artifact's name."""
    return artifacts.put([zstandard.compress(wire.encode(layout))])


def read(artifacts: Artifacts, sha256: str) -> Layout:
    """What `save` kept."""
    return wire.decode(Layout, zstandard.decompress(artifacts.read(sha256)))


def lay_out(context: Context, bisection: Bisection) -> Layout:
    """List the candidates of a bisection (a detached row). Raises UserError when there are none, as `commits` does.

    Between two heads of a rebuilt branch they are the steps of the replay line: what is really new, each on top of
    what both heads contain.
    """
    git = context.mirror.git
    line = _line(context, bisection)
    layout = _of_line(line) if line else Layout(commits(git, bisection.good, bisection.bad))
    infos = facts(git, layout.history.shas)
    told = contents(git, infos)
    recipe = wire.from_plain(BuildRecipe, bisection.recipe).digest()
    with context.database.read() as session:
        images = _images(session, recipe, [told[info.sha] for info in infos])
        hints = hunches(context, session, bisection, recipe)
    return Layout(layout.history, layout.origins, _weights(git, layout, hints), images)


def _line(context: Context, bisection: Bisection) -> Replay | None:
    """The replay line, if the branch is rebuilt and bad does not simply follow good."""
    git = context.mirror.git
    if not _rebuilt(context, bisection) or git.ok("merge-base", "--is-ancestor", bisection.good, bisection.bad):
        return None
    line = replay(git, bisection.good, bisection.bad)
    if not line.steps:
        raise UserError(f"good {bisection.good[:12]} and bad {bisection.bad[:12]} hold the same changes and files")
    return line


def _rebuilt(context: Context, bisection: Bisection) -> bool:
    tree = context.config.trees.get(bisection.tree)
    branch = tree.branches.get(bisection.branch.name) if tree and bisection.branch else None
    return branch is not None and branch.kind is BranchKind.REBUILT


def _of_line(line: Replay) -> Layout:
    count = len(line.shas)
    history = History(
        shas=line.shas,
        parents=((), *((number - 1,) for number in range(1, count))),
        boundary=1,
        good=0,
        bad=count - 1,
        bases=(0,),
    )
    return Layout(history, tuple(_origin(step.kind, step.tree, step.changes) for step in line.steps))


def _origin(kind: Kind, tree: str, changes: Sequence[Change]) -> Origin:
    return Origin(kind, tree, tuple(change.sha for change in changes), tuple(change.key for change in changes))


def _images(session: Session, recipe: str, told: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """The signatures of what was built from the same contents before, under whatever id."""
    found: dict[str, str] = {}
    for start in range(0, len(told), AT_ONCE):
        query = (
            select(Commit.content, Build.signature)
            .join(Build, Build.commit_id == Commit.id)
            .where(
                Commit.content.in_(told[start : start + AT_ONCE]),
                Build.recipe_digest == recipe,
                Build.state == BuildState.READY,
                Build.signature != "",
            )
            .order_by(Build.id)
        )
        found.update(session.execute(query).all())
    return tuple((node, found[content]) for node, content in enumerate(told) if content in found)


def _weights(git: Git, layout: Layout, hints: Hunches) -> tuple[float, ...]:
    """A step of a line weighs as the likeliest of its commits."""
    if not hints:
        return ()
    nodes = range(len(layout.history.shas))
    behind = [layout.proposed(node) for node in nodes]
    names = sorted({sha for shas in behind for sha in shas})
    known = dict(zip(names, weigh(git, names, hints), strict=True))
    return tuple(max((known[sha] for sha in shas), default=1.0) for shas in behind)
