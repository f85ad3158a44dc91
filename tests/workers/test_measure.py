"""Times and instruction counts of commands that print nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from workers.measure import Meter, What
from workers.process import Command, Ended, run

CACHEGRIND = "==7== Command: true\n==7==\n==7== I   refs:      {}\n"
PERF = "# started on Mon\n\n{},,instructions:u,100,100.00,,\n"


def test_times_come_from_the_process(tmp_path: Path):
    ended = Ended(0, 2.5, user_s=1.25)
    assert Meter.of(What.WALL).value(ended, tmp_path) == 2.5
    assert Meter.of(What.USER).value(ended, tmp_path) == 1.25
    assert Meter.of(What.USER).wrap("a; b", tmp_path) == "a; b"


def test_instructions_of_all_processes_add_up(tmp_path: Path):
    meter = Meter(What.INSTRUCTIONS, "valgrind")
    (tmp_path / "7").write_text(CACHEGRIND.format("1,234,567"))
    (tmp_path / "8").write_text(CACHEGRIND.format("33"))
    assert meter.value(Ended(0, 1.0), tmp_path) == 1234600.0
    (tmp_path / "7").write_text(PERF.format(42))
    assert Meter(What.INSTRUCTIONS, "perf").value(Ended(0, 1.0), tmp_path) == 42.0


def test_a_tool_that_counted_nothing_is_the_machine_s_fault(tmp_path: Path):
    (tmp_path / "perf").write_text("<not supported>,,instructions:u,0,100.00,,\n")
    with pytest.raises(InfraError, match="perf counted no instructions"):
        Meter(What.INSTRUCTIONS, "perf").value(Ended(0, 1.0), tmp_path)


def test_without_any_tool_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="install valgrind"):
        Meter.of(What.INSTRUCTIONS)


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("valgrind", "for a; do case $a in --log-file=*) f=${a#--log-file=}; esac; done\nd=${f%/*}"),
        ("perf", 'while [ "$1" != -o ]; do shift; done\nd=${2%/*}; shift'),
    ],
)
def test_the_line_goes_to_the_tool_whole(tmp_path: Path, tool: str, told: str, monkeypatch: pytest.MonkeyPatch):
    text = (CACHEGRIND if tool == "valgrind" else PERF).format("99")
    (tmp_path / "text").write_text(text)
    (tmp_path / tool).write_text(
        f'#!/bin/sh\n{told}\ncp {tmp_path}/text "$d/1"\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n'
    )
    (tmp_path / tool).chmod(0o755)
    folder = tmp_path / "a folder"
    folder.mkdir()
    meter = Meter(What.INSTRUCTIONS, tool)
    line = meter.wrap("echo 'it is'; exit 3", folder)
    command = Command(("/bin/sh", "-c", line), tmp_path, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    ended = run(command, tmp_path / "out", tmp_path / "err")
    assert (ended.status, (tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == (3, "it is\n", "")
    assert meter.value(ended, folder) == 99.0
