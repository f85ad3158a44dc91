from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from bisectbot.source.git import Git, GitError, check_name, check_url, decode, encode, readable
from tests.source.fastimport import FastImport


@pytest.fixture
def git(upstream: FastImport) -> Git:
    first = upstream.commit("first", files={"a": "1\n"})
    second = upstream.commit("second", [first], {"a": "2\n"})
    upstream.ref("refs/heads/master", second)
    upstream.write()
    return Git(upstream.path)


def test_resolve_gives_the_commit_behind_a_tag(git: Git) -> None:
    tip = git.run("rev-parse", "master")
    git.run("-c", "user.name=t", "-c", "user.email=t@t", "tag", "-a", "-m", "annotated", "v1", "master")
    assert git.resolve("v1") == git.resolve("master") == git.resolve(tip[:12]) == tip


@pytest.mark.parametrize(
    ("rev", "word"),
    [
        ("--upload-pack=touch x", "no revision"),
        ("-h", "no revision"),
        ("", "no revision"),
        ("nowhere", "names no commit"),
        ("f" * 40, "names no commit"),
        ("master:a", "names no commit"),
        ("a\nb", "no revision"),
    ],
)
def test_a_bad_revision_is_one_line_for_the_asker(git: Git, rev: str, word: str) -> None:
    with pytest.raises(UserError, match=word) as caught:
        git.resolve(rev)
    assert "\n" not in str(caught.value)


def test_a_short_id_of_two_objects_is_called_ambiguous(upstream: FastImport) -> None:
    for number in range(1000):
        upstream.commit(f"c{number}")
    upstream.write()
    prefixes = [upstream.sha(number)[:4] for number in range(1, 1001)]
    shared = next(prefix for prefix in prefixes if prefixes.count(prefix) > 1)
    with pytest.raises(UserError, match="ambiguous"):
        Git(upstream.path).resolve(shared)


def test_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no git repository"):
        Git(tmp_path).resolve("HEAD")
    with pytest.raises(InfraError, match="no directory"):
        Git(tmp_path / "gone").run("status")


def test_the_caller_s_git_environment_and_configuration_do_not_count(
    git: Git, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\tabbrev = 5\n[alias]\n\tmine = log\n[log]\n\tdate = bogus\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    assert git.run("log", "--format=%s") == "second\nfirst"
    assert git.run("config", "--get", "core.hooksPath") == os.devnull
    with pytest.raises(GitError):
        git.run("mine")


def test_configuration_given_is_used_and_not_on_the_command_line(git: Git) -> None:
    told = Git(git.path, config={"http.extraHeader": "Authorization: secret"})
    assert told.run("config", "--get", "http.extraHeader") == "Authorization: secret"


def test_hooks_of_a_repository_never_run(git: Git) -> None:
    hook = git.path / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    git.run("update-ref", "refs/heads/other", "master")
    assert not (git.path / "ran").exists()


def _children() -> list[str]:
    listing = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "comm="], check=False, capture_output=True)
    return [name for name in listing.stdout.decode().split() if name.startswith("git")]


def _open_files() -> set[str]:
    """What this process holds open; a set, since the collector may close another test's files meanwhile."""
    links = Path("/proc/self/fd").iterdir()
    return {str(link.readlink()) for link in links if link.is_symlink()}


def test_a_command_without_end_is_killed_with_its_children(git: Git) -> None:
    started = time.monotonic()
    with pytest.raises(InfraError, match=r"no end after 0\.3 s"):
        git.run("-c", "alias.wait=!sleep 987 & sleep 987", "wait", timeout=0.3)
    assert time.monotonic() - started < 60
    assert not _children()
    listing = subprocess.run(["ps", "-eo", "args="], check=True, capture_output=True).stdout
    assert b"sleep 987" not in listing


def test_what_a_command_prints_is_streamed_and_what_it_is_given_read(git: Git) -> None:
    echo = "alias.echo=!cat; echo done"
    given = b"x" * 1_000_000
    chunks = list(git.stream("-c", echo, "echo", input=given))
    assert b"".join(chunks) == given + b"done\n"
    assert max(map(len, chunks)) <= 65536
    with pytest.raises(GitError, match="exit status 3"):
        list(git.stream("-c", "alias.fail=!exit 3", "fail"))
    with pytest.raises(GitError, match=r"silent for 0\.2 s"):
        list(git.stream("-c", "alias.wait=!sleep 985", "wait", silence=0.2))
    assert not _children()


def test_a_reader_that_ends_early_ends_the_command(git: Git) -> None:
    stream = git.stream("-c", "alias.endless=!yes", "endless")
    assert next(stream).startswith(b"y\n")
    stream.close()
    assert not _children()


def test_a_silent_command_is_killed_a_talking_one_is_not(git: Git) -> None:
    talking = "alias.talk=!for i in 1 2 3 4 5 6; do echo $i >&2; sleep 0.3; done"
    assert git.watched("-c", talking, "talk", silence=1.5).split() == list("123456")
    with pytest.raises(InfraError, match="silent for"):
        git.watched("-c", "alias.wait=!sleep 986", "wait", silence=0.2)
    assert not _children()


def test_fifty_commands_leave_nothing_behind(git: Git) -> None:
    before = _open_files()
    for _ in range(50):
        git.run("log", "--format=%H")
    assert not _children()
    assert _open_files() <= before


def test_a_pipe_takes_more_than_a_pipe_buffer_on_every_side(git: Git) -> None:
    given = b"x" * 3_000_000
    assert git.pipe(["stripspace"], ["stripspace"], input=given).strip() == given
    with pytest.raises(GitError, match="cat-file"):
        git.pipe(["cat-file", "blob", "nowhere"], ["stripspace"])
    with pytest.raises(GitError, match="cat-file"):
        git.pipe(["stripspace"], ["cat-file", "blob", "nowhere"], input=given)


def test_wrong_usage_is_a_bug_and_crashes(git: Git) -> None:
    with pytest.raises(RuntimeError, match="unknown option"):
        git.run("cat-file", "--bogus")


def test_an_answer_of_yes_or_no(git: Git) -> None:
    assert git.ok("merge-base", "--is-ancestor", "master~1", "master")
    assert not git.ok("merge-base", "--is-ancestor", "master", "master~1")
    with pytest.raises(GitError):
        git.ok("merge-base", "--is-ancestor", "nowhere", "master")


@pytest.mark.parametrize(
    "url", ["-uwhatever", "--upload-pack=x", "ext::sh -c true", "fd::3", "ext://x", "FTP://x", "", "a\nb", "x\0y"]
)
def test_an_address_that_could_run_something_is_refused(url: str) -> None:
    with pytest.raises(UserError) as caught:
        check_url(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://a/b.git", "ssh://h/p", "git://h/p", "host:path", "/srv/x.git", "../x", "C"])
def test_an_ordinary_address_is_taken(url: str) -> None:
    assert check_url(url) == url


def test_git_itself_refuses_what_slips_through(git: Git) -> None:
    with pytest.raises(GitError, match="not allowed"):
        git.run("fetch", "ext::touch slipped", "master")
    assert not (git.path / "slipped").exists()


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "x.lock", "/x", "x/", "a//b", "", "a\nb", "@{1}", ".x", "a/.b"])
def test_a_name_that_is_no_ref_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="branch"):
        check_name(name, "branch")


def test_names_that_git_takes_are_taken_by_both(git: Git) -> None:
    for name in ("master", "for-next/fixes", "x.y", "v6.1-rc1", "ä"):
        assert check_name(name, "branch") == name
        git.run("check-ref-format", f"refs/heads/{name}")


def test_every_byte_survives_decoding_and_people_see_none_of_the_bad_ones() -> None:
    raw = bytes(range(256)) + "schön\r\n".encode()
    assert encode(decode(raw)) == raw
    shown = readable(decode(raw))
    shown.encode("utf-8")
    assert "schön\n" in shown
    assert not set(shown) & set(map(chr, [0, 7, 27, 127, 0x9B]))
