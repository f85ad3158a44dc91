"""A foreign patch becomes a commit, or one line says why not; nothing of it ever reaches a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.errors import UserError
from bisectbot.source.git import Git
from bisectbot.source.merged import is_ours
from bisectbot.source.patch import patched

GOOD = b"""Subject: [PATCH] make it faster

This helps.
---
 level | 2 +-

diff --git a/level b/level
--- a/level
+++ b/level
@@ -1 +1 @@
-90
+100
--
2.39.2
"""


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Git, str]:
    who = {f"GIT_{role}_{key}": "a@b" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    git = Git(tmp_path, env={**who, "GIT_AUTHOR_DATE": "@1700000000 +0000", "GIT_COMMITTER_DATE": "@1700000000 +0000"})
    git.init_bare()
    blob = git.run("hash-object", "-w", "--stdin", input="90\n")
    link = git.run("hash-object", "-w", "--stdin", input="/etc/passwd")
    tree = git.run("mktree", input=f"100644 blob {blob}\tlevel\n120000 blob {link}\tlink\n")
    return git, git.run("commit-tree", tree, "-m", "base")


def new_file(path: str, mode: str = "100644", text: str = "x") -> bytes:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"
    ).encode()


def test_a_patch_becomes_the_same_commit_each_time(repository: tuple[Git, str]) -> None:
    git, base = repository
    sha = patched(git, base, GOOD)
    assert git.run("show", f"{sha}:level") == "100"
    assert git.run("rev-parse", f"{sha}^") == base
    assert patched(git, base, GOOD.replace(b"\n", b"\r\n")) == sha
    assert is_ours(git, sha)
    assert git.run("for-each-ref", "--format=%(objectname)", f"refs/bisectbot/patch/{sha}") == sha
    assert {path.name for path in git.path.iterdir()} & {"index", "level", "link"} == set()


SYMLINK_THEN_WRITE = (
    b"diff --git a/dir b/dir\nnew file mode 120000\n--- /dev/null\n+++ b/dir\n@@ -0,0 +1 @@\n+/tmp\n"
    b"\\ No newline at end of file\n" + new_file("dir/owned")
)
SUBMODULE = (
    b"diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n"
    b"+Subproject commit 1111111111111111111111111111111111111111\n"
)
BINARY = b"diff --git a/level b/level\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
RENAME_OUT = b"diff --git a/level b/../level\nsimilarity index 100%\nrename from level\nrename to ../level\n"
MODE_TO_LINK = b"diff --git a/level b/level\nold mode 100644\nnew mode 120000\n"
EDIT_LINK = (
    b"diff --git a/link b/link\nindex 1..2 120000\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-/etc/passwd\n"
    b"\\ No newline at end of file\n+/etc/shadow\n\\ No newline at end of file\n"
)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (b"please test my tree", "no patch found in your message"),
        (b"", "no patch found"),
        (GOOD.replace(b"-90", b"-91"), 'does not apply to .*"base".*patch failed: level:1'),
        (GOOD.replace(b"level", b"missing"), "missing: does not exist in index"),
        (new_file("../outside"), "invalid path '../outside'"),
        (new_file("a/../../outside"), "invalid path"),
        (new_file("/etc/cron.d/x"), "refused|does not apply"),
        (new_file(".git/hooks/post-checkout"), "invalid path '.git/hooks"),
        (new_file("sub/.git/config"), "invalid path"),
        (new_file(".GIT/config"), "refused|invalid path"),
        (new_file("git~1/config"), "refused|invalid path"),
        (new_file(".git./config"), "refused|invalid path"),
        (new_file(".gitmodules"), "tells git what to do"),
        (new_file("deep/.gitattributes", text="* filter=x"), "tells git what to do"),
        (new_file("link2", mode="120000"), "symbolic link 'link2'"),
        (new_file("back\\slash"), "refused|does not apply"),
        (SYMLINK_THEN_WRITE, "symbolic link|beyond a symbolic link|does not apply"),
        (SUBMODULE, "no ordinary file|does not apply"),
        (BINARY, "binary hunk"),
        (RENAME_OUT, "does not apply"),
        (MODE_TO_LINK, "symbolic link|does not apply"),
        (EDIT_LINK, "symbolic link 'link'"),
        (b"diff --git a/level b/level\n" + b"x" * 2_000_000, "at most 1000000"),
        (b"diff --git a/level b/level\n", "does not apply|changes nothing"),
        (b"--- \x00\xff\n+++ \x00\n@@ -1 +1 @@\n-\xfe\n+\x00\n", "does not apply|changes nothing"),
        (b"".join(new_file(f"f{number}") for number in range(501)), "at most 500"),
    ],
)
def test_what_is_refused_is_told_in_one_line(repository: tuple[Git, str], patch: bytes, said: str) -> None:
    git, base = repository
    before = git.run("for-each-ref")
    with pytest.raises(UserError, match=said) as caught:
        patched(git, base, patch)
    assert "\n" not in str(caught.value)
    assert git.run("for-each-ref") == before


@pytest.mark.parametrize("path", ["README", "drivers/net/x.c", "a b.c", "ü.c"])
def test_ordinary_files_are_taken(repository: tuple[Git, str], path: str) -> None:
    git, base = repository
    assert git.run("show", f"{patched(git, base, new_file(path))}:{path}") == "x"
