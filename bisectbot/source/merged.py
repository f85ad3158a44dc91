"""The merge of several commits, made to be measured: what a bisection asks for when one commit alone misleads."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bisectbot.errors import Untestable
from bisectbot.source.git import Git, readable
from bisectbot.source.history import facts
from bisectbot.source.rerere import Rerere, merge
from bisectbot.source.reverted import TRIALS

MERGES = "refs/bisectbot/merge/"
PATCHES = "refs/bisectbot/patch/"


def merged(git: Git, shas: Sequence[str], *, history: tuple[str, str] | None = None) -> str:
    """A commit that contains all the given ones: one of them, or a merge of ours, kept under refs/bisectbot/merge/.

    The same commits in the same order give the same id on every machine. ``history``: an end and a start; its
    merges in between tell how people solved the conflicts that we may meet. Raises Untestable for a conflict that
    nobody solved, UserError for a bad revision.
    """
    shas = [git.resolve(sha) for sha in shas]
    needed = git.run("merge-base", "--independent", *shas).split() if len(shas) > 1 else shas
    heads = [sha for sha in dict.fromkeys(shas) if sha in needed]
    if len(heads) == 1:
        return heads[0]
    date = max(info.commit_date for info in facts(git, heads))
    who = {"NAME": "bisectbot", "EMAIL": "bisectbot@localhost", "DATE": f"@{date} +0000"}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    writer = Git(git.path, env=env)
    tip = heads[0]
    for head in heads[1:]:
        tree = _tree(git, tip, head, history)
        message = f"Merge {head} to be measured\n\nMade by bisectbot; nobody proposed it.\n"
        tip = writer.run("commit-tree", tree, "-p", tip, "-p", head, input=message)
    git.run("update-ref", MERGES + tip, tip)
    return tip


def is_ours(git: Git, sha: str) -> bool:
    """Whether a commit is one that only the robot made (a merge, a trial, a step of a replay line): never mailed."""
    refs = git.run("for-each-ref", "--format=%(refname)", "--contains", sha, "refs/")
    names = refs.split()
    return bool(names) and all(
        name.startswith((MERGES, TRIALS, PATCHES, "refs/bisectbot/replay/", "refs/bisectbot/build/")) for name in names
    )


def _tree(git: Git, ours: str, theirs: str, history: tuple[str, str] | None) -> str:
    result = merge(git, ours, theirs)
    if not result.conflicts:
        return result.tree
    solved = None
    if history is not None:
        with tempfile.TemporaryDirectory(prefix="bisectbot-merge-") as folder:
            solved = Rerere(git, [history], Path(folder)).solve(result)
    if solved is None:
        paths = ", ".join(readable(path) for path in sorted(result.paths)[:3])
        raise Untestable(f"{ours[:12]} and {theirs[:12]} do not merge: conflict in {paths}")
    return solved
