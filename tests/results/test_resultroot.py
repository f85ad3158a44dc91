"""Result roots on disk, in every shape that LKP leaves them, whole and damaged."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bisectbot.errors import UserError
from bisectbot.results.resultroot import read, read_set
from tests.results.parsers.logs import samples

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
BASE, HEAD = "31255e072b2e91f97645d792d25b2db744186dd1", "ec9aedb2aa1ab7ac420c00b31f5edc5be15ec167"
ROOT = "aim9/exec_test-300s/lkp-ivb-2ep1/debian-11.1-x86_64-20220510.cgz/x86_64-rhel-8.3/gcc-12"


def write(path: Path, data: object, ending: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    path.with_name(path.name + ending).write_bytes(PACKERS[ending](raw))


@pytest.mark.parametrize("ending", PACKERS)
def test_runs_are_read_in_order_from_their_stats(tmp_path: Path, ending: str):
    for run in (0, 2, 10):
        write(tmp_path / str(run) / "stats.json", {"aim9.exec_test.ops_per_sec": 1000 + run}, ending)
    root = read(tmp_path)
    assert root.matrix.stats == {"aim9.exec_test.ops_per_sec": (1000, 1002, 1010)}
    assert [Path(source).parent.name for source in root.matrix.sources] == ["0", "2", "10"]
    assert root.warnings == ()


@pytest.mark.parametrize("ending", PACKERS)
def test_lkps_own_matrix_is_taken_when_exact(tmp_path: Path, ending: str):
    write(tmp_path / "matrix.json", {"a.x": [1], "stats_source": ["0/stats.json", "1/stats.json"]}, ending)
    write(tmp_path / "0" / "stats.json", {"a.x": 1})
    write(tmp_path / "1" / "stats.json", {"a.y": 2})
    assert read(tmp_path, exact=True).matrix.stats == {"a.x": (1, 0)}
    assert read(tmp_path).matrix.stats == {"a.x": (1, None), "a.y": (None, 2)}


def test_a_matrix_alone_will_do_and_so_will_its_file(tmp_path: Path):
    write(tmp_path / "matrix.json", {"a.x": [1, 2]})
    assert read(tmp_path).matrix.stats == {"a.x": (1, 2)}
    assert read(tmp_path / "matrix.json").matrix.stats == {"a.x": (1, 2)}


def test_without_stats_the_series_are_summed_up(tmp_path: Path):
    run = tmp_path / "0"
    write(
        run / "meminfo.json", {"meminfo.time": [1, 2, 3], "meminfo.MemFree": [3, 4, 8], "meminfo.Late": [6, 8]}, ".gz"
    )
    write(run / "proc-vmstat.json", {"proc-vmstat.time": [1, 2], "proc-vmstat.pgfault": [100, 175]})
    write(run / "job.yaml", b"stats_part_begin: 0\nstats_part_end: 2\n")
    assert read(tmp_path).matrix.stats == {
        "meminfo.MemFree": (5.0,),
        "meminfo.Late": (7.0,),
        "proc-vmstat.pgfault": (75,),
    }
    assert read(tmp_path, exact=True).matrix.stats["meminfo.Late"] == (14 / 3,)


def test_without_series_the_raw_logs_are_parsed(tmp_path: Path):
    run = tmp_path / "0"
    for name in ("aim9", "meminfo", "dmesg", "last_state"):
        write(run / name, samples()[name], ".zst" if name == "meminfo" else "")
    write(run / "aim9.time", samples()["time"])
    write(run / "output", b"not a monitor")
    stats = read(tmp_path).matrix.stats
    assert stats["aim9.exec_test.ops_per_sec"] == (983.03,)
    assert stats["aim9.time.elapsed_time.max"] == (300.36,)
    assert stats["meminfo.max_used_kB"] == ((2950346 + 2996024 + 2996024) / 3,)
    assert stats["dmesg.Kernel_panic-not_syncing:Fatal_exception"] == (1,)
    assert read(tmp_path).matrix.incomplete == (0,)


def test_zeros_are_put_back_only_where_lkp_left_them_out(tmp_path: Path):
    write(tmp_path / "0" / "stats.json", {"proc-vmstat.pgfault": 5})
    write(tmp_path / "1" / "proc-vmstat", b"pgfault 1\n")
    write(tmp_path / "2" / "proc-vmstat", b"pgfault 1\nthp_zero 3\n")
    assert read(tmp_path).matrix.stats["proc-vmstat.thp_zero"] == (0, None, 3)


def test_a_run_of_raw_logs_alone_is_a_run(tmp_path: Path):
    write(tmp_path / "uptime", samples()["uptime"], ".gz")
    assert read(tmp_path).matrix.stats == {"uptime.boot": (350.12,), "uptime.idle": (31234.56,)}


def test_axes_come_from_the_path_and_the_job(tmp_path: Path):
    job = b"testcase: aim9\ncpufreq_governor: performance\naim9:\n  test: exec_test\n  testtime: 300s\n"
    for commit in (BASE, HEAD):
        write(tmp_path / "result" / ROOT / commit / "0" / "stats.json", {"aim9.exec_test.ops_per_sec": 1})
        write(tmp_path / "result" / ROOT / commit / "0" / "job.yaml", job)
    expected = {
        "testcase": "aim9",
        "test": "exec_test",
        "testtime": "300s",
        "tbox_group": "lkp-ivb-2ep1",
        "rootfs": "debian-11.1-x86_64-20220510.cgz",
        "kconfig": "x86_64-rhel-8.3",
        "compiler": "gcc-12",
    }
    roots = [tmp_path / "result" / ROOT / commit for commit in (BASE, HEAD)]
    columns, warnings = read_set(roots)
    assert columns.axes == expected
    assert list(columns.matrices) == [BASE, HEAD]
    assert warnings == ()
    single = read(roots[1] / "0")
    assert (single.commit, single.axes, single.matrix.runs) == (HEAD, expected, 1)


def test_parameters_that_the_job_does_not_explain_stay_together(tmp_path: Path):
    path = tmp_path / "will-it-scale/performance-process-50%-open1-ucode=0xd000331/host/rootfs/kconfig/gcc-11" / BASE
    write(path / "0" / "stats.json", {"a.x": 1})
    assert read(path).axes["path_params"] == "performance-process-50%-open1-ucode=0xd000331"
    job = (
        "cpufreq_governor: performance\nmode: process\nnr_task: 50%\ntest: open1\nucode: '0xd000331'\nqueue: process\n"
    )
    write(path / "0" / "job.yaml", job.encode())
    axes = read(path).axes
    assert {
        key: axes[key] for key in sorted(set(axes) - {"testcase", "tbox_group", "rootfs", "kconfig", "compiler"})
    } == {
        "cpufreq_governor": "performance",
        "mode": "process",
        "nr_task": "50%",
        "test": "open1",
        "ucode": "0xd000331",
    }


def test_axes_on_which_the_roots_differ_are_no_axes_of_the_table(tmp_path: Path):
    roots = [tmp_path / path / BASE for path in ("aim9/defaults/h/r/k/gcc-11", "aim9/defaults/h/r/k/gcc-12")]
    for root in roots:
        write(root / "0" / "stats.json", {"a.x": 1})
    columns, _ = read_set(roots)
    assert columns.axes == {"testcase": "aim9", "tbox_group": "h", "rootfs": "r", "kconfig": "k"}
    assert list(columns.matrices) == [str(root) for root in roots]


def test_damaged_runs_are_said_and_the_others_read(tmp_path: Path):
    write(tmp_path / "0" / "stats.json", {"a.x": 1, "a.text": "no", "a.nan": float("nan")})
    write(tmp_path / "1" / "stats.json", b'{"a.x": 2')
    write(tmp_path / "2" / "stats.json", b"junk")
    write(tmp_path / "2" / "aim9", samples()["aim9"])
    cut = gzip.compress(json.dumps({"a.x": 4}).encode() * 50)[:40]
    write(tmp_path / "3" / "stats.json", {})
    (tmp_path / "3" / "stats.json").rename(tmp_path / "3" / "stats.json.gz")
    (tmp_path / "3" / "stats.json.gz").write_bytes(cut)
    root = read(tmp_path)
    assert root.matrix.stats["a.x"] == (1, None)
    assert root.matrix.stats["aim9.exec_test.ops_per_sec"] == (None, 983.03)
    said = "\n".join(root.warnings)
    for words in ("2 values that are no numbers", "1/stats.json: cannot be read", "1: nothing to read", "3: nothing"):
        assert words in said


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "no such directory"),
        (lambda path: path.mkdir(), "no result root: expected run directories 0, 1, … or matrix.json"),
        (lambda path: write(path / "0" / "output", b"x"), "no result root: .*0: nothing to read"),
        (lambda path: path.write_bytes(b"{"), "not JSON"),
        (lambda path: write(path / "matrix.json", [1]), "expected an object of stat"),
    ],
)
def test_what_is_no_result_root_is_said_in_one_line(tmp_path: Path, make: Callable[[Path], object], words: str):
    make(tmp_path / "root")
    with pytest.raises(UserError, match=words):
        read(tmp_path / "root")
