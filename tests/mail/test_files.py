"""Letters as files."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from bisectbot.errors import InfraError
from bisectbot.mail import files


def test_written_whole_and_only_once(tmp_path: Path):
    path = files.write(b"one\r\n", "<202311142213.93b7d0a2-bisectbot@example.org>", tmp_path / "mail")
    assert path == tmp_path / "mail" / "202311142213.93b7d0a2-bisectbot@example.org.eml"
    assert files.write(b"one\r\n", "<202311142213.93b7d0a2-bisectbot@example.org>", tmp_path / "mail") == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"one\r\n"


def test_a_name_cannot_leave_the_directory(tmp_path: Path):
    assert files.write(b"", "<../../x@y>", tmp_path).parent == tmp_path


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(InfraError, match=r"mail file .*a@b\.eml: File too large"):
            files.write(b"x" * 8192, "<a@b>", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_no_directory_there():
    with pytest.raises(InfraError, match=r"mail file /dev/null/a@b\.eml: "):
        files.write(b"x", "<a@b>", Path("/dev/null"))
