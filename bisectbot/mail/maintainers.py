"""The kernel's MAINTAINERS file: who looks after which files.

The format is described at the head of that file; where it is silent the answers of the kernel's own get_maintainer
script (git history off) are the reference, which tests compare with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bisectbot.mail.mailbox import Mailbox, distinct, parse_mailboxes

# He is named in THE REST, for everything; the script leaves him alone too.
_CHIEF = "torvalds@linux-foundation.org"
_FIELD = re.compile(r"^([A-Z]):\s*(.*)$")
_BINDING = re.compile(r"Documentation/devicetree/bindings/.*\.yaml$")
_CATCH_ALL = -1
_BY_NAME = 0  # how specific a match by N: or K: is
_CACHED_FILES = 65536


@dataclass(frozen=True)
class Section:
    """One entry. ``lists`` are those that take mail from strangers, moderated ones included."""

    name: str
    status: str = ""
    people: tuple[Mailbox, ...] = ()  # M: and R: in their order
    lists: tuple[Mailbox, ...] = ()
    files: tuple[str, ...] = ()  # F:
    excluded: tuple[str, ...] = ()  # X:
    name_patterns: tuple[str, ...] = ()  # N:
    keywords: tuple[str, ...] = ()  # K:


@dataclass(frozen=True)
class Concerned:
    """Who looks after some files, the most specific section first."""

    people: tuple[Mailbox, ...]
    lists: tuple[Mailbox, ...]
    sections: tuple[str, ...]
    because: dict[str, str] = field(default_factory=dict, compare=False)
    """The section that names each of them, by `Mailbox.key`."""


def parse(text: str, *, mailmap: str = "", ignored: str = "") -> Maintainers:
    """The sections of a MAINTAINERS file.

    ``mailmap`` and ``ignored`` are the texts of .mailmap and .get_maintainer.ignore beside it. The latter names
    people who want no mail for having signed a commit; what they maintain still concerns them.
    """
    names = Mailmap.parse(mailmap)
    never = frozenset(box.key for line in ignored.splitlines() for box in parse_mailboxes(line.split("#", 1)[0]))
    return Maintainers(tuple(_section(title, fields, names) for title, fields in _blocks(text)), names, never)


def _blocks(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(title, [(letter, value), …]) of each section: an unindented line with fields right below it."""
    title, fields = "", list[tuple[str, str]]()
    for line in text.splitlines():
        if match := _FIELD.match(line):
            fields.append((match[1], match[2].strip()))
        elif line[:1].strip():
            if title and fields:
                yield title, fields
            title, fields = line.strip(), []
    if title and fields:
        yield title, fields


def _section(title: str, fields: list[tuple[str, str]], names: Mailmap) -> Section:
    by_letter: dict[str, list[str]] = defaultdict(list)
    people: list[Mailbox] = []
    for letter, value in fields:
        if letter in {"M", "R"}:
            people += [names.current(box) for box in parse_mailboxes(value)]
        by_letter[letter].append(value)
    lists = [
        box for value in by_letter["L"] if "subscribers-only" not in value for box in parse_mailboxes(_bare(value))
    ]
    return Section(
        title,
        by_letter["S"][0] if by_letter["S"] else "",
        tuple(box for box in people if box.key != _CHIEF),
        tuple(lists),
        tuple(by_letter["F"]),
        tuple(by_letter["X"]),
        tuple(by_letter["N"]),
        tuple(by_letter["K"]),
    )


def _bare(value: str) -> str:
    """A list without the remark behind it. One written with a name is a team's private alias, as the script sees it."""
    return value.split(maxsplit=1)[0] if value else ""


class Maintainers:
    """A parsed MAINTAINERS file that answers quickly: sections are indexed by the directories of their patterns."""

    def __init__(self, sections: tuple[Section, ...], mailmap: Mailmap, ignored: frozenset[str]) -> None:
        self.sections = sections
        self.ignored = ignored  # addresses in lower case
        self._mailmap = mailmap
        self.problems: list[str] = []  # patterns that Python cannot read, one line each
        self._below = _Index()  # F:, by directory
        self._names: list[tuple[int, _Regex]] = []
        self._keywords: list[tuple[int, _Regex]] = []
        self._excluded: dict[int, list[_Glob]] = {}
        for number, section in enumerate(sections):
            for pattern in section.files:
                self._below.add(_Glob.parse(pattern), number)
            if section.excluded:
                self._excluded[number] = [_Glob.parse(pattern) for pattern in section.excluded]
            self._names += self._compiled(number, section.name_patterns)
            self._keywords += self._compiled(number, section.keywords)
        self.lists = distinct(tuple(box for section in sections for box in section.lists))
        self._of_file = lru_cache(_CACHED_FILES)(self._matches)

    def current(self, box: Mailbox) -> Mailbox:
        """``box`` under the name and address that .mailmap gives it."""
        return self._mailmap.current(box)

    def concerned(self, files: Iterable[str], text: str = "", contents: Mapping[str, str] | None = None) -> Concerned:
        """Who looks after ``files``; ``text``, a commit message and diff, is searched for the sections' keywords.

        Sections are ordered by how deep the pattern reaches that matched, then by how many files they matched.
        ``contents`` are texts of files; device tree bindings name further people.
        """
        files = tuple(files)
        bindings = [contents[file] for file in files if contents and file in contents and _BINDING.match(file)]
        depth: dict[int, int] = {}
        count: dict[int, int] = defaultdict(int)
        for file in files:
            for number, at in self._of_file(file):
                depth[number] = max(at, depth.get(number, at))
                count[number] += 1
        if text:
            for number, keyword in self._keywords:
                if number not in depth and keyword.found_in(text):
                    depth[number] = _BY_NAME
        order = sorted(depth, key=lambda number: (-depth[number], -count[number], number))
        found = [self.sections[number] for number in order]
        because: dict[str, str] = {}
        for section in found:
            for box in (*section.people, *section.lists):
                because.setdefault(box.key, section.name)
        return Concerned(
            _one_each(box for group in (*(s.people for s in found), *map(self._named_in, bindings)) for box in group),
            distinct(tuple(box for section in found for box in section.lists)),
            tuple(section.name for section in found),
            because,
        )

    def _named_in(self, binding: str) -> tuple[Mailbox, ...]:
        """The people in a binding's ``maintainers:`` list, as YAML lays it out."""
        block = re.search(r"^maintainers:[ \t]*\n((?:[ \t]+.*\n|[ \t]*-.*\n)+)", binding, re.MULTILINE)
        boxes = parse_mailboxes(",".join(re.findall(r"-\s+(.+)", block[1]))) if block else ()
        return tuple(self._mailmap.current(box) for box in boxes)

    def _matches(self, file: str) -> tuple[tuple[int, int], ...]:
        """(section, depth) of all that match one file."""
        depth: dict[int, int] = {}
        for glob, number in self._below.candidates(file):
            if glob.depth > depth.get(number, _CATCH_ALL - 1) and glob.matches(file):
                depth[number] = glob.depth
        for number, pattern in self._names:
            if pattern.found_in(file):
                depth[number] = _BY_NAME  # the script's order: even if an F: matches more closely
        return tuple(
            (number, at)
            for number, at in depth.items()
            if not any(glob.matches(file) for glob in self._excluded.get(number, ()))
        )

    def _compiled(self, number: int, patterns: tuple[str, ...]) -> list[tuple[int, _Regex]]:
        compiled = []
        for pattern in patterns:
            try:
                compiled.append((number, _Regex.parse(pattern)))
            except re.error as error:
                self.problems.append(
                    f"MAINTAINERS, {self.sections[number].name}: pattern {pattern!r}: {error}; ignored"
                )
        return compiled


@dataclass(frozen=True)
class _Regex:
    """An N: or K: pattern. ``literal`` is in every match, so that most texts need no search."""

    literal: str
    regex: re.Pattern[str]

    @staticmethod
    def parse(pattern: str) -> _Regex:
        """Raises re.error for what Python cannot read."""
        regex = re.compile(pattern, re.VERBOSE | re.MULTILINE)
        plain = pattern.partition("#")[0]
        while plain != (plain := re.sub(r"\([^()]*\)|\[\^?\]?[^]]*\]", "(", plain)):
            pass
        if "|" in plain or "(?i" in pattern or re.search(r"\\[^\W_bBdDsSwW]", plain):
            return _Regex("", regex)
        # An escape is no literal, nor is what may be repeated or left out.
        runs = re.findall(r"[A-Za-z0-9_,/-]+", re.sub(r"\\.|.(?:[?*+]|\{[^}]*\})", "(", plain))
        return _Regex(max(runs, key=len, default=""), regex)

    def found_in(self, text: str) -> bool:
        return self.literal in text and self.regex.search(text) is not None


@dataclass(frozen=True)
class _Glob:
    """One F: or X: pattern.

    A directory reaches everything below it. A file pattern reaches names that begin like it at its own depth.
    """

    literal: str  # what precedes the first wildcard
    slashes: int
    depth: int
    whole_tree: bool  # ends in /
    regex: re.Pattern[str] | None  # None: no wildcards

    @staticmethod
    def parse(pattern: str) -> _Glob:
        wild = re.search(r"[*?\[]", pattern)
        below = pattern.endswith("/")
        slashes = pattern.count("/")
        depth = _CATCH_ALL if pattern.startswith("*") else slashes + (not below)
        literal = pattern[: wild.start()] if wild else pattern
        return _Glob(literal, slashes, depth, below, re.compile(_translated(pattern)) if wild else None)

    def matches(self, file: str) -> bool:
        if self.regex is None:
            if self.whole_tree:
                return file.startswith(self.literal)
            return file.startswith(self.literal) and (file.count("/") == self.slashes or file[len(self.literal)] == "/")
        return bool(self.regex.match(file)) and (self.whole_tree or file.count("/") == self.slashes)


def _translated(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c, c if c in "[]" else re.escape(c)) for c in pattern)


class _Index:
    """Globs by the deepest directory that all their matches lie below."""

    def __init__(self) -> None:
        self._by_directory: dict[str, list[tuple[_Glob, int]]] = defaultdict(list)

    def add(self, glob: _Glob, number: int) -> None:
        self._by_directory[glob.literal.rpartition("/")[0]].append((glob, number))

    def candidates(self, file: str) -> Iterator[tuple[_Glob, int]]:
        directory = file
        while directory:
            directory = directory.rpartition("/")[0]
            yield from self._by_directory.get(directory, ())


def _one_each(boxes: Iterable[Mailbox]) -> tuple[Mailbox, ...]:
    """Each person once, by address and by name: many look after one thing as themselves and after another for work."""
    seen: set[str] = set()
    kept = []
    for box in boxes:
        marks = {box.key, box.name.lower()} - {""}
        if not marks & seen:
            kept.append(box)
        seen |= marks
    return tuple(kept)


@dataclass(frozen=True)
class Mailmap:
    """git's .mailmap: the name and address that somebody goes by now. Keys are in lower case."""

    by_address: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_both: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Mailmap:
        by_address: dict[str, tuple[str, str]] = {}
        by_both: dict[tuple[str, str], tuple[str, str]] = {}
        for line in text.splitlines():
            parts = re.findall(r"([^<>#]*)<([^<>]*)>", line.split("#", 1)[0])
            if len(parts) == 1:
                ((name, address),) = parts
                by_address[address.lower()] = (name.strip(), "")
            elif len(parts) == 2:
                (name, address), (old_name, old_address) = parts
                if old_name.strip():
                    by_both[old_name.strip().lower(), old_address.lower()] = (name.strip(), address)
                else:
                    by_address[old_address.lower()] = (name.strip(), address)
        return Mailmap(by_address, by_both)

    def current(self, box: Mailbox) -> Mailbox:
        """``box`` under its present name and address."""
        name, address = self.by_both.get((box.name.lower(), box.key)) or self.by_address.get(box.key) or ("", "")
        known = parse_mailboxes(address)
        return Mailbox(known[0].address if known else box.address, name or box.name)
