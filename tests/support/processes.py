"""Servers of others that tests start."""

from __future__ import annotations

import subprocess


def end(process: subprocess.Popen[bytes], seconds: float = 20.0) -> None:
    """Ask a server to end, and kill one that does not listen: how it ends is not what any test is about."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
