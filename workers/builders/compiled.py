"""Which files of the source tree went into a kernel, from the dependency files of its build (``.NAME.cmd``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_START = re.compile(r"^(?:source|deps)_\S+ := ?(.*)$")


def compiled(tree: Path, out: Path) -> tuple[str, ...]:
    """Every source, header and script of ``tree`` that was compiled or read by a compiler, from the tree's top, sorted.

    Left-overs of an earlier commit's build in the same ``out`` are in it as long as their files are in the tree: the
    list may name too much, never too little.
    """
    found: set[Path] = set()
    for file in out.rglob(".*.cmd"):
        found.update(_depends(file))
    top = tree.resolve()
    inside = set()
    for path in found:
        full = path if path.is_absolute() else out / path
        try:
            name = full.resolve().relative_to(top)
        except ValueError:
            continue
        if (top / name).is_file():
            inside.add(str(name))
    return tuple(sorted(inside))


def _depends(file: Path) -> Iterator[Path]:
    listing = False
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        start = _START.match(line)
        if start:
            listing, line = True, start[1]  # noqa: PLW2901 - the rest of the line
        if listing:
            yield from (Path(word) for word in line.split() if word != "\\" and "$(" not in word and ")" not in word)
            listing = line.endswith("\\")
