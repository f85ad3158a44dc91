"""The adapters with stand-ins for the programs, each of which prints what the real one prints."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.jobs.assignment import Job, Source
from bisectbot.jobs.kpi import Kpi
from bisectbot.results.delivery import Outcome
from bisectbot.results.output import Reading
from workers import benchmarks
from workers.benchmarks import Output
from workers.benchmarks.source import FAILED, installed
from workers.hosts.base import Program
from workers.process import Ended

WIS = """#!/bin/sh
echo "$*" >> args
[ "$*" = "-t 4 -s 7" ] || exit 9
printf 'testcase:open\\nwarmup\\nmin:1 max:2 total:3\\nmeasurement\\nmin:4 max:5 total:9\\naverage:82000\\n'
"""
AIM9 = """#!/bin/sh
[ "$1" = -nl ] || exit 9
read host; read test; read seconds; read folder
echo "AIM Independent Resource Benchmark - Suite IX"
echo "     1 $test $seconds.00 58982 196.60667 1251.2 Program Loads/second"
"""
HACKBENCH = """#!/bin/sh
echo "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)"
echo "Each sender will pass 1000 messages of 4096 bytes"
echo "Time: 2.0"
echo "$*" >> args
"""
UNIXBENCH = """#!/bin/sh
[ "$*" = "pipe -c 2 -i 3" ] || exit 9
echo "Pipe Throughput                            1234567.8 lps   (10.0 s, 3 samples)"
echo "System Benchmarks Partial Index              BASELINE       RESULT    INDEX"
echo "Pipe Throughput                               12440.0    1234567.8    992.4"
"""
PERF = """#!/bin/sh
[ "$*" = "bench sched pipe -l 100" ] || exit 9
printf "# Running 'sched/pipe' benchmark:\\n# Executed 100 pipe operations\\n\\n     Total time: 0.5 [sec]\\n"
printf "      5.0 usecs/op\\n     200000 ops/sec\\n"
"""
LKP = """#!/bin/sh
[ "$1" = run ] || exit 9
grep -q 'testcase: will-it-scale' "$2" && grep -q 'nr_task: 50%' "$2" || exit 8
root=$LKP_RESULTS/will-it-scale/process-50%-open1/host/rootfs/kconfig/gcc-12/8bdbdd7f43cd74c7faca6add8a62d541503ae21d/0
mkdir -p "$root"; sleep 0.01; cp "$2" "$root/job.yaml"; touch "$root/job.yaml"
echo '{"will-it-scale.per_process_ops": 75636, "meminfo.MemFree": 1000}' > "$root/stats.json"
"""


def job(benchmark: str, kpi: str, **parameters: str) -> Job:
    return Job("j", benchmark, benchmark, "here", (Kpi(kpi),), parameters=tuple(parameters.items()))


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.build, self.results = folder / "build", folder / "results"
        self.build.mkdir()
        self.results.mkdir()

    def program(self, name: str, text: str) -> None:
        file = self.build / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run(self, what: Job, **more: str) -> Reading:
        benchmark = benchmarks.find(what.benchmark)
        program = installed(benchmark.program(what), what)
        environment = {
            **os.environ,
            **program.environment,
            "PATH": f"{self.build}:{os.environ['PATH']}",
            "BISECTBOT_RESULTS": str(self.results),
            "BISECTBOT_CACHE": str(self.folder / "cache"),
            "LKP_RESULTS": str(self.folder / "lkp"),
            **more,
        }
        self.done = subprocess.run(
            ["/bin/sh", "-c", program.line],
            cwd=self.build,
            env=environment,
            capture_output=True,
            check=False,
            timeout=60,
        )
        stdout, stderr = self.folder / "stdout", self.folder / "stderr"
        stdout.write_bytes(self.done.stdout)
        stderr.write_bytes(self.done.stderr)
        files = {file.name: file for file in self.results.iterdir()}
        return benchmark.read(what, Ended(self.done.returncode, 1.0), Output(stdout, stderr, files))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "what", "value"),
    [
        (
            "open1_processes",
            WIS,
            job(
                "will-it-scale",
                "will-it-scale.per_process_ops",
                test="open1",
                mode="process",
                nr_task="4",
                runtime="12",
            ),
            20500,
        ),
        (
            "open1_threads",
            WIS,
            job("will-it-scale", "will-it-scale.4.threads", test="open1", mode="thread", nr_task="4", runtime="12"),
            82000,
        ),
        ("singleuser", AIM9, job("aim9", "aim9.exec_test.ops_per_sec", test="exec_test", testtime="300"), 1251.2),
        (
            "hackbench",
            HACKBENCH,
            job("hackbench", "hackbench.throughput", nr_threads="400", iterations="2", mode="process", ipc="pipe"),
            800000,
        ),
        ("Run", UNIXBENCH, job("unixbench", "unixbench.score", test="pipe", nr_task="2", runtime="30"), 992.4),
        ("perf", PERF, job("perf-bench", "perf-bench.sched.pipe.ops_per_sec", test="sched-pipe", loops="100"), 200000),
    ],
)
def test_what_each_says(place: Place, name: str, text: str, what: Job, value: float):
    place.program(name, text)
    reading = place.run(what)
    assert (reading.outcome, reading.message) == (Outcome.DONE, "")
    assert reading.samples == ((what.kpis[0].name, value),)


def test_will_it_scale_s_other_numbers(place: Place):
    place.program("open1_processes", WIS)
    what = job(
        "will-it-scale", "will-it-scale.per_process_ops", test="open1", mode="process", nr_task="4", runtime="12"
    )
    stats = dict(place.run(what).stats)
    assert stats["will-it-scale.4.processes"] == stats["will-it-scale.workload"] == 82000
    assert 0 <= stats["will-it-scale.4.processes_idle"] <= 100


def test_hackbench_makes_as_many_tasks_as_the_job_says(place: Place):
    place.program("hackbench", HACKBENCH)
    place.run(job("hackbench", "hackbench.throughput", nr_threads="400", iterations="2", mode="threads", ipc="socket"))
    assert (place.build / "args").read_text() == "-g 10 -s 4096 -l 1000 --threads\n" * 2


def test_failures_say_why(place: Place):
    what = job(
        "will-it-scale", "will-it-scale.per_process_ops", test="open1", mode="process", nr_task="4", runtime="99"
    )
    missing = place.run(what)
    assert missing.message == "will-it-scale ended with status 2: no open1_processes here"
    place.program("open1_processes", WIS)
    assert "status 9" in place.run(what).message
    place.program("open1_processes", "#!/bin/sh\necho average:nothing > /dev/null")
    empty = place.run(what)
    assert (empty.outcome, "no average" in empty.message) == (Outcome.FAILED, True)
    place.program("singleuser", "#!/bin/sh\necho 1 exec_test")
    wrong = place.run(job("aim9", "aim9.exec_test.ops_per_sec", test="exec_test"))
    assert wrong.message == "aim9 printed no aim9.exec_test.ops_per_sec, but no number; its last line: 1 exec_test"


def test_lkp_runs_any_job_and_its_result_root_is_read(place: Place):
    place.program("lkp", LKP)
    kpi = "will-it-scale.per_process_ops"
    parameters = (("nr_task", "50%"), ("mode", "process"), ("test", "open1"))
    what = Job("j", "will-it-scale", "lkp", "here", (Kpi(kpi),), parameters=parameters)
    reading = place.run(what)
    assert (reading.message, reading.samples) == ("", ((kpi, 75636.0),))
    assert ("meminfo.MemFree", 1000.0) in reading.stats


def test_an_lkp_that_fails_or_leaves_nothing(place: Place):
    what = Job("j", "aim9", "lkp", "here", (Kpi("aim9.exec_test.ops_per_sec"),))
    place.program("lkp", "#!/bin/sh\necho no such job >&2; exit 4")
    assert place.run(what).message == "lkp ended with status 4: no such job"
    place.program("lkp", "#!/bin/sh\nmkdir -p $LKP_RESULTS")
    assert place.run(what).message == "lkp ended with status 2: lkp left no result root"


def tarball(folder: Path) -> tuple[Path, str]:
    (folder / "wis-1").mkdir()
    (folder / "wis-1" / "open1.sh").write_text(WIS)
    with tarfile.open(folder / "wis.tar.gz", "w:gz") as tar:
        tar.add(folder / "wis-1", "wis-1")
    return folder / "wis.tar.gz", hashlib.sha256((folder / "wis.tar.gz").read_bytes()).hexdigest()


BUILD = "cp open1.sh open1_processes && chmod +x open1_processes && echo built >> ../../log"


def test_a_source_is_installed_once_and_checked(place: Place):
    file, digest = tarball(place.folder)
    what = job(
        "will-it-scale", "will-it-scale.per_process_ops", test="open1", mode="process", nr_task="4", runtime="12"
    )
    right = replace(what, source=Source(f"file://{file}", sha256=digest, build=BUILD))
    for _ in range(2):
        assert place.run(right).outcome is Outcome.DONE
    assert (place.folder / "cache" / "log").read_text() == "built\n"
    wrong = replace(what, source=Source(f"file://{file}", sha256="0" * 64, build=BUILD))
    place.run(wrong)
    assert place.done.returncode == FAILED
    assert b"could not be installed" in place.done.stderr
    assert (place.folder / "cache" / "log").read_text() == "built\n"


def test_a_source_in_git_is_the_commit_that_was_named(place: Place):
    tarball(place.folder)
    tree = place.folder / "wis-1"
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True).stdout
    what = job(
        "will-it-scale", "will-it-scale.per_process_ops", test="open1", mode="process", nr_task="4", runtime="12"
    )
    assert place.run(replace(what, source=Source(str(tree), commit.strip(), build=BUILD))).outcome is Outcome.DONE
    place.run(replace(what, source=Source(str(tree), "1" * 40, build=BUILD)))
    assert place.done.returncode == FAILED


def test_a_package_that_is_there_needs_no_network(place: Place):
    version = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "dpkg"], check=True, capture_output=True, text=True
    )
    program = installed(Program("true"), replace(job("aim9", "k"), source=Source(package=f"dpkg={version.stdout}")))
    environment = {**os.environ, "BISECTBOT_CACHE": str(place.folder / "cache")}
    subprocess.run(["/bin/sh", "-c", program.line], env=environment, check=True, timeout=60)
