"""The server's bare mirror: several trees share one object store, and what was seen once is never lost.

refs/remotes/TREE/BRANCH            what upstream has now
refs/tags/next-YYYYMMDD, v…         upstream's tags; kept when upstream drops them
refs/bisectbot/head/TREE/BRANCH/@N  the branch's N-th head, kept whatever upstream does
refs/bisectbot/build/SHA            what builders may fetch
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bisectbot.errors import InfraError, UserError
from bisectbot.source.git import (
    PATIENCE,
    PUBLISHED,
    SILENCE,
    Git,
    GitError,
    check_name,
    check_url,
    corrupt,
    is_sha,
    locked,
)

KEPT = "refs/bisectbot/head/"
TAGS = ("next-*", "v*")


@dataclass(frozen=True)
class Fetched:
    """What upstream has now, and what happened to it since the last fetch."""

    heads: Mapping[str, str]  # branch → 40 digits
    tags: Mapping[str, str]  # tag → the commit it names; also those that upstream dropped
    forced: tuple[str, ...] = ()  # branches whose former head is no ancestor of the new one
    vanished: tuple[str, ...] = ()  # branches that upstream no longer has
    repaired: bool = False  # the mirror was damaged and has been made anew
    lost: tuple[str, ...] = ()  # our own refs whose objects neither upstream nor the damaged mirror had


class Mirror:
    """The bare repository at ``path``; ``path`` + ".lock" serialises everything that changes it.

    ``silence``: s after which a fetch that shows no sign of life is killed; ``patience``: s after which any is, so
    that one tree's slow upstream holds the others up no longer than that.
    """

    def __init__(
        self,
        path: Path,
        *,
        silence: float = SILENCE,
        patience: float = PATIENCE,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.git = Git(path, config={"fetch.writeCommitGraph": "true", **(config or {})})
        self._silence = silence
        self._patience = patience

    def add_tree(self, name: str, url: str, *, partial: bool = False) -> None:
        """Watch the repository at ``url`` under ``name``; again with another ``url``: it has moved.

        ``partial`` leaves out file contents until somebody asks for them. Raises UserError for a name or address
        that cannot be used.
        """
        if "/" in check_name(name, "tree"):
            raise UserError(f"tree {name!r} must not hold a slash; it is the first part of its refs")
        check_url(url)
        with self._changing():
            self._configure(self.git, name, url, partial)

    def trees(self) -> dict[str, str]:
        """The watched trees: name → address."""
        if not self.git.is_repository():
            return {}
        try:
            out = self.git.run("config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$")
        except GitError as failure:
            if failure.status == 1:
                return {}
            raise
        pairs = (item.split("\n", 1) for item in out.split("\0") if item)
        return {key.removeprefix("remote.").removesuffix(".url"): url for key, url in pairs}

    def fetch(self, tree: str, branches: Sequence[str] = ("*",)) -> Fetched:
        """Bring in what the tree's upstream has now; ``branches`` are names or patterns.

        A damaged mirror is made anew on the way. Raises UserError for an unknown tree or a branch that upstream
        never had, InfraError when upstream does not answer, has vanished, or falls silent.
        """
        if tree not in self.trees():
            raise UserError(f"tree {tree!r} is unknown to the mirror {self.path}; add it first")
        with self._changing():
            try:
                return self._fetch(tree, branches)
            except GitError as failure:
                if not corrupt(failure):
                    raise
            lost = self._make_anew()
            again = self._fetch(tree, branches)
            return Fetched(again.heads, again.tags, again.forced, again.vanished, repaired=True, lost=lost)

    def keep(self, tree: str, branch: str, number: int, sha: str) -> str:
        """Hold a branch's head for ever, as its ``number``-th; returns the ref."""
        assert is_sha(sha), sha
        ref = f"{KEPT}{check_name(tree, 'tree')}/{check_name(branch, 'branch')}/@{number}"
        self.git.run("update-ref", ref, sha)
        return ref

    def kept(self, tree: str, branch: str) -> dict[int, str]:
        """The heads of a branch that are held: number → 40 digits."""
        prefix = f"{KEPT}{tree}/{branch}/@"
        refs = self._refs(f"{KEPT}{tree}/{branch}/").items()
        return {int(ref.removeprefix(prefix)): sha for ref, sha in refs if ref.startswith(prefix)}

    def publish(self, sha: str) -> str:
        """Let builders fetch a commit; returns the ref they ask for."""
        assert is_sha(sha), sha
        self.git.run("update-ref", PUBLISHED + sha, sha)
        return PUBLISHED + sha

    def withdraw(self, sha: str) -> None:
        """Take back `publish`, when the build is done. A commit that was never published is no error."""
        assert is_sha(sha), sha
        self.git.run("update-ref", "-d", PUBLISHED + sha)

    def maintain(self, *, timeout: float = 4 * 3600.0) -> None:
        """Pack objects and refs, write the commit graph with changed paths. Daily, when nothing is urgent."""
        with self._changing():
            self.git.run("pack-refs", "--all")
            self.git.run("gc", "--quiet", "--prune=2.weeks.ago", timeout=timeout)
            self.git.run("commit-graph", "write", "--reachable", "--changed-paths", "--no-progress", timeout=timeout)

    def repair(self) -> tuple[str, ...]:
        """Make the mirror anew from its upstreams and what can be read of it.

        Returns the refs whose objects nobody has any more; if there are any, the damaged mirror stays beside the
        new one as ``path`` + ".damaged".
        """
        with self._changing():
            return self._make_anew()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with locked(self.path.with_name(self.path.name + ".lock")):
            damaged, new = self._beside("damaged"), self._beside("new")
            if not self.path.exists() and damaged.exists():  # killed between the two renames of _make_anew
                (new if new.exists() else damaged).rename(self.path)
            if not (self.path / "HEAD").exists():
                self.git.init_bare()
            yield

    def _beside(self, word: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{word}")

    def _configure(self, git: Git, name: str, url: str, partial: bool) -> None:
        git.run("config", f"remote.{name}.url", url)
        if partial:
            git.run("config", f"remote.{name}.promisor", "true")
            git.run("config", f"remote.{name}.partialclonefilter", "blob:none")

    def _refs(self, prefix: str, git: Git | None = None) -> dict[str, str]:
        out = (git or self.git).run("for-each-ref", "--format=%(objectname) %(refname)", prefix)
        pairs = (line.split(" ", 1) for line in out.splitlines())
        return {ref: sha for sha, ref in pairs}

    def _fetch(self, tree: str, branches: Sequence[str]) -> Fetched:
        offered = self._offered(tree)
        for name in branches:
            if (
                "*" not in name
                and f"refs/heads/{name}" not in offered
                and not self._refs(f"refs/remotes/{tree}/{name}")
            ):
                raise UserError(f"tree {tree!r} has no branch {name!r} at {self.trees()[tree]}; check the spelling")
        before = self._heads(tree)
        heads = _chosen(offered, "refs/heads/", branches)
        vanished = sorted(set(before) - set(heads))
        for branch in vanished:  # first, so that a branch "a" can become a branch "a/b"
            self.git.run("update-ref", "-d", f"refs/remotes/{tree}/{branch}")
        wanted = [f"+refs/heads/{name}:refs/remotes/{tree}/{name}" for name in heads if heads[name] != before.get(name)]
        tags = set(_chosen(offered, "refs/tags/", TAGS)) - {
            ref.removeprefix("refs/tags/") for ref in self._refs("refs/tags/")
        }
        wanted += [f"+refs/tags/{tag}:refs/tags/{tag}" for tag in sorted(tags)]
        if wanted:
            self._receive(self.git, tree, wanted)
        after = {name: sha for name, sha in self._heads(tree).items() if name in heads}
        moved = [name for name in after if name in before and after[name] != before[name]]
        forced = [name for name in moved if not self.git.ok("merge-base", "--is-ancestor", before[name], after[name])]
        return Fetched(after, self._tags(), tuple(forced), tuple(vanished))

    def _offered(self, tree: str, git: Git | None = None) -> dict[str, str]:
        """Upstream's refs as it lists them: one question, whatever the size of the tree."""
        patterns = ["refs/heads/*", *(f"refs/tags/{tag}" for tag in TAGS)]
        out = (git or self.git).run("ls-remote", "--quiet", "--refs", tree, *patterns, timeout=self._silence)
        pairs = (line.split("\t", 1) for line in out.splitlines())
        return {ref: sha for sha, ref in pairs}

    def _receive(self, git: Git, tree: str, refspecs: Iterable[str]) -> None:
        options = (
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--progress",
            "--no-auto-maintenance",
        )
        said = git.watched("fetch", *options, tree, *refspecs, silence=self._silence, patience=self._patience)
        if "shallow roots are not allowed" in said:  # git warns, leaves the ref out, and calls that success
            raise UserError(f"the upstream of tree {tree!r} is a shallow clone; give the address of a whole one")

    def _heads(self, tree: str) -> dict[str, str]:
        prefix = f"refs/remotes/{tree}/"
        return {ref.removeprefix(prefix): sha for ref, sha in self._refs(prefix).items()}

    def _tags(self) -> dict[str, str]:
        form = "%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end) %(refname:strip=2)"
        pairs = (
            line.split(" ", 1) for line in self.git.run("for-each-ref", f"--format={form}", "refs/tags").splitlines()
        )
        return {tag: sha for sha, tag in pairs}

    def _make_anew(self) -> tuple[str, ...]:
        new_path, damaged = self._beside("new"), self._beside("damaged")
        shutil.rmtree(new_path, ignore_errors=True)
        new = Git(new_path)
        new.init_bare()
        shutil.copy2(self.path / "config", new_path / "config")
        for tree in self.trees():
            try:
                names = _chosen(self._offered(tree, new), "refs/heads/", ("*",))
                self._receive(new, tree, [f"+refs/heads/{name}:refs/remotes/{tree}/{name}" for name in names])
            except (InfraError, UserError):
                continue  # gone upstream: what we have of it is saved below
        lost = _save_refs(self.path, self._refs("refs/"), new)
        shutil.rmtree(damaged, ignore_errors=True)
        self.path.rename(damaged)
        new_path.rename(self.path)
        if not lost:
            shutil.rmtree(damaged)
        return lost


def _chosen(offered: Mapping[str, str], prefix: str, patterns: Sequence[str]) -> dict[str, str]:
    names = {ref.removeprefix(prefix): sha for ref, sha in offered.items() if ref.startswith(prefix)}
    return {name: sha for name, sha in names.items() if any(fnmatchcase(name, pattern) for pattern in patterns)}


def _save_refs(old: Path, refs: Mapping[str, str], new: Git) -> tuple[str, ...]:
    """Copy ``refs`` and their objects from the damaged repository ``old``; returns the refs that cannot be read.

    The damaged store is lent to the new one meanwhile: of an object that both have, git then finds the good copy.
    """
    loan = new.path / "objects" / "info" / "alternates"
    loan.parent.mkdir(parents=True, exist_ok=True)
    have = set(new.run("for-each-ref", "--format=%(objectname)").split())
    loan.write_text(f"{(old / 'objects').absolute()}\n")
    lost = []
    try:
        wanted = set(refs.values()) - have
        if _copy(new, wanted, have):
            have |= wanted
        else:
            for sha in sorted(wanted):
                if _copy(new, {sha}, have):
                    have.add(sha)
    finally:
        loan.unlink()
    for ref, sha in refs.items():
        if sha in have:
            new.run("update-ref", ref, sha)
        else:
            lost.append(ref)
    return tuple(lost)


def _copy(git: Git, wanted: set[str], have: set[str]) -> bool:
    """Pack everything reachable from ``wanted`` but not from ``have``; False if some of it cannot be read."""
    if not wanted:
        return True
    revs = "\n".join([*sorted(wanted), "--not", *sorted(have)]) + "\n"
    try:
        git.run("pack-objects", "--revs", "--quiet", "objects/pack/pack", input=revs, timeout=4 * 3600.0)
    except GitError:
        return False
    return True
