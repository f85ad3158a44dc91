"""What a commit builds from, whatever its id: two commits with the same content make the same build."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from bisectbot.source.git import Git
from bisectbot.source.history import CommitInfo

REBUILDS_OWN = (b"Next", b"localversion-next")  # of linux-next: say which day it is and of what it was made


def contents(git: Git, infos: Sequence[CommitInfo]) -> dict[str, str]:
    """Of each commit 40 hex digits that are equal for equal content: its tree's id, or that of its tree without
    the files in which a rebuilt branch tells of itself. One git command."""
    trees = sorted({info.tree for info in infos})
    if not trees:
        return {}
    out = git.run_bytes("cat-file", "--batch", input="".join(f"{tree}\n" for tree in trees).encode())
    found = dict(_contents(out))
    return {info.sha: found[info.tree] for info in infos}


def _contents(out: bytes) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(out):
        end = out.index(b"\n", place)
        tree, _, size = out[place:end].split(b" ")
        raw = out[end + 1 : end + 1 + int(size)]
        place = end + 2 + int(size)
        kept = [(name, entry) for name, entry in _entries(raw) if name not in REBUILDS_OWN]
        whole = b"".join(entry for _, entry in kept)
        own = tree.decode() if len(whole) == len(raw) else hashlib.sha256(whole).hexdigest()[:40]
        yield tree.decode(), own


def _entries(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """A tree object: for each entry its mode, a space, its name, a zero byte, and 20 bytes of the object's id."""
    place = 0
    while place < len(raw):
        zero = raw.index(b"\0", place)
        yield raw[place:zero].split(b" ", 1)[1], raw[place : zero + 21]
        place = zero + 21
