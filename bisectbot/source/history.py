"""The commits between two ends as arrays, and the facts of commits: each one git command, whatever the number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bisectbot.errors import UserError
from bisectbot.source.git import Git, encode, readable


@dataclass(frozen=True)
class History:
    """What lies between ``good`` and ``bad``, ready for `bisectbot.bisect.CommitGraph` (``parents``).

    First come the ``boundary`` commits, which both ends contain, then every commit that only one end contains;
    parents always before their children. ``parents[i]`` are indices; of a boundary commit only so much is kept
    as tells that it is an ancestor of the merge base. ``good``, ``bad`` and ``bases`` are indices too.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    boundary: int
    good: int
    bad: int
    bases: tuple[int, ...]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {sha: number for number, sha in enumerate(self.shas)}

    def index(self, sha: str) -> int:
        """The place of a commit. Raises KeyError when it is not between the ends."""
        return self._index[sha]

    def __contains__(self, sha: str) -> bool:
        return sha in self._index

    @property
    def straight(self) -> bool:
        """Whether good is an ancestor of bad, so that a culprit can only be on bad's side."""
        return self.bases == (self.good,)

    def candidates(self) -> list[int]:
        """The commits that bad contains and good does not, in order."""
        reached = {self.bad}
        for number in range(len(self.shas) - 1, self.boundary - 1, -1):  # children before parents
            if number in reached:
                reached.update(self.parents[number])
        return [number for number in sorted(reached) if number >= self.boundary]


def commits(git: Git, good: str, bad: str) -> History:
    """The history between two commits (40 hex digits, or anything `Git.resolve` takes).

    Raises UserError when the ends are the same, share no history, lie the wrong way round, or when the
    repository is a shallow clone that ends in between; InfraError as git does.
    """
    good, bad = git.resolve(good), git.resolve(bad)
    if good == bad:
        raise UserError(f"good and bad are the same commit {good[:12]}; there is nothing between them")
    bases = git.run("merge-base", "--all", good, bad).split() if _related(git, good, bad) else []
    if not bases:
        raise UserError(f"good {good[:12]} and bad {bad[:12]} share no history; give two commits of one project")
    if bad in bases:
        raise UserError(f"bad {bad[:12]} is an ancestor of good {good[:12]}; give the older commit first")
    out = git.run_bytes("rev-list", "--topo-order", "--parents", "--boundary", good, bad, "--not", *bases)
    _refuse_shallow(git, out)
    return _arrays(out.decode("ascii"), git, good, bad, bases)


def _related(git: Git, good: str, bad: str) -> bool:
    return git.ok("merge-base", good, bad)


def _arrays(listing: str, git: Git, good: str, bad: str, bases: list[str]) -> History:
    inner: list[list[str]] = []
    outer: list[str] = []
    for line in listing.splitlines():
        if line.startswith("-"):
            outer.append(line[1:41])
        else:
            inner.append(line.split())
    inner.reverse()
    known = set(outer) | {words[0] for words in inner}
    older = [sha for sha in outer if sha not in bases]
    below = {base: _reached(git, base, older, bases) for base in bases}
    order = older + bases + [words[0] for words in inner]
    index = {sha: number for number, sha in enumerate(order)}
    parents = [()] * len(older) + [tuple(index[sha] for sha in below[base]) for base in bases]
    parents += [tuple(index[sha] for sha in words[1:] if sha in known) for words in inner]
    return History(
        shas=tuple(order),
        parents=tuple(parents),
        boundary=len(older) + len(bases),
        good=index[good],
        bad=index[bad],
        bases=tuple(index[base] for base in bases),
    )


def _reached(git: Git, base: str, older: list[str], bases: list[str]) -> list[str]:
    """Those of ``older`` that are ancestors of ``base``; each is one of at least one base."""
    if len(bases) == 1 or not older:
        return older
    foreign = set(git.run("rev-list", "--stdin", input="\n".join([*older, f"^{base}"])).split())
    return [sha for sha in older if sha not in foreign]


def _refuse_shallow(git: Git, listing: bytes) -> None:
    """In a shallow clone only a plain line from good to bad is known to be all there is."""
    if git.run("rev-parse", "--is-shallow-repository") != "true":
        return
    inner = [line.split() for line in listing.splitlines() if not line.startswith(b"-")]
    outer = [line for line in listing.splitlines() if line.startswith(b"-")]
    if len(outer) != 1 or any(len(words) != 2 for words in inner):
        raise UserError(f"{git.path} is a shallow clone that does not hold good..bad; run: git fetch --unshallow")


def first_parents(git: Git, old: str | None, new: str) -> list[str]:
    """The heads that a branch went through from ``old`` (excluded; None: from its first) to ``new``, oldest first."""
    span = [f"^{git.resolve(old)}"] if old is not None else []
    return git.run("rev-list", "--first-parent", "--reverse", git.resolve(new), *span).split()


@dataclass(frozen=True)
class CommitInfo:
    """The facts of one commit, fit for people (`bisectbot.source.git.readable`). Dates: seconds since 1970 UTC."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    author_name: str
    author_mail: str
    author_date: int
    committer_name: str
    committer_mail: str
    commit_date: int
    subject: str
    body: str
    trailers: tuple[tuple[str, str], ...]

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1

    @property
    def short(self) -> str:
        """How kernel people cite it: ``1da177e4c3f4 ("Linux-2.6.12-rc2")``."""
        return f'{self.sha[:12]} ("{self.subject}")'


_FIELDS = ("H", "P", "T", "an", "ae", "at", "cn", "ce", "ct", "s", "b")
_FORMAT = "%x00".join(
    [f"%{field}" for field in _FIELDS] + ["%(trailers:only,unfold,separator=%x1e,key_value_separator=%x1f)"]
)


def facts(git: Git, shas: Sequence[str]) -> list[CommitInfo]:
    """The facts of the given commits, in their order."""
    if not shas:
        return []
    out = git.run("log", "--no-walk=unsorted", "--stdin", "-z", f"--format={_FORMAT}", input="\n".join(shas) + "\n")
    words = out.removesuffix("\0").split("\0")
    width = len(_FIELDS) + 1
    found = [_info(words[start : start + width]) for start in range(0, len(words), width)]
    by_sha = {info.sha: info for info in found}
    return [by_sha[sha] for sha in shas]


def _info(words: list[str]) -> CommitInfo:
    sha, parents, tree, name, mail, date, other_name, other_mail, other_date, subject, body, trailers = words
    pairs = (item.partition("\x1f")[::2] for item in trailers.split("\x1e") if "\x1f" in item)
    return CommitInfo(
        sha=sha,
        parents=tuple(parents.split()),
        tree=tree,
        author_name=readable(name),
        author_mail=readable(mail),
        author_date=int(date or 0),
        committer_name=readable(other_name),
        committer_mail=readable(other_mail),
        commit_date=int(other_date or 0),
        subject=readable(subject).replace("\n", " "),
        body=readable(body).strip("\n"),
        trailers=tuple((readable(key), readable(value)) for key, value in pairs),
    )


_DIFF = ("-p", "-r", "--root", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", "--no-color")


def patch_ids(git: Git, shas: Iterable[str]) -> dict[str, str]:
    """The stable patch-id of each given commit; merges and commits that change nothing have none and are left out."""
    given = "".join(f"{sha}\n" for sha in shas).encode()
    if not given:
        return {}
    out = git.pipe(["diff-tree", "--stdin", *_DIFF], ["patch-id", "--stable"], input=given, timeout=3600.0)
    pairs = (line.split() for line in out.decode("ascii").splitlines())
    return {sha: patch_id for patch_id, sha in pairs}


def reverse_patch_id(git: Git, info: CommitInfo) -> str | None:
    """The patch-id of a commit that takes this one back; None for a merge, a root, or when nothing is changed."""
    if len(info.parents) != 1:
        return None
    out = git.pipe(["diff-tree", *_DIFF, info.sha, info.parents[0]], ["patch-id", "--stable"]).split()
    return out[0].decode("ascii") if out else None


@dataclass(frozen=True)
class Change:
    """What a commit does, however often it is rebased. Two commits with the same ``key`` are the same change."""

    key: str  # 40 hex digits
    patch_id: str | None  # None: a merge, or nothing changed
    sha: str  # the commit it was seen as


def changes(git: Git, infos: Sequence[CommitInfo]) -> list[Change]:
    """The identity of each commit: patch-id, author, author date, subject. A merge is itself and nothing else."""
    ids = patch_ids(git, (info.sha for info in infos if not info.is_merge))
    return [Change(_key(info, ids.get(info.sha)), ids.get(info.sha), info.sha) for info in infos]


def _key(info: CommitInfo, patch_id: str | None) -> str:
    if info.is_merge:
        parts = ["merge", info.sha]
    else:
        parts = [patch_id or "", info.author_name, info.author_mail, str(info.author_date), info.subject]
    return hashlib.sha256(encode("\0".join(parts))).hexdigest()[:40]
