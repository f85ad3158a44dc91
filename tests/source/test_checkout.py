from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from bisectbot.source.git import PUBLISHED, Checkout, Git
from tests.source.fastimport import FastImport


@pytest.fixture
def commits(upstream: FastImport) -> list[str]:
    """Three published commits of a server's mirror: a, then a and b, then b alone."""
    first = upstream.commit("first", files={"a": "1\n", "dir/x": "x\n"})
    second = upstream.commit("second", [first], {"b": "2\n"})
    third = upstream.commit("third", [second], {"a": None})
    upstream.write()
    shas = [upstream.sha(number) for number in (first, second, third)]
    for sha in shas:
        Git(upstream.path).run("update-ref", PUBLISHED + sha, sha)
    return shas


@pytest.fixture
def builder(tmp_path: Path, upstream: FastImport, commits: list[str]) -> Checkout:
    checkout = Checkout(tmp_path / "builder")
    for sha in commits:
        checkout.fetch(str(upstream.path), sha)
    return checkout


def _names(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()} - {".git"}


def test_each_commit_is_laid_out_in_its_slot(builder: Checkout, commits: list[str]) -> None:
    seen = [_names(builder.tree(sha, "slot-0")) for sha in commits]
    assert seen == [{"a", "dir/x"}, {"a", "b", "dir/x"}, {"b", "dir/x"}]
    assert builder.tree(commits[0], "slot-1") != builder.tree(commits[1], "slot-0")
    assert _names(builder.home / "slot-1") == {"a", "dir/x"}


def test_what_a_build_left_behind_is_gone_and_time_stamps_stay(builder: Checkout, commits: list[str]) -> None:
    tree = builder.tree(commits[0], "slot-0")
    before = (tree / "dir/x").stat().st_mtime_ns
    (tree / "a").write_text("edited")
    (tree / "a.o").write_text("object")
    (tree / ".gitignore").write_text("*.o\n")
    Git(tree).run("init", "--quiet", "nested")
    assert _names(builder.tree(commits[1], "slot-0")) == {"a", "b", "dir/x"}
    assert (tree / "a").read_text() == "1\n"
    assert (tree / "dir/x").stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["lock", "index", "git file", "not a tree", "administration", "mirror's lock"])
def test_what_a_killed_builder_left_half_done_is_repaired(builder: Checkout, commits: list[str], damage: str) -> None:
    tree = builder.tree(commits[0], "slot-0")
    administration = builder.git.path / "worktrees" / "slot-0"
    match damage:
        case "lock":
            (administration / "index.lock").touch()
        case "index":
            (administration / "index").write_bytes(b"DIRC junk")
        case "git file":
            (tree / ".git").unlink()
        case "not a tree":
            shutil.rmtree(tree)
            tree.mkdir()
            (tree / "rest").touch()
        case "administration":
            shutil.rmtree(administration)
        case "mirror's lock":
            (builder.git.path / "HEAD.lock").touch()
    assert builder.tree(commits[1], "slot-0") == tree
    assert _names(tree) == {"a", "b", "dir/x"}
    assert Git(tree).run("status", "--porcelain") == ""


def test_a_corrupt_mirror_is_fetched_again(builder: Checkout, commits: list[str], upstream: FastImport) -> None:
    for path in [*builder.git.path.glob("objects/??/*"), *builder.git.path.glob("objects/pack/*.pack")]:
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    fourth = upstream.commit("fourth", [commits[2]], {"c": "c\n"})
    upstream.write()
    sha = upstream.sha(fourth)
    Git(upstream.path).run("update-ref", PUBLISHED + sha, sha)
    builder.fetch(str(upstream.path), sha)
    assert _names(builder.tree(sha, "slot-0")) == {"b", "c", "dir/x"}


def test_objects_found_corrupt_at_checkout_are_fetched_by_the_retry(
    builder: Checkout, commits: list[str], upstream: FastImport
) -> None:
    blob = builder.git.run("rev-parse", f"{commits[1]}:b")
    builder.git.run("repack", "-adq")
    pack = next(builder.git.path.glob("objects/pack/*.pack"))
    pack.chmod(0o644)
    raw = bytearray(pack.read_bytes())
    listing = builder.git.run("verify-pack", "-v", str(pack.with_suffix(".idx")))
    place = next(int(line.split()[-1]) for line in listing.splitlines() if line.startswith(blob))
    raw[place + 2] ^= 0xFF
    pack.write_bytes(raw)
    with pytest.raises(InfraError):
        builder.tree(commits[1], "slot-0")
    builder.fetch(str(upstream.path), commits[1])
    assert _names(builder.tree(commits[1], "slot-0")) == {"a", "b", "dir/x"}


def test_many_fetches_do_not_leave_many_packs(builder: Checkout, commits: list[str], upstream: FastImport) -> None:
    tree = builder.tree(commits[0], "slot-0")
    name = upstream.commit("more", [commits[2]], {"more": "1\n"})
    upstream.write()
    tip = upstream.sha(name)
    for number in range(60):  # a pack of its own each, as a large fetch makes it
        builder.git.run("pack-objects", "--quiet", "objects/pack/pack", input=_one_blob(builder, number))
    Git(upstream.path).run("update-ref", PUBLISHED + tip, tip)
    assert len(list(builder.git.path.glob("objects/pack/*.pack"))) >= 60
    builder.fetch(str(upstream.path), tip)
    assert len(list(builder.git.path.glob("objects/pack/*.pack"))) < 5
    assert _names(builder.tree(commits[1], "slot-0")) == {"a", "b", "dir/x"}
    assert tree.exists()


def _one_blob(builder: Checkout, number: int) -> str:
    return builder.git.run("hash-object", "-w", "--stdin", input=f"blob {number}") + "\n"


def test_a_commit_that_nobody_published_is_trouble_to_be_retried(builder: Checkout, upstream: FastImport) -> None:
    with pytest.raises(InfraError, match="refs/bisectbot/build/0000"):
        builder.fetch(str(upstream.path), "0" * 40)
    with pytest.raises(InfraError, match="nowhere"):
        builder.fetch(str(upstream.path.parent / "nowhere.git"), "1" * 40)


def test_an_address_or_slot_that_is_none_is_refused(builder: Checkout, commits: list[str]) -> None:
    with pytest.raises(UserError, match="repository address"):
        builder.fetch("--upload-pack=touch x", commits[0])
    with pytest.raises(UserError, match="transport"):
        builder.fetch("ext::touch x", commits[0])
    with pytest.raises(UserError, match="slot"):
        builder.tree(commits[0], "../../etc")
