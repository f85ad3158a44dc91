"""The golden logs beside this file: NAME[.CASE].in, what is printed of it (.out), and with --mended (.mended.out)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bisectbot.results.parsers import RawLog, as_line, names, parse

GOLDEN = Path(__file__).parent / "golden"
ORACLE = Path(__file__).parents[3].parent / "shared" / "lkp" / "oracle" / "parsers"


def pairs_of(folder: Path) -> Iterator[tuple[str, Path, Path, bool]]:
    """(parser, log, expected, exact) of every pair in a folder."""
    for log in sorted(folder.glob("*.in")):
        name = log.name.split(".")[0]
        yield name, log, log.with_suffix(".out"), True
        mended = log.with_suffix(".mended.out")
        if mended.exists():
            yield name, log, mended, False


def printed(name: str, raw: bytes, *, exact: bool = True) -> list[str]:
    return [as_line(key, value) for key, value in parse(name, RawLog.of(raw, exact=exact))]


def samples() -> dict[str, bytes]:
    """One log for every parser."""
    return {name: (GOLDEN / f"{name}.in").read_bytes() for name in names()}
