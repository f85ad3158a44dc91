"""`bisectbot compare A B` on two result roots."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

BASE, HEAD = "31255e072b2e91f97645d792d25b2db744186dd1", "ec9aedb2aa1ab7ac420c00b31f5edc5be15ec167"
JOB = "testcase: aim9\naim9: {test: exec_test, testtime: 300s}\n"


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bisectbot", "compare", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """Three runs of each side; the base's second run lacks a monitor, the head's third is cut."""
    parent = tmp_path / "result/aim9/exec_test-300s/lkp-ivb-2ep1/debian-11/x86_64-rhel-8.3/gcc-12"
    for commit, level, pages in ((BASE, 1222.5, 78243), (HEAD, 1251.5, 21498)):
        for index in range(3):
            directory = parent / commit / str(index)
            directory.mkdir(parents=True)
            (directory / "job.yaml").write_text(JOB)
            stats = {"aim9.exec_test.ops_per_sec": level + index / 10, "meminfo.Percpu": pages + index}
            if commit == BASE and index == 1:
                del stats["meminfo.Percpu"]
            packed = gzip.compress(json.dumps(stats).encode())
            whole = commit == BASE or index < 2
            (directory / "stats.json.gz").write_bytes(packed if whole else packed[:30])
    return parent / BASE, parent / HEAD


def test_prints_the_table_and_says_what_was_damaged(roots: tuple[Path, Path]):
    done = run(*roots)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1:3] == [
        "compiler/kconfig/rootfs/tbox_group/test/testcase/testtime:",
        "  gcc-12/x86_64-rhel-8.3/debian-11/lkp-ivb-2ep1/exec_test/aim9/300s",
    ]
    assert "      1222            +2.4%       1251        aim9.exec_test.ops_per_sec" in lines
    assert "     78244           -72.5%      21498        meminfo.Percpu" in lines
    assert f"{roots[1]}/2: nothing to read" in done.stderr


def test_exact_counts_what_is_missing_as_zero(roots: tuple[Path, Path]):
    """The zero of the run that lacks meminfo makes the base's range reach below the head's: no row."""
    rows = run("--lkp-exact", *roots).stdout
    assert "aim9.exec_test.ops_per_sec" in rows
    assert "meminfo.Percpu" not in rows


def test_wrong_usage_ends_in_one_line(roots: tuple[Path, Path]):
    for args in ((), (roots[0],), (roots[0], roots[1] / "nowhere"), ("--matrix", __file__, *roots)):
        done = run(*args)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
