"""Histories whose performance is written in their files, so that any commit, merge or replay of them has its own.

In a tree, ``perf/NAME`` holds an effect in percent; ``perf/NAME`` with ``-8 needs a b`` counts only where ``part/a``
and ``part/b`` are there, with ``-8 unless c`` only where ``part/c`` is not; ``aligned`` is such a part of a build with
forced alignment. ``option/NAME`` is an option of the configuration, on wherever it is there. A file ``broken`` does not
build, ``panic`` does not boot; what lies in ``doc/`` or ``Next/`` is not compiled. Commits have numbers; `World.sha`
knows their ids, which `World.rebuild` changes, all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisectbot.source.git import Git
from tests.source.fastimport import NOON, Content, FastImport

Late = Callable[[Callable[[int], str]], str]  # a file's text that tells ids of earlier commits: given their numbers

BASE = 100.0  # the level without any effect


@dataclass(frozen=True)
class Image:
    """What a build of a tree would be: a signature of what is compiled, its level, and whether it builds and boots."""

    signature: str
    level: float
    builds: bool
    boots: bool
    options: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Commit:
    subject: str
    parents: tuple[int, ...]
    files: Mapping[str, Content | Late]


class World:
    """A repository below ``path``; `commit` adds to it, `write` makes it real."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits: list[_Commit] = []
        self._images: dict[tuple[str, bool], Image] = {}
        self._texts: dict[str, str] = {}
        self._trees: dict[int, dict[str, Content | Late]] = {}
        self._dates: dict[int, int] = {}
        self._builds = 0
        self._shas: list[str] = []

    def commit(
        self, parents: Iterable[int], files: Mapping[str, Content | Late] | None = None, *, subject: str = ""
    ) -> int:
        """Add a commit; without ``files`` one that changes what is compiled, but no effect. Returns its number."""
        number = len(self._commits) + 1
        changed = {f"src/{number}": f"{number}\n"} if files is None else files
        parents = tuple(parents)
        self._trees[number] = {**(self._trees[parents[0]] if parents else {}), **changed}
        self._commits.append(_Commit(subject or f"commit {number}", parents, changed))
        return number

    def patch(self, parent: int, subject: str, files: Mapping[str, Content]) -> int:
        """Add a commit that is the same change wherever it is applied: its author date follows from its subject."""
        number = self.commit([parent], files, subject=subject)
        self._dates[number] = NOON + sum(subject.encode())
        return number

    def merge(self, *parents: int, files: Mapping[str, Content | Late] | None = None) -> int:
        """Add a merge: the files of all parents, and ``files``, which none of them has."""
        first, *others = (self._trees[parent] for parent in parents)
        brought = {path: content for tree in others for path, content in tree.items() if path not in first}
        return self.commit(parents, {**brought, **(files or {})}, subject=f"Merge {parents[1:]}")

    def effect(self, parents: Iterable[int], percent: float, *, name: str = "", needs: str = "") -> int:
        """Add a commit with an effect of its own; ``needs`` are parts, in words, without which it has none."""
        number = len(self._commits) + 1
        text = f"{percent}" + (f" needs {needs}" if needs else "")
        return self.commit(parents, {f"perf/{name or number}": text + "\n", f"src/{number}": "x\n"})

    def line(self, count: int, start: int | None = None, effects: Mapping[int, float] | None = None) -> int:
        """Add ``count`` commits one after the other; ``{7: -8}`` gives the seventh of them that effect."""
        tip = start
        for place in range(1, count + 1):
            parents = [] if tip is None else [tip]
            percent = (effects or {}).get(place)
            tip = self.commit(parents) if percent is None else self.effect(parents, percent)
        assert tip is not None
        return tip

    def write(self) -> None:
        """Make the commits real."""
        self._make()

    def rebuild(self) -> None:
        """Make every commit anew: the same changes, other ids; the old ones are gone."""
        self._builds += 1
        self._make()

    def _make(self) -> None:
        self.repo = FastImport(self._path / f"history-{self._builds}.git")
        for number, commit in enumerate(self._commits, 1):
            if any(callable(content) for content in commit.files.values()):
                self.repo.write()
            files = {path: text(self.repo.sha) if callable(text) else text for path, text in commit.files.items()}
            now = NOON + 60 * number
            date = self._dates.get(number, now)
            self.repo.commit(commit.subject, commit.parents, files, date=date, committed=now + self._builds)
        self.repo.ref("refs/heads/master", len(self._commits))
        self.repo.write()
        self._shas = [self.repo.sha(number) for number in range(1, len(self._commits) + 1)]
        self.git = Git(self.repo.path)

    def sha(self, number: int) -> str:
        return self._shas[number - 1]

    def number(self, sha: str) -> int:
        """The number of a commit of this history; 0 for any other."""
        return self._shas.index(sha) + 1 if sha in self._shas else 0

    def image(self, sha: str, *, aligned: bool = False) -> Image:
        """What a build of this commit would be, read from its tree; with its functions ``aligned`` if so wanted."""
        if (sha, aligned) not in self._images:
            self._images[sha, aligned] = self._build(sha, aligned)
        return self._images[sha, aligned]

    def _build(self, sha: str, aligned: bool) -> Image:
        rows = [line.split("\t", 1) for line in self.git.run("ls-tree", "-r", sha).splitlines()]
        blobs = {path: words.split()[2] for words, path in rows}
        compiled = "".join(f"{path} {blob}\n" for path, blob in blobs.items() if not path.startswith(("doc/", "Next/")))
        there = {*blobs, "part/aligned"} if aligned else set(blobs)
        effects = [self._effect(blob, there) for path, blob in blobs.items() if path.startswith("perf/")]
        return Image(
            signature=hashlib.sha256(compiled.encode()).hexdigest(),
            level=BASE * (1 + sum(effects) / 100),
            builds="broken" not in blobs,
            boots="panic" not in blobs,
            options=frozenset(path for path in blobs if path.startswith("option/")),
        )

    def _effect(self, blob: str, there: Collection[str]) -> float:
        if blob not in self._texts:
            self._texts[blob] = self.git.run("cat-file", "blob", blob)
        text, _, unless = self._texts[blob].partition(" unless ")
        percent, _, needs = text.partition(" needs ")
        there = {path.removeprefix("part/") for path in there if path.startswith("part/")}
        return float(percent) if there.issuperset(needs.split()) and there.isdisjoint(unless.split()) else 0.0
