"""Conflicts solved as people solved them: git's rerere, trained on the merges of the days that are compared.

A conflict between two trees of linux-next is solved once a day by the merge that joins them. When the replay
line meets the same conflict, rerere knows the answer. Training is lazy: only merges that touched a file in
conflict are done over, in a scratch work tree that holds nothing but those files.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisectbot.source.git import Git, GitError, decode


@dataclass(frozen=True)
class Conflict:
    """One stage of a file in conflict: 1 base, 2 ours, 3 theirs."""

    mode: str
    blob: str
    stage: int
    path: str


@dataclass(frozen=True)
class Merged:
    """A three-way merge: the tree, with conflict markers where there are ``conflicts``."""

    tree: str
    conflicts: tuple[Conflict, ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(conflict.path for conflict in self.conflicts)


def merge(git: Git, ours: str, theirs: str) -> Merged:
    """Merge two commits into a tree, touching no index and no work tree."""
    options = ("--write-tree", "--allow-unrelated-histories", "--no-messages", "-z")  # projects with two roots exist
    _, out = git.answer("merge-tree", *options, ours, theirs)
    tree, *rows = decode(out).rstrip("\0").split("\0")
    conflicts = []
    for row in rows:
        words, path = row.split("\t", 1)
        mode, blob, stage = words.split(" ")
        conflicts.append(Conflict(mode, blob, int(stage), path))
    return Merged(tree.strip(), tuple(conflicts))


class Rerere:
    """Solves conflicts of merges in the repository ``git``, by the merges on the first-parent lines of ``days``.

    Each day is (head, where its line of merges begins). What rerere does not know, the last day's head may tell:
    where both sides only added lines and that head holds all of them, both are taken.
    """

    def __init__(self, git: Git, days: Sequence[tuple[str, str]], scratch: Path) -> None:
        self._git = git
        self._days = days
        self._end = days[-1][0]
        self._scratch = Git(scratch, config={"rerere.enabled": "true"})
        self._scratch.run("init", "--quiet", ".")
        store = Path(git.run("rev-parse", "--path-format=absolute", "--git-path", "objects"))
        (scratch / ".git" / "objects" / "info" / "alternates").write_text(f"{store}\n")
        self._merges: dict[str, list[str]] | None = None
        self._trained: set[str] = set()

    def solve(self, merged: Merged) -> str | None:
        """The tree with every conflict solved, or None when one of them was never solved before."""
        self._train(merged.paths)
        self._lay_out(merged)
        self._scratch.run("rerere")
        left = self._scratch.run("rerere", "remaining").splitlines()
        if not all(self._unite(merged, path) for path in left):
            return None
        return self._with_files(merged)

    def _unite(self, merged: Merged, path: str) -> bool:
        """Lay out the file with the lines of both sides, if the end holds every one of them."""
        blobs = {one.stage: one.blob for one in merged.conflicts if one.path == path}
        if not {2, 3} <= set(blobs):
            return False
        try:
            end = self._git.run_bytes("cat-file", "blob", f"{self._end}:{path}")
        except GitError:  # it has no such file
            return False
        names = {1: "base", 2: "ours", 3: "theirs"}
        folder = self._scratch.path / ".git"
        for stage, name in names.items():
            content = self._git.run_bytes("cat-file", "blob", blobs[stage]) if stage in blobs else b""
            (folder / name).write_bytes(content)
        both = self._scratch.run_bytes("merge-file", "-p", "--union", *(f".git/{names[stage]}" for stage in (2, 1, 3)))
        (self._scratch.path / path).write_bytes(both)
        return set(both.splitlines()) <= set(end.splitlines())

    def _train(self, paths: frozenset[str]) -> None:
        if self._merges is None:
            self._merges = dict(self._solved_files())
        for sha, files in self._merges.items():
            if sha not in self._trained and not paths.isdisjoint(files):
                self._trained.add(sha)
                self._learn(sha)

    def _solved_files(self) -> Iterator[tuple[str, list[str]]]:
        """Each merge of the days, with the files in which its result differs from both parents."""
        for head, start in self._days:
            out = self._git.run(
                "log", "--first-parent", "--merges", "--diff-merges=combined", "--name-only", "-z",
                "--format=%x01%H", head, f"^{start}",
            )  # fmt: skip
            for record in out.split("\x01")[1:]:
                sha, *files = record.split("\0")
                yield sha, [path.strip("\n") for path in files if path.strip("\n")]

    def _learn(self, sha: str) -> None:
        parents = self._git.run("rev-parse", f"{sha}^@").split()
        if len(parents) != 2:
            return
        merged = merge(self._git, *parents)
        self._lay_out(merged)
        self._scratch.run("rerere")
        for path in merged.paths:
            with contextlib.suppress(GitError):  # the merge solved it by removing the file
                content = self._git.run_bytes("cat-file", "blob", f"{sha}:{path}")
                (self._scratch.path / path).write_bytes(content)
        self._scratch.run("rerere")

    def _lay_out(self, merged: Merged) -> None:
        """Bring index and files to the middle of this merge."""
        for entry in self._scratch.path.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        with contextlib.suppress(FileNotFoundError):
            (self._scratch.path / ".git" / "MERGE_RR").unlink()
        self._scratch.run("read-tree", "--empty")
        rows = "".join(f"{one.mode} {one.blob} {one.stage}\t{one.path}\0" for one in merged.conflicts)
        self._scratch.run("update-index", "-z", "--index-info", input=rows)
        for path in merged.paths:
            with contextlib.suppress(GitError):  # a file that one side removed has no text with markers
                content = self._git.run_bytes("cat-file", "blob", f"{merged.tree}:{path}")
                place = self._scratch.path / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)

    def _with_files(self, merged: Merged) -> str | None:
        modes = {one.path: one.mode for one in merged.conflicts}
        with tempfile.TemporaryDirectory() as folder:
            writer = Git(self._git.path, env={"GIT_INDEX_FILE": f"{folder}/index"})
            writer.run("read-tree", merged.tree)
            for path in sorted(merged.paths):
                place = self._scratch.path / path
                if (
                    len([one for one in merged.conflicts if one.path == path and one.stage > 1]) < 2
                    or not place.exists()
                ):
                    return None  # rerere knows only files that both sides have
                content = place.read_bytes()
                if b"<<<<<<< " in content:
                    return None
                blob = writer.run("hash-object", "-w", "--stdin", input=content)
                writer.run("update-index", "--add", "--cacheinfo", f"{modes[path]},{blob},{path}")
            return writer.run("write-tree")
