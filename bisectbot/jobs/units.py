"""Parameter texts as job files write them: ``4K`` of memory, ``5m`` of time, ``50%`` of the CPUs, ``16t`` threads."""

from __future__ import annotations

import re
from fractions import Fraction

_SIZE = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_TIME = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_bytes(text: str) -> int | None:
    """``4K`` → 4096; also ``16MB``, ``9B``, ``1.5G``, a bare number; None where it is no size."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGTPkmgtp]?)(?:i?[Bb])?", text.strip())
    return None if found is None else int(Fraction(found[1]) * 1024 ** _SIZE[found[2].upper()])


def parse_seconds(text: str) -> float | int | None:
    """``300s``, ``5m``, ``1h``, ``2d`` or a bare number of seconds; None where it is no time."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|m|h|d|w|)", text.strip())
    if found is None:
        return None
    seconds = float(found[1]) * _TIME[found[2]]
    return int(seconds) if seconds.is_integer() else seconds


def parse_percent(text: str) -> float | None:
    """``50%`` → 50.0; None where it is no percentage."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*%", text.strip())
    return None if found is None else float(found[1])


def parse_count(text: str) -> int | None:
    """``16``, and with letters that say of what: ``16t``, ``256fpd``, ``4000n``; None where it is no count."""
    found = re.fullmatch(r"(\d{1,18})[A-Za-z]*", text.strip())
    return None if found is None else int(found[1])
