"""A patch that somebody wants tested becomes a commit. It is foreign text: nothing of it is ever written to a file.

git applies it to an index of its own, thrown away afterwards; there is no work tree that a path could lead out of.
What came of it is then looked at, whatever the patch said of itself.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from bisectbot.errors import UserError
from bisectbot.source.git import Git, GitError, is_sha, readable
from bisectbot.source.history import facts
from bisectbot.source.merged import PATCHES

LARGEST = 1_000_000
"""Bytes of a patch."""
_MOST_FILES = 500
_HUNK = re.compile(rb"^(?:diff --git |--- \S)", re.MULTILINE)
_BINARY = re.compile(rb"^(?:GIT binary patch|Binary files .* differ)\r?$", re.MULTILINE)
_REGULAR = {"100644", "100755", "000000"}


def patched(git: Git, base: str, patch: bytes) -> str:
    """The commit ``base`` (40 hex digits) with ``patch`` on top, kept under refs/bisectbot/patch/.

    The same patch on the same commit gives the same id. Raises UserError in one line: no patch, git's own words for
    one that does not apply, or what is refused of it (binary hunks, symbolic links, submodules, ``.git``).
    """
    assert is_sha(base), base
    if len(patch) > LARGEST:
        raise UserError(f"the patch has {len(patch)} bytes; at most {LARGEST} are taken")
    if not _HUNK.search(patch):
        raise UserError("no patch found in your message")
    if _BINARY.search(patch):
        raise UserError("the patch has a binary hunk, which is refused; send text")
    [info] = facts(git, [base])
    who = {"NAME": "bisectbot", "EMAIL": "bisectbot@localhost", "DATE": f"@{info.commit_date} +0000"}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    with tempfile.TemporaryDirectory(prefix="bisectbot-patch-") as folder:
        writer = Git(git.path, env={**env, "GIT_INDEX_FILE": str(Path(folder) / "index")})
        writer.run("read-tree", base)
        try:
            writer.run_bytes("apply", "--cached", "--whitespace=nowarn", "-", input=patch.replace(b"\r\n", b"\n"))
        except GitError as failure:
            raise UserError(f"the patch does not apply to {info.short}: {_complaint(failure)}") from None
        tree = writer.run("write-tree")
        _refuse(git, base, tree)
        message = f"A patch to be measured, on top of {base}\n\nMade by bisectbot from a mail; nobody has merged it.\n"
        sha = writer.run("commit-tree", tree, "-p", base, input=message)
    git.run("update-ref", PATCHES + sha, sha)
    return sha


def _complaint(failure: GitError) -> str:
    lines = [line.removeprefix("error: ") for line in readable(failure.stderr).splitlines() if line.strip()]
    return "; ".join(lines[:3]) or "git gives no reason"


def _refuse(git: Git, base: str, tree: str) -> None:
    """Look at every path that the patch changed."""
    out = git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", base, tree)
    words = out.split("\0")[:-1]
    changes = list(zip(words[::2], words[1::2], strict=True))
    if not changes:
        raise UserError("the patch changes nothing")
    if len(changes) > _MOST_FILES:
        raise UserError(f"the patch changes {len(changes)} files; at most {_MOST_FILES} are taken")
    for fields, path in changes:
        modes = set(fields.removeprefix(":").split()[:2])
        if modes & {"120000"}:
            raise UserError(f"the patch touches the symbolic link {readable(path)!r}, which is refused")
        if not modes <= _REGULAR:
            raise UserError(f"the patch touches {readable(path)!r}, which is no ordinary file (a submodule?): refused")
        if any(
            part.casefold().rstrip(" .") in {".git", ""} or part.casefold().startswith("git~") or "\\" in part
            for part in path.split("/")
        ):
            raise UserError(f"the patch touches {readable(path)!r}, which is refused")
        if path in {".gitmodules", ".gitattributes"} or path.endswith(("/.gitmodules", "/.gitattributes")):
            raise UserError(f"the patch touches {readable(path)!r}, which tells git what to do: refused")
