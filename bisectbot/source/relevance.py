"""How likely each commit can have changed what was measured, before anything is measured: the search's prior.

A commit that touches no file that was compiled cannot have changed the image; yet dependency files may be
incomplete, so it comes last in line and is never dropped. That takes proof: an equal build signature. Files of
functions that moved in a profile raise the commits that touch them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from bisectbot.source.git import Git, GitError, decode

UNCOMPILED = 0.01  # of an ordinary commit's weight: in a hundred such commits, one that was wrongly called harmless
RAISED = 10.0  # a profile's hint is worth about three halvings of the range

# Names of files that steer a build without being in its dependency files.
_STEERING = re.compile(r"(^|/)(Kconfig[^/]*|Makefile[^/]*|Kbuild[^/]*|[^/]+\.(lds|lds\.S|mk|config))$")
_SUFFIX = re.compile(r"\.(isra|constprop|part|cold|llvm)(\.\d+)*.*$")
_SYSCALL = re.compile(r"^(?:__(?:x64|ia32|arm64|s390x|riscv|powerpc)_)?(?:__do_|__se_)?sys_(\w+)$")


def touched_files(git: Git, shas: Sequence[str]) -> dict[str, frozenset[str]]:
    """The files that each commit changes, old and new names. Merges and empty commits are left out."""
    given = "".join(f"{sha}\n" for sha in shas).encode()
    if not given:
        return {}
    options = ("--stdin", "--root", "-r", "--no-renames", "--name-only", "-z", "--format=%x01%H")
    out = decode(git.run_bytes("diff-tree", *options, timeout=3600.0, input=given))
    rows = (record.split("\0") for record in out.split("\x01")[1:])
    return {row[0]: frozenset(path.lstrip("\n") for path in row[1:] if path.strip("\n")) for row in rows}


def prior(
    git: Git,
    shas: Sequence[str],
    compiled: Collection[str],
    *,
    moved: Collection[str] = (),
    steering: Collection[str] = (),
) -> list[float]:
    """A weight above 0 for each commit, in their order; only ratios matter.

    ``compiled``: the source files of both ends' builds (union), paths from the top of the tree; empty: nobody
    knows, every commit weighs alike. ``moved``: files of functions that moved in a profile. ``steering``: folders
    whose files steer the build (``scripts/``). Merges weigh as an ordinary commit.
    """
    files = touched_files(git, shas)
    built, hot, folders = frozenset(compiled), frozenset(moved), tuple(steering)

    def weight(sha: str) -> float:
        touched = files.get(sha)
        if touched is None:
            return 1.0
        if not touched.isdisjoint(hot):
            return RAISED
        if not built or not touched.isdisjoint(built):
            return 1.0
        steers = any(_STEERING.search(path) or (folders and path.startswith(folders)) for path in touched)
        return 1.0 if steers else UNCOMPILED

    return [weight(sha) for sha in shas]


def files_of_functions(
    git: Git, commit: str, functions: Iterable[str], compiled: Collection[str] = ()
) -> frozenset[str]:
    """The C files (of ``compiled``, if given) that seem to define any of the functions, at a commit.

    A heuristic: a line that begins at its first column and holds the name before a parenthesis, as kernel style
    demands; for a system call its SYSCALL_DEFINE. Compiler suffixes (``.isra.0``) are ignored.
    """
    names = {_SUFFIX.sub("", name) for name in functions}
    patterns = [_pattern(name) for name in sorted(names) if re.fullmatch(r"\w+", name)]
    if not patterns:
        return frozenset()
    words = [word for pattern in patterns for word in ("-e", pattern)]
    try:
        out = git.run("grep", "-z", "-l", "-E", *words, git.resolve(commit), "--", "*.c", "*.h", "*.S")
    except GitError as failure:
        if failure.status == 1:  # nothing found
            return frozenset()
        raise
    found = {path.split(":", 1)[1] for path in out.split("\0") if path}
    sources = {path for path in found if PurePosixPath(path).suffix != ".h"} or found
    return frozenset(sources & set(compiled) if compiled else sources)


def _pattern(name: str) -> str:
    call = _SYSCALL.match(name)
    if call:
        return rf"^(COMPAT_)?SYSCALL_DEFINE[0-6]\({call[1]}[,)]"
    return rf"^([A-Za-z_].*[ *])?{name}\("
