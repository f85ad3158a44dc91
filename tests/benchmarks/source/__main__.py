"""What a day of linux-next costs: to fetch, to list what is new, to make a line of it, to plan.

    python -m tests.benchmarks.source [--quick] [COMMITS ...]

For each size of history a repository is generated, mirrored, and moved on by one day. Seconds are wall clock;
in brackets CPU seconds of this process and its children.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bisectbot.bisect import CommitGraph, Search
from bisectbot.source.git import Git
from bisectbot.source.history import commits
from bisectbot.source.mirror import Mirror
from bisectbot.source.rebuilt import news
from bisectbot.source.replay import Kind, replay
from tests.source.fastimport import FastImport
from tests.source.linux_next import LinuxNext

QUICK = (10_000,)
FULL = (10_000, 100_000, 1_000_000)
TREES = tuple(f"tree{number}" for number in range(12))
QUILTS = ("mm", "misc")

Answer = TypeVar("Answer")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 commits only, and 2,000 candidates")
    parser.add_argument("commits", nargs="*", type=int, help="sizes instead of 10^4, 10^5, 10^6")
    options = parser.parse_args()
    sizes = tuple(options.commits) or (QUICK if options.quick else FULL)
    with tempfile.TemporaryDirectory(prefix="bisectbot-source-") as folder:
        _arrays(Path(folder), 2_000 if options.quick else 15_000)  # first: its peak memory is not the generator's
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="bisectbot-source-") as folder:
            _day(Path(folder), size)


def _day(folder: Path, size: int) -> None:
    print(f"\nlinux-next on {size:,} commits: {len(TREES)} trees and {len(QUILTS)} quilt trees")
    tree = _timed("generate it", lambda: LinuxNext(folder / "up.git", trees=TREES, quilts=QUILTS, base=size, files=40))
    old = _timed("  its first day, 20 patches a tree", lambda: tree.day(new=20))
    mirror = Mirror(folder / "mirror.git")
    mirror.add_tree("next", str(folder / "up.git"))
    _timed("first fetch", lambda: mirror.fetch("next"))
    _timed("maintenance (gc, commit graph)", mirror.maintain)
    new = _timed("  the next day, 5 patches a tree", lambda: tree.day(new=5, amended=2, dropped=1))
    _timed("fetch a day", lambda: mirror.fetch("next"))
    _timed("fetch when nothing is new", lambda: mirror.fetch("next"))
    git = mirror.git
    found = _timed("list what is new", lambda: news(git, old.head, new.head))
    line = _timed("make the replay line", lambda: replay(git, old.head, new.head))
    history = _timed("commits between the days", lambda: commits(git, old.head, new.head))
    planned = _timed(
        "  plan on the raw history", lambda: _plan(CommitGraph(history.parents), history.good, history.bad)
    )
    _timed("  plan on the line", lambda: _plan(CommitGraph.linear(len(line.shas)), 0, len(line.steps)))
    assert planned > 0
    print("the same asked of plain git")
    _timed("  git rev-list good..bad", lambda: git.run("rev-list", f"{old.head}..{new.head}"))
    _timed("  git log good..bad, all fields", lambda: git.run("log", "--format=fuller", f"{old.head}..{new.head}"))
    _timed("  git rev-list --bisect good..bad", lambda: git.run("rev-list", "--bisect", f"{old.head}..{new.head}"))
    span = ("--cherry-pick", "--right-only", "--no-merges", "--format=%H", f"{old.head}...{new.head}")
    _timed("  git log --cherry-pick good...bad", lambda: git.run("log", *span))
    _timed("  git rev-list --count bad", lambda: git.run("rev-list", "--count", new.head))
    rest = [step for step in line.steps if step.kind is Kind.REST]
    mainline = git.run("rev-list", "--count", f"{git.run('merge-base', old.head, new.head)}..{new.head}")
    print("candidates of the day's bisection")
    print(f"  commits since the merge base {mainline:>8}")
    print(f"  new by commit id             {found.commits:>8}")
    print(f"  new, changed or gone         {len(found.come) + len(found.gone):>8}")
    print(f"  steps of the replay line     {len(line.steps):>8}   ({len(rest)} of them a rest, "
          f"{sum(len(step.changes) for step in rest)} changes in it)")  # fmt: skip


def _plan(graph: CommitGraph, good: int, bad: int) -> int:
    search = Search(graph, good=[good], bad=bad, effect=-5.0)
    for end, level in ((good, 100.0), (bad, 95.0)):
        for boot in range(2):
            search.observe(end, [level - 0.2, level, level + 0.2], host="a", boot=(end, boot))
    return len(search.plan(idle=1))


def _arrays(folder: Path, count: int) -> None:
    print(f"\n{count:,} candidates")
    repo = FastImport(folder / "wide.git")
    tip = first = repo.commit("root", files={"a": "0\n"})
    made = 1
    while made < count:
        fork = tip
        for _ in range(9):
            made += 1
            fork = repo.commit(f"c{made}", [fork], {f"d{made % 50}/f{made % 7}": f"{made}\n"})
        made += 1
        tip = repo.commit(f"Merge {made}", [tip, fork], {f"d{made % 50}/m": f"{made}\n"})
    repo.write()
    git = Git(folder / "wide.git")
    good, bad = repo.sha(first), repo.sha(tip)
    _timed("  git rev-list --topo-order --parents alone",
           lambda: git.run_bytes("rev-list", "--topo-order", "--parents", "--boundary", bad, f"^{good}"))  # fmt: skip
    history = _timed("history.commits, git included", lambda: commits(git, good, bad))
    graph = _timed("CommitGraph", lambda: CommitGraph(history.parents))
    _timed("ancestor set of bad", lambda: graph.contains(history.bad))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process, numpy and scipy included: {peak:.0f} MB")


def _timed(what: str, work: Callable[[], Answer]) -> Answer:
    wall, cpu = time.perf_counter(), _cpu()
    answer = work()
    print(f"{what:<42} {time.perf_counter() - wall:8.2f} s  ({_cpu() - cpu:.2f})")
    sys.stdout.flush()
    return answer


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
