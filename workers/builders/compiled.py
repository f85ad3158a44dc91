"""Which files of the source tree went into a kernel, from the dependency files of its build (``.NAME.cmd``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_START = re.compile(r"^(?:source|deps)_\S+ := ?(.*)$")


def compiled(tree: Path, out: Path) -> tuple[str, ...]:
    """Every source, header and script of ``tree`` that was compiled or read by a compiler, from the tree's top, sorted.

    Left-overs of an earlier commit's build in the same ``out`` are in it as long as their files are in the tree: the
    list may name too much, never too little.
    """
    found: set[str] = set()
    for file in out.rglob(".*.cmd"):
        found.update(_depends(file))
    top, start = f"{tree.resolve()}{os.sep}", str(out.resolve())
    full = {os.path.normpath(os.path.join(start, name)) for name in found}  # noqa: PTH118 - thousands, all in memory
    return tuple(sorted(name.removeprefix(top) for name in full if name.startswith(top) and Path(name).is_file()))


def _depends(file: Path) -> Iterator[str]:
    listing = False
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        start = _START.match(line)
        if start:
            listing, line = True, start[1]  # noqa: PLW2901 - the rest of the line
        if listing:
            yield from (word for word in line.split() if word != "\\" and "$(" not in word and ")" not in word)
            listing = line.endswith("\\")
