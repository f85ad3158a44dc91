"""Measuring a command that prints nothing: the time it takes, or the instructions it executes.

Instructions come from the processor's counters where this machine lets us have them, else from valgrind's cachegrind,
which is slow but gives the same number every time.
"""

from __future__ import annotations

import enum
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import InfraError, UserError
from workers.process import Ended

_CACHEGRIND = "valgrind --tool=cachegrind --cache-sim=no --trace-children=yes --cachegrind-out-file=/dev/null"
_PERF = "perf stat -x, -e instructions:u"


class What(enum.StrEnum):
    """Wall-clock seconds, CPU seconds in user mode (children included), or instructions."""

    WALL = "wall"
    USER = "user"
    INSTRUCTIONS = "instructions"


@dataclass(frozen=True)
class Meter:
    """Turns a shell line into one that can be measured (`wrap`), and what came of it into a number (`value`)."""

    what: What
    tool: str = ""

    @classmethod
    def of(cls, what: What) -> Meter:
        """Raises UserError when this machine cannot count instructions."""
        if what is not What.INSTRUCTIONS:
            return cls(what)
        if _counts_in_hardware():
            return cls(what, "perf")
        if shutil.which("valgrind"):
            return cls(what, "valgrind")
        raise UserError("--measure instructions: no hardware counters here and no valgrind; install valgrind")

    def wrap(self, line: str, folder: Path) -> str:
        """``line``, measured; the tool writes below ``folder``, which must be empty."""
        shell = f"/bin/sh -c {shlex.quote(line)}"
        match self.tool:
            case "perf":
                return f"{_PERF} -o {shlex.quote(str(folder / 'perf'))} {shell}"
            case "valgrind":
                return f"{_CACHEGRIND} --log-file={shlex.quote(str(folder))}/%p {shell}"
        return line

    def value(self, ended: Ended, folder: Path) -> float:
        """The number of a run that ended well. Raises InfraError when the tool wrote none."""
        match self.what:
            case What.WALL:
                return ended.seconds
            case What.USER:
                return ended.user_s
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.iterdir())]
        pattern = r"^(\d+),[^,]*,instructions" if self.tool == "perf" else r"^==\d+== I +refs: +([\d,]+)"
        counts = [int(found.replace(",", "")) for text in texts for found in re.findall(pattern, text, re.MULTILINE)]
        if not counts:
            raise InfraError(f"{self.tool} counted no instructions")
        return float(sum(counts))


def _counts_in_hardware() -> bool:
    if not shutil.which("perf"):
        return False
    probe = subprocess.run([*_PERF.split(), "true"], check=False, capture_output=True, text=True, timeout=60)
    return re.search(r"^\d+,[^,]*,instructions", probe.stderr, re.MULTILINE) is not None
