"""Built work trees that are kept, so that going back to a commit costs no build."""

from __future__ import annotations

import json
from pathlib import Path

SLOTS = 8


class Slots:
    """Which work tree holds which built commit; remembered, so that an interrupted search builds nothing twice."""

    def __init__(self, home: Path, build: str) -> None:
        self._file = home / "built.json"
        self._build = build
        self._held: dict[str, str] = {}  # slot → commit, least recently used first
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
            if known["build"] == build:
                self._held = {slot: sha for slot, sha in known["held"] if (home / slot).is_dir()}
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def find(self, sha: str) -> str:
        """The slot that holds ``sha``, "" if none; it counts as used."""
        slot = next((slot for slot, held in self._held.items() if held == sha), "")
        if slot:
            self._held[slot] = self._held.pop(slot)
        return slot

    def take(self) -> str:
        """A slot for another commit; what it held is forgotten first."""
        free = [slot for slot in (f"tree{i}" for i in range(SLOTS)) if slot not in self._held]
        slot = free[0] if free else next(iter(self._held))
        self._held.pop(slot, None)
        self._write()
        return slot

    def fill(self, slot: str, sha: str) -> None:
        """Note that ``slot`` now holds ``sha``, built."""
        self._held[slot] = sha
        self._write()

    def _write(self) -> None:
        self._file.write_text(json.dumps({"build": self._build, "held": list(self._held.items())}), encoding="utf-8")
