from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from bisectbot.source.git import Git, locked
from bisectbot.source.mirror import Mirror
from tests.source.fastimport import FastImport


@pytest.fixture
def mirror(tmp_path: Path, upstream: FastImport) -> Mirror:
    """A mirror of a tree with the branches master (2 commits) and side (1)."""
    first = upstream.commit("first", files={"a": "1\n"})
    upstream.ref("refs/heads/side", first)
    upstream.ref("refs/heads/master", upstream.commit("second", [first], {"a": "2\n"}))
    upstream.ref("refs/tags/next-20260301", first)
    upstream.write()
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.add_tree("linux", str(upstream.path))
    return mirror


def test_a_first_fetch_and_one_with_nothing_new(mirror: Mirror, upstream: FastImport) -> None:
    shas = upstream.sha
    for _ in range(2):
        got = mirror.fetch("linux")
        assert got.heads == {"master": shas(2), "side": shas(1)}
        assert got.tags == {"next-20260301": shas(1)}
        assert (got.forced, got.vanished, got.repaired) == ((), (), False)
    assert mirror.git.resolve("linux/master") == shas(2)
    assert mirror.trees() == {"linux": str(upstream.path)}


def test_only_the_branches_that_are_asked_for(mirror: Mirror, upstream: FastImport) -> None:
    assert set(mirror.fetch("linux", ["ma*"]).heads) == {"master"}
    assert not mirror.git.has(upstream.sha(2)) or "linux/side" not in mirror.git.run("branch", "-r")
    with pytest.raises(UserError, match="no branch 'nowhere'"):
        mirror.fetch("linux", ["nowhere"])
    with pytest.raises(UserError, match="unknown to the mirror"):
        mirror.fetch("other")


def test_a_forced_push_and_a_vanished_branch_are_told_and_kept_heads_survive(
    mirror: Mirror, upstream: FastImport
) -> None:
    before = mirror.fetch("linux")
    for number, branch in enumerate(("master", "side")):
        mirror.keep("linux", branch, number + 7, before.heads[branch])
    upstream.ref("refs/heads/master", upstream.commit("rebuilt", [1], {"a": "3\n"}))
    upstream.write()
    Git(upstream.path).run("update-ref", "-d", "refs/heads/side")
    Git(upstream.path).run("update-ref", "-d", "refs/tags/next-20260301")
    Git(upstream.path).run("gc", "--prune=now", "--quiet")
    after = mirror.fetch("linux", ["master", "side"])
    assert after.heads == {"master": upstream.sha(3)}
    assert (after.forced, after.vanished) == (("master",), ("side",))
    assert "next-20260301" in after.tags
    mirror.maintain()
    mirror.git.run("gc", "--prune=now", "--quiet")
    assert mirror.kept("linux", "master") == {7: before.heads["master"]}
    assert mirror.git.has(before.heads["master"])
    assert mirror.fetch("linux", ["master"]).vanished == ()


def test_a_branch_may_become_a_folder_of_branches(mirror: Mirror, upstream: FastImport) -> None:
    mirror.keep("linux", "side", 1, mirror.fetch("linux").heads["side"])
    Git(upstream.path).run("update-ref", "-d", "refs/heads/side")
    upstream.ref("refs/heads/side/left", 2)
    upstream.write()
    got = mirror.fetch("linux")
    assert set(got.heads) == {"master", "side/left"}
    mirror.keep("linux", "side/left", 2, got.heads["side/left"])
    assert mirror.kept("linux", "side") == {1: upstream.sha(1)}
    assert mirror.kept("linux", "side/left") == {2: upstream.sha(2)}


def test_two_trees_share_the_objects(mirror: Mirror, upstream: FastImport, tmp_path: Path) -> None:
    other = FastImport(tmp_path / "other.git")
    other.ref("refs/heads/master", other.commit("another", files={"b": "b"}))
    other.write()
    mirror.add_tree("stable", str(other.path))
    assert mirror.fetch("stable").heads == {"master": other.sha(1)}
    assert mirror.fetch("linux").heads["master"] == upstream.sha(2)


def test_an_upstream_that_is_gone_is_trouble_and_nothing_is_lost(
    mirror: Mirror, upstream: FastImport, tmp_path: Path
) -> None:
    head = mirror.fetch("linux").heads["master"]
    upstream.path.rename(tmp_path / "moved.git")
    with pytest.raises(InfraError, match="ls-remote"):
        mirror.fetch("linux")
    assert mirror.git.resolve("linux/master") == head
    mirror.add_tree("linux", str(tmp_path / "moved.git"))
    assert mirror.fetch("linux").heads["master"] == head


@pytest.mark.usefixtures("mirror")
def test_a_shallow_upstream_is_refused_by_name(upstream: FastImport, tmp_path: Path) -> None:
    Git(tmp_path).run("clone", "-q", "--bare", "--depth=1", upstream.path.as_uri(), "shallow.git")
    mirror = Mirror(tmp_path / "empty.git")
    mirror.add_tree("short", str(tmp_path / "shallow.git"))
    with pytest.raises(UserError, match="shallow"):
        mirror.fetch("short")


def test_a_partial_mirror_fetches_contents_when_they_are_asked_for(
    mirror: Mirror, upstream: FastImport, tmp_path: Path
) -> None:
    Git(upstream.path).run("config", "uploadpack.allowFilter", "true")
    Git(upstream.path).run("config", "uploadpack.allowAnySHA1InWant", "true")
    partial = Mirror(tmp_path / "partial.git")
    partial.add_tree("linux", upstream.path.as_uri(), partial=True)
    head = partial.fetch("linux").heads["master"]
    missing = partial.git.run("rev-list", "--objects", "--missing=print", head)
    assert [line for line in missing.splitlines() if line.startswith("?")]
    assert partial.git.run("cat-file", "blob", f"{head}:a") == "2"
    partial.maintain()
    assert partial.fetch("linux").heads["master"] == head


@pytest.mark.parametrize(("name", "url"), [("-x", "/a"), ("a/b", "/a"), ("", "/a"), ("a", "-u"), ("a", "ext::x")])
def test_a_tree_that_could_harm_is_refused(mirror: Mirror, name: str, url: str) -> None:
    with pytest.raises(UserError):
        mirror.add_tree(name, url)


def test_fetches_wait_for_each_other(mirror: Mirror) -> None:
    done = threading.Event()
    with locked(mirror.path.with_name("mirror.git.lock")):

        def fetch() -> None:
            mirror.fetch("linux")
            done.set()

        thread = threading.Thread(target=fetch)
        thread.start()
        assert not done.wait(0.3)
    thread.join()
    assert done.is_set()


def test_a_published_commit_can_be_withdrawn(mirror: Mirror, upstream: FastImport) -> None:
    mirror.fetch("linux")
    assert mirror.publish(upstream.sha(1)) == f"refs/bisectbot/build/{upstream.sha(1)}"
    mirror.withdraw(upstream.sha(1))
    mirror.withdraw(upstream.sha(1))
    assert mirror.git.run("for-each-ref", "refs/bisectbot") == ""


def _cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_corrupt_pack_costs_nothing_but_time(mirror: Mirror, upstream: FastImport) -> None:
    """Upstream has since dropped a head that we keep; its objects lie in another pack than the damaged one."""
    old = mirror.fetch("linux").heads["master"]
    mirror.git.run("repack", "-adq")
    mirror.keep("linux", "master", 1, old)
    tip = upstream.commit("third", [2], {"b": "b" * 5000})
    upstream.ref("refs/heads/master", tip)
    upstream.write()
    dropped = mirror.fetch("linux").heads["master"]
    mirror.keep("linux", "master", 2, dropped)
    mirror.git.run("repack", "-dq")
    upstream.ref("refs/heads/master", upstream.commit("rebuilt", [2], {"a": "4\n"}))
    upstream.write()
    Git(upstream.path).run("gc", "--prune=now", "--quiet")
    assert not Git(upstream.path).has(dropped)
    for pack in mirror.path.glob("objects/pack/*.pack"):
        if old in mirror.git.run("verify-pack", "-v", str(pack.with_suffix(".idx"))):
            _cut(pack)
    got = mirror.fetch("linux")
    assert got.repaired
    assert got.lost == ()
    assert got.heads["master"] == upstream.sha(4)
    assert mirror.kept("linux", "master") == {1: old, 2: dropped}
    mirror.git.run("fsck", "--full", "--strict")
    assert not mirror.path.with_name("mirror.git.damaged").exists()


def test_what_is_lost_for_good_is_named_and_the_wreck_kept(mirror: Mirror, upstream: FastImport) -> None:
    tip = upstream.commit("third", [2], {"b": "b" * 5000})
    upstream.ref("refs/heads/master", tip)
    upstream.write()
    mirror.keep("linux", "master", 1, mirror.fetch("linux").heads["master"])
    upstream.ref("refs/heads/master", 2)
    upstream.write()
    Git(upstream.path).run("gc", "--prune=now", "--quiet")
    mirror.git.run("repack", "-adq")
    for pack in mirror.path.glob("objects/pack/*.pack"):
        _cut(pack)
    assert mirror.repair() == ("refs/bisectbot/head/linux/master/@1", "refs/remotes/linux/master")
    assert mirror.path.with_name("mirror.git.damaged").exists()
    assert mirror.fetch("linux").heads["master"] == upstream.sha(2)
    mirror.git.run("fsck", "--full")


def test_killed_between_the_renames_of_a_repair(mirror: Mirror) -> None:
    head = mirror.fetch("linux").heads["master"]
    mirror.path.rename(mirror.path.with_name("mirror.git.damaged"))
    mirror.add_tree("linux", mirror.path.with_name("upstream.git").as_posix())
    assert mirror.git.resolve("linux/master") == head
