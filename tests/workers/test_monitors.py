"""The monitors around a command on this machine, in both shells that hosts have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.errors import InfraError
from bisectbot.jobs.assignment import Job
from bisectbot.results.logs import has_parser, read_logs
from workers import monitors
from workers.benchmarks.base import variables
from workers.hosts.base import Program

JOB = Job("j", "t", "command", "here", ())
LONG = replace(JOB, params=(("runtime", "60"),))
SHELLS = {"dash": ["/bin/sh"], "busybox": [str(shutil.which("busybox")), "sh"]}


class Ran:
    def __init__(self, folder: Path, line: str, job: Job = JOB, shell: str = "dash") -> None:
        results, apart = folder / "results", folder / "apart"
        results.mkdir()
        apart.mkdir()
        program = monitors.beside(Program(line, variables(job)), job)
        environment = {**os.environ, **program.environment, "BISECTBOT_RESULTS": str(results)}
        argv = [*SHELLS[shell], "-c", program.line]
        self.done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
        found = {file.name: file for file in results.iterdir()}
        self.hidden = {name for name in found if name.startswith(".")} - {".samples"}
        self.logs = monitors.logs(found, job, apart)
        self.stats = read_logs(self.logs)

    def note(self) -> str:
        return self.logs["monitors"].read_text() if "monitors" in self.logs else ""


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_collector_has_a_log_that_its_parser_reads(tmp_path: Path, shell: str):
    ran = Ran(tmp_path, "echo out\necho err >&2; sleep 2.2", LONG, shell=shell)
    assert (ran.done.stdout, ran.done.stderr, ran.done.returncode) == ("out\n", "err\n", 0)
    assert not ran.hidden
    noted = {line.partition(":")[0] for line in ran.note().splitlines()}
    for name in monitors.USUAL:
        assert name in ran.logs or name in noted or name in {"cpuidle", "sched_debug", "slabinfo"}, ran.note()
    assert not ran.stats.warnings
    for name in (
        "meminfo.MemFree",
        "proc-vmstat.pgfault",
        "numa-meminfo.node0.MemFree",
        "numa-vmstat.node0.nr_free_pages",
    ):
        assert ran.stats.stats[name] > 0
    for name in (
        "numa-numastat.node0.numa_hit",
        "uptime.boot",
        "boot-time.boot",
        "interrupts.LOC:Local_timer_interrupts",
    ):
        assert ran.stats.stats[name] > 0
    assert ran.logs["meminfo"].read_text().count("time: ") >= 3  # at both ends and every second between
    assert ran.stats.stats["proc-vmstat.pgfault"] < 10**9  # counters count from the run's begin, not from the boot


def test_logs_have_lkp_s_layout(tmp_path: Path):
    lines = Ran(tmp_path, "true").logs["numa-vmstat"].read_text().splitlines()
    assert lines[0].startswith("time: ")
    assert lines[1] == "node: 0"
    assert lines[2].startswith("nr_free_pages ")
    assert [line.split()[0] for line in lines if line.startswith("time: ")] == ["time:"] * 2


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_a_job_s_parameters_are_its_own_whatever_they_are_called(tmp_path: Path, shell: str):
    """The kernel's names of idle states were taken for the parameter ``n`` once."""
    text = monitors.beside(Program("true"), LONG).line
    names = {name for match in re.finditer(r"\b(?:read -r|for) ([\w ]+?) (?:<|in)|\b(\w+)=", text) for name in
             re.findall(r"\w+", match[1] or match[2])} - {"IFS", "PATH"}  # fmt: skip
    assert {"n", "R", "t", "status"} <= names
    job = replace(LONG, parameters=tuple((name, f"it's {name}") for name in sorted(names)))
    line = "; ".join(f'echo "${name}"' for name in sorted(names))
    ran = Ran(tmp_path, line, job, shell)
    assert ran.done.stdout.splitlines() == [f"it's {name}" for name in sorted(names)]
    assert "meminfo" in ran.logs


@pytest.mark.parametrize(("line", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("nonesuch", 127)])
def test_the_benchmark_s_own_end_counts(tmp_path: Path, line: str, status: int):
    ran = Ran(tmp_path, line)
    assert ran.done.returncode == status
    assert "meminfo" in ran.logs


def test_what_is_not_there_is_noted_and_fails_nothing(tmp_path: Path):
    there = monitors.MONITORS["vmstat"]
    assert isinstance(there, monitors.Tool)
    gone = replace(there, name="gone", needs="no-such-program")
    broken = replace(there, name="broken", prepare="echo out of order; false")
    (tmp_path / "results").mkdir()
    environment = {**os.environ, "BISECTBOT_LINE": "echo ran", "BISECTBOT_RESULTS": str(tmp_path / "results")}
    from workers.monitors.script import script

    done = subprocess.run(["/bin/sh", "-c", script([gone, broken])], env=environment, capture_output=True, check=True)
    assert done.stdout == b"ran\n"
    notes = (tmp_path / "results" / "monitors").read_text()
    assert notes == "gone: no no-such-program on this host\nbroken: out of order\n"


def test_a_job_that_may_be_short_has_only_the_cheap_ones(tmp_path: Path):
    ran = Ran(tmp_path, "true")
    assert set(ran.logs) <= set(monitors.CHEAP)
    assert not ran.note()


def test_a_job_chooses(tmp_path: Path):
    ran = Ran(tmp_path, "true", replace(JOB, monitors=("uptime",)))
    assert set(ran.logs) == {"uptime"}
    assert monitors.beside(Program("true"), replace(JOB, monitors=())) == Program("true")
    with pytest.raises(InfraError, match="no monitor 'nonesuch' in this worker; there are: meminfo"):
        monitors.beside(Program("true"), replace(JOB, monitors=("nonesuch",)))


def test_every_collector_has_a_parser():
    assert all(has_parser(name) for name in monitors.MONITORS)


def test_a_profile_is_of_the_run_s_middle():
    job = replace(JOB, parameters=(("testtime", "300s"),), params=(("testtime", "300"),))
    assert monitors.beside(Program("true"), job).environment["BISECTBOT_RUNTIME"] == "300"
