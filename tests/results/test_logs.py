"""The raw logs of one run become its stats in one call."""

from __future__ import annotations

import gzip
from pathlib import Path

from bisectbot.results.logs import read_logs
from bisectbot.results.stats import Window
from tests.results.parsers.logs import GOLDEN, samples


def test_every_log_with_a_parser_gives_stats_under_its_name(tmp_path: Path):
    (tmp_path / "packed.gz").write_bytes(gzip.compress(samples()["uptime"]))
    (tmp_path / "notes").write_text("not a monitor's")
    logs = {
        "proc-vmstat": GOLDEN / "proc-vmstat.in",
        "aim9.time": GOLDEN / "time.in",
        "uptime": tmp_path / "packed.gz",
        "notes": tmp_path / "notes",
    }
    done = read_logs(logs)
    assert done.warnings == ()
    assert done.stats["proc-vmstat.pgfault"] == 7000333 - 333
    assert done.stats["proc-vmstat.nr_free_pages"] == 63750000.5
    assert done.stats["aim9.time.elapsed_time.max"] == 300.36
    assert done.stats["uptime.boot"] == 350.12
    assert {name.partition(".")[0] for name in done.stats} == {"proc-vmstat", "aim9", "uptime"}


def test_a_window_and_exactness_reach_every_monitor(tmp_path: Path):
    log = tmp_path / "meminfo"
    log.write_text(
        "time: 1\nMemFree: 10 kB\ntime: 2\nMemFree: 20 kB\nLate: 6 kB\ntime: 3\nMemFree: 60 kB\nLate: 8 kB\n"
    )
    assert read_logs({"meminfo": log}).stats == {"meminfo.MemFree": 30.0, "meminfo.Late": 7.0}
    assert read_logs({"meminfo": log}, exact=True).stats == {"meminfo.MemFree": 30.0, "meminfo.Late": 14 / 3}
    assert read_logs({"meminfo": log}, window=Window(1, 2)).stats == {"meminfo.MemFree": 40.0, "meminfo.Late": 7.0}


def test_what_was_not_read_is_said_with_the_file(tmp_path: Path):
    (tmp_path / "meminfo").write_text("MemFree: 10 kB\nMemFr")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"x" * 1000)[:15])
    logs = {
        "meminfo": tmp_path / "meminfo",
        "proc-vmstat": tmp_path / "gone",
        "vmstat": tmp_path / "cut.gz",
    }
    done = read_logs(logs)
    assert done.stats == {"meminfo.MemFree": 10}
    said = "\n".join(done.warnings)
    assert f"{tmp_path}/meminfo: line 2: not understood: 'MemFr'" in said
    assert f"{tmp_path}/gone: cannot be read" in said
    assert f"{tmp_path}/cut.gz: line 0: the rest cannot be read" in said
