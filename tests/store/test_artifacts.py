"""Files by content: whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from bisectbot.store.artifacts import Artifacts


def test_content_comes_back_under_its_digest(tmp_path: Path) -> None:
    store = Artifacts(tmp_path)
    sha256 = store.put([b"raw ", b"log"])
    assert sha256 == hashlib.sha256(b"raw log").hexdigest()
    assert store.put([b"raw log"], expected=sha256) == sha256
    assert store.read(sha256) == b"raw log"


def test_damaged_content_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = Artifacts(tmp_path)
    with pytest.raises(UserError, match="send again"):
        store.put([b"raw l0g"], expected=hashlib.sha256(b"raw log").hexdigest())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_broken_upload_leaves_nothing(tmp_path: Path) -> None:
    def torn() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(InfraError):
        Artifacts(tmp_path).put(torn())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_name_from_outside_never_becomes_a_path(tmp_path: Path) -> None:
    for name in ["../../etc/passwd", "", "A" * 64, "0" * 63, "0" * 65]:
        with pytest.raises(UserError, match="no SHA-256"):
            Artifacts(tmp_path).path(name)
