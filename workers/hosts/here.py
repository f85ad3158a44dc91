"""This machine's own files: looked at and written as those of a box are over ssh."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from workers.hosts.inventory import FILES
from workers.hosts.ready import SMI

_SMI_COUNT = 0x34  # model-specific register


class Here:
    """The files below ``root``, which are those of the machine that the worker runs on."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def look(self) -> dict[str, str]:
        """The texts of `FILES` by their path; what cannot be read is left out."""
        found = {}
        for pattern in FILES:
            for file in sorted(self._root.glob(pattern.lstrip("/"))):
                with contextlib.suppress(OSError):
                    found[f"/{file.relative_to(self._root)}"] = file.read_text(encoding="utf-8", errors="replace")
        with contextlib.suppress(OSError):
            found[SMI] = str(self._register(_SMI_COUNT))
        return found

    def write(self, values: Sequence[tuple[str, str]]) -> None:
        """Write each value; one that is not taken shows when it is read back."""
        for path, value in values:
            with contextlib.suppress(OSError):
                (self._root / path.lstrip("/")).write_text(value, encoding="utf-8")

    def _register(self, number: int) -> int:
        """A processor's register, for root alone and where the kernel's ``msr`` is there. Raises OSError."""
        file = os.open(self._root / "dev/cpu/0/msr", os.O_RDONLY)
        try:
            return int.from_bytes(os.pread(file, 8, number), "little")
        finally:
            os.close(file)
