"""A commit taken back on top of another, and put there again: what shows that it alone makes the difference."""

from __future__ import annotations

from bisectbot.errors import Untestable
from bisectbot.source.git import Git, readable
from bisectbot.source.history import CommitInfo, facts
from bisectbot.source.rerere import merge

TRIALS = "refs/bisectbot/verify/"


def reverted(git: Git, culprit: str, on: str) -> str:
    """A commit on top of ``on`` that takes ``culprit`` back, kept under refs/bisectbot/verify/.

    The same two give the same id on every machine. Raises Untestable when that conflicts with what came later, when
    nothing of it is left to take back, or for a merge or a root; UserError for a bad revision.
    """
    info, below = _patch(git, git.resolve(culprit))
    return _put(git, info, base=info.tree, theirs=below, on=git.resolve(on), word="Revert")


def reapplied(git: Git, culprit: str, on: str) -> str:
    """A commit on top of ``on`` that does again what ``culprit`` did. Raises as `reverted` does."""
    info, below = _patch(git, git.resolve(culprit))
    return _put(git, info, base=below, theirs=info.tree, on=git.resolve(on), word="Reapply")


def _patch(git: Git, sha: str) -> tuple[CommitInfo, str]:
    """The commit, and the tree below it."""
    [info] = facts(git, [sha])
    if len(info.parents) != 1:
        raise Untestable(f"a {'merge' if info.is_merge else 'root'} cannot be taken back alone")
    return info, git.run("rev-parse", f"{info.parents[0]}^{{tree}}")


def _put(git: Git, info: CommitInfo, *, base: str, theirs: str, on: str, word: str) -> str:
    """What leads from the tree ``base`` to ``theirs``, done on top of ``on``."""
    [head] = facts(git, [on])
    who = {"NAME": "bisectbot", "EMAIL": "bisectbot@localhost", "DATE": f"@{head.commit_date} +0000"}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    writer = Git(git.path, env=env)
    root = writer.run("commit-tree", base, "-m", "base")
    sides = [writer.run("commit-tree", tree, "-p", root, "-m", "side") for tree in (head.tree, theirs)]
    result = merge(git, *sides)
    if result.conflicts:
        paths = ", ".join(readable(path) for path in sorted(result.paths)[:3])
        raise Untestable(f"it conflicts with what came later, in {paths}")
    if result.tree == head.tree:
        raise Untestable("nothing of it is left there")
    message = f"{word} {info.sha} to be measured\n\nMade by bisectbot; nobody proposed it.\n"
    made = writer.run("commit-tree", result.tree, "-p", on, input=message)
    git.run("update-ref", TRIALS + made, made)
    return made
