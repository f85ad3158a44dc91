"""Where a change is now: the same change in next, in mainline, in stable, under whatever id; and what undid it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bisectbot.source.git import Git
from bisectbot.source.history import Change, CommitInfo, changes, facts, patch_ids, reverse_patch_id
from bisectbot.source.relevance import touched_files

MARGIN = 7 * 86400  # s; clocks of authors and committers differ
_UPSTREAM = re.compile(
    r"^\s*(?:\[ Upstream commit (?P<named>[0-9a-f]{40})\b|commit (?P<stable>[0-9a-f]{40}) upstream\b"
    r"|\(cherry picked from commit (?P<picked>[0-9a-f]{40})\b)",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Sighting:
    """A commit that is the change. ``exact``: the same patch; otherwise adapted: same author, date and subject."""

    sha: str
    exact: bool


def originals(info: CommitInfo) -> tuple[str, ...]:
    """The commits (40 digits) that a backport names as what it was made from, in stable's and cherry-pick's lines."""
    found = (match.group(match.lastgroup or 0).lower() for match in _UPSTREAM.finditer(info.body))
    return tuple(dict.fromkeys(found))


def lineage(git: Git, info: CommitInfo, change: Change) -> tuple[tuple[CommitInfo, Change], ...]:
    """A commit and its change, then those of what it was backported from, as far as the repository holds them."""
    named = facts(git, [sha for sha in originals(info) if git.has(sha)])
    return ((info, change), *zip(named, changes(git, named), strict=True))


def find(git: Git, info: CommitInfo, change: Change, where: str, *, since: str | None = None) -> Sighting | None:
    """Look for a change in the history of ``where``; None when it is not there.

    The commit itself, a commit of the same change, one that names it as its original (stable's and cherry-pick's
    lines), one adapted on the way, or the original that it names itself; in that order. ``since`` leaves out the
    history of a revision that is known not to hold it; without it the author date bounds the search.
    """
    end = git.resolve(where)
    if git.has(info.sha) and git.ok("merge-base", "--is-ancestor", info.sha, end):
        return Sighting(info.sha, exact=True)
    bounds = [f"^{git.resolve(since)}"] if since is not None else [f"--since=@{info.author_date - MARGIN}"]
    greps = [f"--grep={info.subject}", f"--grep={info.sha}"]
    shas = git.run("rev-list", "--no-merges", "--fixed-strings", *greps, end, *bounds).split()
    infos = facts(git, shas)
    for other in changes(git, infos):
        if other.key == change.key:
            return Sighting(other.sha, exact=True)
    for other_info in infos:
        if info.sha in originals(other_info) or _same_name(info, other_info):
            return Sighting(other_info.sha, exact=False)
    named = (sha for sha in originals(info) if git.has(sha) and git.ok("merge-base", "--is-ancestor", sha, end))
    return next((Sighting(sha, exact=False) for sha in named), None)


def undone(git: Git, info: CommitInfo, where: str) -> Sighting | None:
    """The first commit in the history of ``where`` that takes a commit back; None when there is none.

    Exact: its patch is the reverse one. Otherwise it says so in the words of git revert. Only commits that touch the
    same files are looked at. A culprit that its own series undoes is reported with that fact.
    """
    end = git.resolve(where)
    paths = sorted(touched_files(git, [info.sha]).get(info.sha, ()))
    if not paths:
        return None
    later = ["--ancestry-path", "--no-merges", "--topo-order", "--reverse", end, f"^{info.sha}"]
    shas = git.run("--literal-pathspecs", "rev-list", *later, "--", *paths).split()
    wanted, ids = reverse_patch_id(git, info), patch_ids(git, shas)
    for other in facts(git, shas):
        if wanted is not None and ids.get(other.sha) == wanted:
            return Sighting(other.sha, exact=True)
        if f"This reverts commit {info.sha}" in other.body:
            return Sighting(other.sha, exact=False)
    return None


def _same_name(one: CommitInfo, other: CommitInfo) -> bool:
    names = [(info.subject, info.author_mail, info.author_date) for info in (one, other)]
    return names[0] == names[1]
