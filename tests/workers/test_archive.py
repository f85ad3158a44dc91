"""Archives: equal content, equal bytes and signature; and what comes out is what went in."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import InfraError
from workers.archive import matching, pack, unpack


def write(root: Path) -> list[str]:
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o700)
    (root / "data").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("bin/tool")
    return ["link", "data", "bin/tool"]


def test_equal_content_gives_equal_bytes_whatever_times_modes_and_order(tmp_path: Path):
    names = write(tmp_path / "a")
    write(tmp_path / "b")
    os.utime(tmp_path / "b" / "data", (1, 1))
    (tmp_path / "b" / "data").chmod(0o600)
    one = pack(tmp_path / "a", names, tmp_path / "1")
    two = pack(tmp_path / "b", reversed(names), tmp_path / "2")
    assert one == two
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "data").write_text("x"),
        lambda root: (root / "bin" / "tool").chmod(0o600),
        lambda root: (root / "data").rename(root / "data2"),
        lambda root: ((root / "link").unlink(), (root / "link").symlink_to("data")),
    ],
)
def test_any_difference_that_matters_changes_the_signature(tmp_path: Path, change: Callable[[Path], object]):
    before = pack(tmp_path / "a", write(tmp_path / "a"), tmp_path / "1")
    change(tmp_path / "a")
    assert pack(tmp_path / "a", matching(tmp_path / "a", ["**/*"]), tmp_path / "1") != before


def test_unpacked_as_it_was(tmp_path: Path):
    pack(tmp_path / "a", write(tmp_path / "a"), tmp_path / "archive")
    unpack(tmp_path / "archive", tmp_path / "out" / "tree")
    out = tmp_path / "out" / "tree"
    assert (out / "data").read_bytes() == bytes(range(256))
    assert os.access(out / "bin" / "tool", os.X_OK)
    assert (out / "data").stat().st_mode & 0o777 == 0o644
    assert (out / "link").readlink() == Path("bin/tool")
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["tree"]


@given(cut=st.integers(0, 300), seed=st.binary(max_size=64))
def test_damage_is_noticed_and_leaves_nothing(tmp_path_factory: pytest.TempPathFactory, cut: int, seed: bytes):
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "f").write_bytes(os.urandom(1000))
    pack(folder, ["f"], folder / "archive")
    whole = (folder / "archive").read_bytes()
    (folder / "archive").write_bytes(whole[:cut] + seed)
    with pytest.raises(InfraError):
        unpack(folder / "archive", folder / "out")
    assert not (folder / "out").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil"])
def test_nothing_is_written_outside(tmp_path: Path, name: str):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    (tmp_path / "archive").write_bytes(zstandard.compress(buffer.getvalue()))
    with pytest.raises(InfraError, match="outside of itself"):
        unpack(tmp_path / "archive", tmp_path / "deep" / "out")
    assert not list(tmp_path.rglob("evil"))


def test_patterns_find_files_in_folders(tmp_path: Path):
    write(tmp_path)
    assert sorted(matching(tmp_path, ["bin", "d*"])) == ["bin/tool", "data"]
    assert sorted(matching(tmp_path, ["**/tool", "link"])) == ["bin/tool", "link"]
