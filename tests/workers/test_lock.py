"""Measuring locks hold across processes and state folders, and end with their holder."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from bisectbot.errors import UserError
from workers.lock import alone, exclusive, machine_folder

HOLDER = """
import sys
from pathlib import Path
from workers.lock import exclusive
with exclusive(["a"], Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdin=pipe, stdout=pipe, text=True)


def test_one_at_a_time_and_free_when_the_holder_is_killed(tmp_path: Path):
    with holder(tmp_path) as first:
        assert first.stdout
        assert first.stdout.readline() == "held\n"
        with holder(tmp_path) as second:
            assert second.stdout
            assert select.select([second.stdout], [], [], 1.0)[0] == []
            first.kill()
            assert second.stdout.readline() == "held\n"
            second.kill()


def test_other_names_do_not_matter_and_none_is_no_lock(tmp_path: Path):
    with exclusive(["a", "", "a"], tmp_path) as held, exclusive(["b"], tmp_path), exclusive([""], tmp_path) as none:
        assert (len(held), none) == (1, ())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bisectbot-a.lock", "bisectbot-b.lock"]


def test_alone_refuses_in_one_line(tmp_path: Path):
    with alone(tmp_path / "x" / "lock", "a worker for h"):
        again = alone(tmp_path / "x" / "lock", "a worker for h")
        with pytest.raises(UserError, match="a worker for h is running already with the state folder"), again:
            pass
    with alone(tmp_path / "x" / "lock", "a worker for h"):
        pass


def test_the_folder_is_the_same_for_all():
    assert machine_folder() == machine_folder()
    assert os.access(machine_folder(), os.W_OK)
