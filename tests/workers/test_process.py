"""Commands end, and nothing of them stays behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisectbot.errors import InfraError, UserError
from workers.process import (
    OWNER,
    Command,
    Cut,
    Stop,
    check_cpus,
    clean_environment,
    kill_owned,
    run,
)


def shell(line: str, folder: Path, **more: Any) -> Command:
    return Command(("/bin/sh", "-c", line), cwd=folder, environment=clean_environment(folder, {}), **more)


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def alive(mark: str) -> list[int]:
    """The processes whose command line holds ``mark``, zombies excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def mark() -> str:
    """A number of seconds to sleep that no other process of the machine sleeps."""
    return f"{3600 + uuid.uuid4().int % 10**6}.{os.getpid()}"


def test_output_status_and_times(tmp_path: Path):
    ended = run(shell("echo out; echo err >&2; exit 3", tmp_path), tmp_path / "o", tmp_path / "e")
    assert (ended.status, ended.cut, ended.left) == (3, Cut.NONE, 0)
    assert ((tmp_path / "o").read_text(), (tmp_path / "e").read_text()) == ("out\n", "err\n")
    busy = run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", tmp_path), tmp_path / "o")
    assert busy.user_s > 0
    assert busy.seconds >= busy.user_s


def test_a_signal_is_reported_as_a_shell_does(tmp_path: Path):
    assert run(shell("kill -SEGV $$", tmp_path), tmp_path / "o").status == 128 + signal.SIGSEGV


def test_its_surroundings_are_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    run(shell("env; cat; tty; ls -l /proc/self/fd | wc -l", tmp_path), tmp_path / "o")
    lines = (tmp_path / "o").read_text().splitlines()
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SHELL", "PWD", "SHLVL", "_", "OLDPWD"}
    assert lines[-2] == "not a tty"


def test_pinning(tmp_path: Path):
    cpu = min(os.sched_getaffinity(0))
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    run(Command((sys.executable, "-c", script), tmp_path, cpus=(cpu,)), tmp_path / "o")
    assert (tmp_path / "o").read_text() == f"[{cpu}]\n"
    check_cpus([cpu], "here")
    with pytest.raises(UserError, match=r"host x: CPU 4095 cannot be used on this machine"):
        check_cpus([cpu, 4095], "host x")


def test_a_command_that_never_ends_is_killed(tmp_path: Path, mark: str):
    ended = run(shell(f"trap '' TERM INT; sleep {mark}; sleep {mark}", tmp_path, timeout_s=0.3), tmp_path / "o")
    assert (ended.cut, ended.status) == (Cut.TIMEOUT, 128 + signal.SIGKILL)
    assert ended.seconds >= 0.3
    assert alive(mark) == []


def test_a_flood_is_cut_at_the_limit(tmp_path: Path):
    ended = run(shell("echo first; yes flood", tmp_path, output_limit=100_000), tmp_path / "o", tmp_path / "e")
    assert ended.cut is Cut.OUTPUT
    assert (tmp_path / "o").stat().st_size == 100_000
    assert (tmp_path / "o").read_text().startswith("first\nflood\n")


def test_two_hundred_megabytes_leave_no_more_than_the_limit(tmp_path: Path, mark: str):
    limit = 16 * 2**20
    flood = shell(f"head -c 200000000 /dev/zero; sleep {mark}", tmp_path, output_limit=limit)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = run(flood, tmp_path / "o", tmp_path / "e")
    assert (ended.cut, (tmp_path / "o").stat().st_size) == (Cut.OUTPUT, limit)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes: it passes through
    assert alive(mark) == []


def test_output_at_the_limit_is_not_cut(tmp_path: Path):
    ended = run(shell("printf 1234; printf 5678 >&2", tmp_path, output_limit=8), tmp_path / "o", tmp_path / "e")
    assert (ended.cut, (tmp_path / "o").read_text(), (tmp_path / "e").read_text()) == (Cut.NONE, "1234", "5678")


DAEMON = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})  # a daemon that even forgets its environment
    os._exit(0)
os.wait()
print("up", flush=True)
"""


def test_what_is_left_behind_is_killed(tmp_path: Path, mark: str):
    (tmp_path / "daemon.py").write_text(DAEMON)
    line = f"sleep {mark} & {sys.executable} daemon.py {mark}; sleep 0.1"
    ended = run(shell(line, tmp_path), tmp_path / "o")
    assert (ended.status, ended.cut, ended.left) == (0, Cut.NONE, 2)
    assert (tmp_path / "o").read_text() == "up\n"
    assert alive(mark) == []


def test_stop_from_another_thread(tmp_path: Path, mark: str):
    stop = Stop()
    timer = threading.Timer(0.2, stop.set, ["enough"])
    timer.start()
    ended = run(shell(f"sleep {mark}", tmp_path), tmp_path / "o", stop=stop)
    timer.join()
    assert (ended.cut, stop.reason, bool(stop), alive(mark)) == (Cut.STOPPED, "enough", True, [])
    stop.close()


def test_what_cannot_be_started_says_so(tmp_path: Path):
    with pytest.raises(InfraError, match=r"no-such-program"):
        run(Command(("/no-such-program",), cwd=tmp_path), tmp_path / "o")
    with pytest.raises(InfraError, match=r"gone"):
        run(shell("true", tmp_path / "gone"), tmp_path / "o")


STARTER = """
import sys
from pathlib import Path
from typing import Any
from workers.process import Command, run
folder = Path(sys.argv[1])
line = f"python3 daemon.py {sys.argv[2]}; sleep {sys.argv[2]}; true"
run(Command(("/bin/sh", "-c", line), folder, {"PATH": "/usr/local/bin:/usr/bin:/bin"}), folder / "o", owner=sys.argv[3])
"""


@pytest.fixture
def started(tmp_path: Path, mark: str):
    """A process that is in the middle of `run`, and whose command has started a daemon."""
    (tmp_path / "daemon.py").write_text(DAEMON.replace("{})", f"{{'{OWNER}': 'owner {mark}'}})"))
    process = subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path), mark, f"owner {mark}"])
    until(lambda: len(alive(f"sleep\0{mark}")) == 2, "the shell's child and the daemon sleep")
    yield process
    process.kill()
    process.wait()
    kill_owned(f"owner {mark}")


def test_nothing_outlives_a_worker_that_is_killed(started: subprocess.Popen[bytes], mark: str):
    started.kill()
    started.wait()
    until(lambda: alive(mark) == [], "everything is gone")


def test_even_without_its_keeper_the_leftovers_are_found(started: subprocess.Popen[bytes], mark: str):
    (keeper,) = [pid for pid in alive("keeper.py") if _parent(pid) == started.pid]
    os.kill(keeper, signal.SIGKILL)
    assert started.wait() == 1  # InfraError: its keeper was killed
    until(lambda: len(alive(mark)) == 2, "the shell died with its keeper; its child and the daemon live")
    assert kill_owned(f"owner {mark}") == 2
    until(lambda: alive(mark) == [], "everything is gone")
    assert kill_owned(f"owner {mark}") == 0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
