"""The qemu driver with a distribution's kernel: really booted, and really dying in the ways that are told apart."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot import config
from bisectbot.clock import Clock
from bisectbot.errors import InfraError, Untestable, UserError
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from tests.support.box import image
from workers.archive import pack
from workers.hosts import Place, Program, console
from workers.hosts.kernel import release
from workers.hosts.qemu import QemuHost
from workers.process import Cut, Ended, Stop

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

JOB = Job("j", "j", "command", "guests", (Kpi("ops"),))
RUN = RunAssignment(1, 1, 90.0, "guest", JOB, "a" * 40, "", "")


class Lab:
    """Hosts whose guests boot Debian's kernel; what came out of the last run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stop = folder, Stop()
        self.kernel = image().vmlinuz
        self.hosts: list[QemuHost] = []
        tree = folder / "tree"
        tree.mkdir()
        shutil.copy(self.kernel, tree / "bzImage")
        (tree / "data").write_text("42\n")
        self.built = folder / "kernel.archive", pack(tree, ["bzImage"], folder / "kernel.archive")
        self.program = folder / "program.archive", pack(tree, ["data"], folder / "program.archive")

    def host(self, facts: dict[str, object] | None = None, **changes: object) -> QemuHost:
        qemu = config.QemuDriver.model_validate({"accel": "tcg", "memory": 256, "silence": 200.0, **changes})
        place = Place("guest", self.folder, Clock(), facts or {})
        self.hosts.append(QemuHost(place, config.Host(group="guests", driver="qemu", qemu=qemu)))
        return self.hosts[-1]

    def measure(
        self, host: QemuHost, line: str, *, program: bool = False, timeout_s: float = 300.0
    ) -> tuple[Ended, str, str]:
        archive, signature = self.program if program else self.built
        run = replace(RUN, signature=signature)
        what = Program(line, {"word": "it's"}, timeout_s=timeout_s)
        host.prepare(run, what, archive, self.stop)
        out, err = self.folder / "out", self.folder / "err"
        ended = host.run(run, what, out, err, stop=self.stop)
        return ended, out.read_text(), err.read_text()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    for host in made.hosts:
        host.clear()
    made.stop.close()


def test_a_kernel_is_booted_and_proven_and_all_comes_home(lab: Lab):
    host = lab.host(cpus=2, nodes=2)
    line = "echo ops: 42; echo $word >&2; sleep 1000 & echo left > $BISECTBOT_RESULTS/note; nproc; uname -r"
    ended, out, err = lab.measure(host, line)
    assert (ended.status, ended.cut, ended.left) == (0, Cut.NONE, 1)
    assert out.splitlines() == ["ops: 42", "2", release(lab.kernel)]
    assert err == "it's\n"
    assert host.results()["note"].read_text() == "left\n"
    assert "Linux version" in host.logs()["dmesg"].read_text()
    (record,) = host.boots()
    assert (record.failure, record.phase) == ("", "verified")
    facts = dict(host.facts())
    assert (facts["accelerator"], facts["guest"]) == ("tcg", "qemu 2 CPUs, 2 nodes, 256 MiB")
    assert (facts["cpus"], "kernel" in facts) == ("0-1", False)
    assert facts["qemu"].startswith("QEMU emulator version")
    assert host.read("/sys/devices/system/node/online") == "0-1\n"
    assert host.disturbed() == ""


def test_a_program_runs_on_the_kernel_that_the_host_file_names_and_the_facts_say_which(lab: Lab):
    host = lab.host(kernel=lab.kernel)
    ended, out, _ = lab.measure(host, "cat data", program=True)
    assert (ended.status, out) == (0, "42\n")
    assert dict(host.facts())["kernel"] == release(lab.kernel)


def test_a_kernel_that_dies_in_a_run_is_no_result_and_two_dead_boots_are_untestable(lab: Lab):
    host = lab.host()
    ended, _, _ = lab.measure(host, "echo ops: 42; sync; echo c > /proc/sysrq-trigger")
    assert ended.cut is Cut.CRASHED
    assert ended.why.startswith("panic (")
    assert [(boot.failure, boot.blame) for boot in host.boots()] == [("", ""), ("panic", "kernel")]
    dead = lab.host(cmdline="quiet rdinit=/nowhere")
    with pytest.raises(Untestable, match=r"2 boots died on guest: panic \(kernel_started\): .*not syncing"):
        lab.measure(dead, "echo ops: 42")
    assert [(boot.failure, boot.blame) for boot in dead.boots()] == [("panic", "kernel")] * 2


def test_a_kernel_that_loses_a_processor_is_half_up(lab: Lab):
    with pytest.raises(Untestable, match=r"half_up \(userspace\): only 1 of 2 CPUs"):
        lab.measure(lab.host(cpus=2, cmdline="quiet maxcpus=1"), "echo ops: 42")


def test_another_kernel_than_the_one_that_was_built_is_the_machines_fault(lab: Lab):
    tree = lab.folder / "tree"
    changed = bytearray((tree / "bzImage").read_bytes())
    at = changed.index(release(lab.kernel).encode())
    changed[at : at + 2] = b"9."  # what it says that it is, not what it is
    (tree / "bzImage").write_bytes(changed)
    lab.built = lab.built[0], pack(tree, ["bzImage"], lab.built[0])
    host = lab.host()
    with pytest.raises(InfraError, match=r"wrong_kernel .* is up, not 9\."):
        lab.measure(host, "echo ops: 42")
    assert [boot.blame for boot in host.boots()] == ["machine"]


def test_a_guest_that_floods_the_console_costs_neither_memory_nor_disk(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(console, "HEAD", 8192)
    monkeypatch.setattr(console, "TAIL", 4096)
    host = lab.host()
    ended, _, _ = lab.measure(host, "while cat /proc/kallsyms; do :; done > /dev/ttyS0", timeout_s=10.0)
    assert ended.cut is Cut.TIMEOUT
    log = host.logs()["console"].read_bytes()
    assert 8192 < len(log) < 8192 + 4096 + 65536 + 200  # a last piece as large as a read
    assert b"bytes left out" in log


def test_a_host_file_that_does_not_match_the_machine_is_refused(lab: Lab):
    with pytest.raises(UserError, match=r"its group's file and qemu\.\* differ: nr_cpu is 4, the machine has 1"):
        lab.host({"nr_cpu": 4})
