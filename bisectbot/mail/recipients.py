"""Who is concerned by a commit: its author, the people in its trailers, its maintainers and their lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bisectbot.mail.gate import MOST_RECIPIENTS, is_robot
from bisectbot.mail.mailbox import Mailbox, distinct, parse_mailboxes
from bisectbot.mail.maintainers import Maintainers

MOST_LISTS = 3

# By how much each trailer says that the commit is somebody's business; of the rest nothing follows.
_TRAILERS = (
    "co-developed-by",
    "signed-off-by",
    "reviewed-by",
    "acked-by",
    "tested-by",
    "suggested-by",
    "reported-by",
    "cc",
)
_TRAILER = re.compile(r"^([A-Za-z][A-Za-z-]*)\s*:\s*(.+)$")
# The stable list takes patches only; the others are what misconfigured machines write into commits.
_NEVER = re.compile(r"stable@(?:vger\.)?kernel\.org|.*@(?:localhost|.*\.(?:local|localdomain|lan|\(none\)))")


@dataclass(frozen=True)
class Commit:
    """What the recipients of a report on a commit follow from.

    ``diff`` is looked at for keywords only; ``contents`` for device tree bindings (see `Maintainers.concerned`).
    """

    author: Mailbox | None
    committer: Mailbox | None
    message: str
    files: tuple[str, ...]
    diff: str = ""
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TreeRules:
    """What an operator adds for one tree, before the cap: always-Cc mailboxes and lists."""

    people: tuple[Mailbox, ...] = ()
    lists: tuple[Mailbox, ...] = ()
    most: int = MOST_RECIPIENTS
    most_lists: int = MOST_LISTS


@dataclass(frozen=True)
class Recipients:
    """``to`` is the author (or, without a usable one, the committer or first maintainer); the rest is Cc."""

    to: tuple[Mailbox, ...]
    people: tuple[Mailbox, ...] = ()
    lists: tuple[Mailbox, ...] = ()
    why: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What makes it their business, in a few words, by `Mailbox.key`."""


def recipients(commit: Commit, maintainers: Maintainers, rules: TreeRules | None = None) -> Recipients:
    """Who gets a report on ``commit``, most concerned first, at most ``rules.most`` in all.

    ``maintainers`` is the commit's own MAINTAINERS file; everybody is named as the .mailmap beside it has them.
    Robots, placeholders and the stable list are left out.
    """
    rules = rules or TreeRules()
    found = maintainers.concerned(commit.files, f"{commit.message}\n{changed_lines(commit.diff)}", commit.contents)
    trailers = [(label, maintainers.current(box)) for label, box in _trailers(commit.message)]
    signed = [(label, box) for label, box in trailers if box.key not in maintainers.ignored]
    author, committer = (box and maintainers.current(box) for box in (commit.author, commit.committer))
    people = _usable([
        *([author] if author else []),
        *([committer] if committer else []),
        *(box for _, box in signed),
        *found.people,
    ])  # fmt: skip
    lists = _usable([*rules.lists, *found.lists])[: rules.most_lists]
    known_lists = {box.key for box in maintainers.lists}
    people = [box for box in people if box.key not in known_lists]
    to = tuple(people[:1])
    room = rules.most - len(to) - len(lists)
    cc = _usable([*rules.people, *people[1:]])
    cc = [box for box in cc if box not in to]
    why = {
        **{box.key: "by configuration" for box in (*rules.people, *rules.lists)},
        **{key: f"MAINTAINERS: {section}" for key, section in found.because.items()},
        **{box.key: f"{label.capitalize()} of the commit" for label, box in reversed(signed)},
        **({committer.key: "committer"} if committer else {}),
        **({author.key: "author"} if author else {}),
    }
    return Recipients(to, tuple(cc[: max(room, 0)]), tuple(lists), why)


def changed_lines(diff: str) -> str:
    """The lines that a diff adds or removes: only they say what a change is about."""
    lines = diff.splitlines()
    return "\n".join(line[1:] for line in lines if line[:1] in {"+", "-"} and not line.startswith(("+++ ", "--- ")))


def trailer_people(message: str) -> tuple[Mailbox, ...]:
    """The mailboxes in the trailers of a commit message, the most concerned first."""
    return distinct(tuple(box for _, box in _trailers(message)))


def _trailers(message: str) -> list[tuple[str, Mailbox]]:
    """The trailers that name people, with their labels in lower case, the most concerned first."""
    found: list[tuple[int, Mailbox]] = []
    for line in message.rsplit("\n\n", 1)[-1].splitlines() if "\n\n" in message else []:
        if (match := _TRAILER.match(line.strip())) and match[1].lower() in _TRAILERS:
            rank = _TRAILERS.index(match[1].lower())
            found += [(rank, box) for box in parse_mailboxes(match[2].split("#", 1)[0])]
    return [(_TRAILERS[rank], box) for rank, box in sorted(found, key=lambda entry: entry[0])]


def _usable(boxes: Iterable[Mailbox]) -> list[Mailbox]:
    return [box for box in distinct(tuple(boxes)) if not is_robot(box) and not _NEVER.fullmatch(box.key)]
