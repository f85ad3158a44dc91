"""From what the script left to one raw log per monitor, in LKP's layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from workers.monitors.base import Monitor, Sampled
from workers.monitors.script import SAMPLES

_NODE = re.compile(r"/node(\d+)/")


def apart(results: Mapping[str, Path], monitors: Iterable[Monitor], folder: Path) -> dict[str, Path]:
    """The raw logs by name, those that were sampled together taken apart into files of ``folder``; empty ones, and
    hidden ones that are somebody's own, are left out."""
    logs = {name: path for name, path in results.items() if not name.startswith(".") and path.stat().st_size}
    if SAMPLES in results:
        logs |= _taken_apart(results[SAMPLES], [each for each in monitors if isinstance(each, Sampled)], folder)
    return logs


def _taken_apart(samples: Path, sampled: list[Sampled], folder: Path) -> dict[str, Path]:
    patterns = [(each, re.compile(re.escape(each.files).replace(r"\*", r"[^/]*"))) for each in sampled]
    owners: dict[str, Sampled | None] = {}
    logs: dict[str, Path] = {}
    last: dict[str, tuple[str, str]] = {}
    stamp = ""
    with ExitStack() as opened, samples.open(encoding="utf-8", errors="replace") as lines:
        files: dict[str, TextIO] = {}
        for line in lines:
            if line.startswith("time: "):
                stamp = line
                continue
            path, colon, text = line.partition(":")
            if not colon:
                continue
            if path not in owners:
                owners[path] = next((each for each, pattern in patterns if pattern.fullmatch(path)), None)
            owner = owners[path]
            if owner is None:
                continue
            if owner.name not in files:
                logs[owner.name] = folder / owner.name
                files[owner.name] = opened.enter_context(logs[owner.name].open("w", encoding="utf-8"))
            out, (time, node) = files[owner.name], last.get(owner.name, ("", ""))
            if time != stamp:
                out.write(stamp)
                node = ""
            if owner.nodes and node != path:
                number = _NODE.search(path)
                out.write(f"node: {number[1] if number else 0}\n")
            out.write(text)
            last[owner.name] = (stamp, path)
    return logs
