"""`bisectbot parse`: what goes to stdout, what to stderr, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.results.parsers.logs import GOLDEN


def run(*args: str, raw: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "bisectbot", "parse", *args], input=raw, capture_output=True, check=False
    )


def test_prints_pairs_and_is_silent_about_a_whole_log():
    done = run("dmesg", raw=(GOLDEN / "dmesg.in").read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (GOLDEN / "dmesg.out").read_bytes()


def test_reads_a_file_and_mends():
    done = run("--mended", "sched_debug", str(GOLDEN / "sched_debug.in"))
    assert (done.returncode, done.stdout) == (0, (GOLDEN / "sched_debug.mended.out").read_bytes())


def test_what_cannot_be_read_is_said_on_stderr():
    done = run("meminfo", raw=b"MemFree: 7 kB\nMemTo\n")
    assert (done.returncode, done.stdout) == (0, b"MemFree: 7\n")
    assert done.stderr == b"bisectbot: meminfo: line 2: not understood: 'MemTo'\n"


def test_json_has_pairs_and_warnings():
    done = run("--json", "meminfo", raw=b"MemFree: 7 kB\nMemTo\n")
    assert json.loads(done.stdout) == {
        "pairs": [["MemFree", "7"]],
        "warnings": [{"line": 2, "what": "not understood: 'MemTo'"}],
        "unread": 1,
    }


def test_list_names_all():
    done = run("--list")
    assert done.returncode == 0
    assert b"numa-vmstat    snapshots of every node's vmstat\n" in done.stdout


def test_no_name_and_a_wrong_name_end_in_one_line():
    for args in ((), ("memnifo",)):
        done = run(*args)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
