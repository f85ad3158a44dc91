"""One tuxmake build, run as a program of its own so that a keeper can end it: ``tuxmake_order.py ORDER.json``.

The order holds the arguments of ``tuxmake.build.Build``. Exit status 0: built; 1: it does not build; 3: tuxmake cannot
do what it was told on this machine.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tuxmake.build import Build
from tuxmake.exceptions import TuxMakeException, UnrecognizedSourceTree

_SAID = re.compile(
    r"^E: |^make.*\*\*\* |\berror\b", re.MULTILINE | re.IGNORECASE
)  # all that fails says so, unless killed


def main() -> int:
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        build = Build(**order)
        build.run()
    except UnrecognizedSourceTree:
        sys.stdout.write("error: this commit holds no Linux (no Makefile, Kconfig and Kbuild at its top)\n")
        return 1
    except TuxMakeException as error:
        sys.stdout.write(f"tuxmake cannot: {error}\n")
        return 3
    if build.passed:
        return 0
    if not _SAID.search((build.output_dir / "build.log").read_text(encoding="utf-8", errors="replace")):
        sys.stdout.write("\ntuxmake cannot: make ended without a word, something killed it\n")
        return 3
    return 1


if __name__ == "__main__":
    sys.exit(main())
