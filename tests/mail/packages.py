"""Programs of the distribution that the real tests run; what is missing is installed, or said to be missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def require(package: str, file: str) -> Path:
    """The newest file that matches ``file`` (a pattern below /), which Debian's ``package`` brings."""
    if not _newest(file):
        if os.geteuid() != 0:
            raise RuntimeError(f"{file} is missing: apt-get install {package}")
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        subprocess.run(["apt-get", "update", "-q"], check=True, capture_output=True, env=environment)
        command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", package]
        subprocess.run(command, check=True, capture_output=True, env=environment)
    found = _newest(file)
    if found is None:
        raise RuntimeError(f"{file} is missing although {package} is installed")
    return found


def _newest(pattern: str) -> Path | None:
    def version(path: Path) -> list[int]:
        return [int(number) for number in "".join(c if c.isdigit() else " " for c in path.name).split()]

    return max(Path("/").glob(pattern.lstrip("/")), key=version, default=None)
