"""The ssh driver on a box with Debian, GRUB, sshd, a serial console and an IPMI controller: everything but the iron."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot import config
from bisectbot.clock import Clock
from bisectbot.errors import InfraError, Untestable
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from tests.support.box import Box, box
from workers.archive import pack
from workers.hosts import Place, Program
from workers.hosts.ssh import SshHost
from workers.process import Cut, Stop

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

JOB = Job("j", "j", "command", "boxes", (Kpi("ops"),))
RUN = RunAssignment(1, 1, 90.0, "box", JOB, "a" * 40, "", "")
FACTS = {"nr_cpu": 2, "nr_socket": 1, "nr_node": 1}


class Lab:
    """A box, its archives, and host drivers for it."""

    def __init__(self, folder: Path, real: Box) -> None:
        self.folder, self.box, self.stop = folder, real, Stop()
        made = real.image
        self.good = self.archive("good", bzImage=made.vmlinuz, **{"initrd.img": made.initrd})
        self.dies = self.archive("dies", bzImage=made.vmlinuz)  # its disk's driver is a module: it finds no root
        (folder / "program").mkdir()
        (folder / "program/data").write_text("42\n")
        self.program = folder / "program.archive", pack(folder / "program", ["data"], folder / "program.archive")

    def archive(self, name: str, **files: Path) -> tuple[Path, str]:
        tree = self.folder / name
        tree.mkdir()
        for target, source in files.items():
            shutil.copy(source, tree / target)
        return self.folder / f"{name}.archive", pack(tree, list(files), self.folder / f"{name}.archive")

    def host(
        self, name: str = "box", *, power: str = "", facts: Mapping[str, object] = FACTS, **changes: object
    ) -> SshHost:
        tool = power or self.box.ipmitool
        target = {
            "resources": {"NetworkSerialPort": {"host": "127.0.0.1", "port": self.box.console.port, "protocol": "raw"}},
            "drivers": {
                "SerialDriver": {},
                "ExternalPowerDriver": {
                    "cmd_on": f"{tool} chassis power on",
                    "cmd_off": f"{tool} chassis power off",
                    "cmd_cycle": f"{tool} chassis power cycle",
                },
            },
        }
        settings = config.SshDriver(
            address="root@127.0.0.1",
            port=self.box.ssh_port,
            key_file=self.box.image.key,
            known_hosts=self.box.folder / "known_hosts",
            labgrid=target,
            cmdline="panic=5 oops=panic",
            silence=240.0,
            **changes,
        )
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        whole = config.Host(group="boxes", driver="ssh", ssh=settings)
        return SshHost(Place(name, folder, Clock(), facts), whole)

    def measure(self, host: SshHost, built: tuple[Path, str], line: str, *, fresh: bool = False, limit: int = 2**20):
        run = replace(RUN, signature=built[1], fresh_boot=fresh)
        program = Program(line, {"word": "it's"}, timeout_s=60.0, output_limit=limit)
        record = host.prepare(run, program, built[0], self.stop)
        out, err = self.folder / "out", self.folder / "err"
        ended = host.run(run, program, out, err, stop=self.stop)
        return record, ended, out.read_text(), err.read_text()

    def interrupting(self) -> Path:
        """A program whose write to the port of power management makes the chip set interrupt the processor."""
        source, program = self.folder / "smi.c", self.folder / "smi"
        source.write_text(
            "#include <sys/io.h>\nint main(void) { if (iopl(3)) return 1; outb(0x55, 0xb2); return 0; }\n"
        )
        subprocess.run(["gcc", "-O2", "-static", "-o", program, source], check=True)
        return program

    def switched(self) -> int:
        """How often somebody has switched the box on or off, or reset it."""
        return (self.box.folder / "chassis.log").read_text().count("set ")

    def comes_back(self, host: SshHost) -> str:
        """Wait until the box is up with a kernel that is none of ours, without doing anything for it: its command
        line."""
        deadline = time.monotonic() + 1500
        while True:
            with contextlib.suppress(InfraError):
                line = self.ask(host, "cat /proc/cmdline")
                if "bisectbot.boot=" not in line:
                    return line
            assert time.monotonic() < deadline, "the known-good kernel does not come back"
            time.sleep(1.0)

    def ask(self, host: SshHost, script: str) -> str:
        return host._box.shell.run(script).strip()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with box(tmp_path_factory.mktemp("box")) as real:
        subprocess.run([*real.ipmitool.split(), "chassis", "power", "on"], check=True, capture_output=True)
        yield Lab(tmp_path_factory.mktemp("lab"), real)


def test_a_kernel_is_booted_once_and_runs_stay_on_it(lab: Lab):
    host = lab.host()
    line = "echo ops: 42; echo $word >&2; sleep 1000 & echo $! > $BISECTBOT_RESULTS/pid; cat /proc/cmdline"
    record, ended, out, err = lab.measure(host, lab.good, line)
    assert record is not None
    assert (record.failure, record.phase) == ("", "verified")
    assert (ended.status, ended.cut, ended.left) == (0, Cut.NONE, 1)
    assert out.startswith("ops: 42\n")
    assert f"bisectbot.boot={record.key}" in out
    assert err == "it's\n"
    pid = host.results()["pid"].read_text().strip()
    assert lab.ask(host, f"[ -d /proc/{pid} ] && echo alive || echo gone") == "gone"
    assert host.disturbed() == ""
    facts = dict(host.facts())
    assert (facts["boot"], facts["cpus"]) == ("grub", "0-1")
    assert host.boots() == (record,)
    assert "bisectbot: starting" in host.logs()["console"].read_text(errors="replace")
    assert host.booted().boot == record.key
    again, ended, out, _ = lab.measure(lab.host(), lab.good, "yes", limit=65536)  # another worker, the same boot
    assert again == record
    assert ended.cut is Cut.OUTPUT
    assert len(out) <= 65536


def test_a_job_that_never_ends_is_cut_and_nothing_of_it_stays(lab: Lab):
    host = lab.host()
    _, ended, _, _ = lab.measure(host, lab.good, "sleep 100000 & sleep 100000")
    assert ended.cut is Cut.TIMEOUT
    assert lab.ask(host, "pgrep -c sleep; true") == "0"


def test_a_host_file_that_does_not_match_the_machine(lab: Lab):
    host = lab.host(facts={**FACTS, "nr_cpu": 1})
    with pytest.raises(InfraError, match=r"box is not what hosts/.*: nr_cpu is 1, the machine has 2"):
        lab.measure(host, lab.good, "true")


def test_a_system_management_interrupt_in_a_run_discards_it(lab: Lab):
    host = lab.host()
    lab.measure(host, lab.good, "true")
    assert host.disturbed() == ""
    host._box.shell.put(lab.interrupting().read_bytes(), "/root/smi")
    _, ended, _, err = lab.measure(host, lab.good, "chmod 755 /root/smi && /root/smi")
    assert (ended.status, err) == (0, "")
    assert re.fullmatch(r"\d+ system management interrupts", host.disturbed())


def test_a_full_disk_is_the_machines_fault(lab: Lab):
    host = lab.host()
    lab.ask(host, "fallocate -l $(($(df -Pk / | awk 'NR == 2 {print $4}') - 8192))K /big")
    other = (lab.good[0], "f" * 64)
    with pytest.raises(InfraError, match="are free in /boot/bisectbot"):
        lab.measure(host, other, "true")
    lab.ask(host, "rm /big")
    assert [record.blame for record in host.boots()] == ["nobody"]


def test_a_controller_that_cannot_be_reached_is_the_machines_fault(lab: Lab):
    host = lab.host("no-bmc", power=lab.box.ipmitool.replace(f"-p {lab.box.bmc_port}", "-p 1"))
    with pytest.raises(InfraError, match="no_power"):
        lab.measure(host, lab.good, "true")
    (record,) = host.boots()
    assert (record.failure, record.blame) == ("no_power", "machine")
    assert "secret-of-the-bmc" not in record.message
    assert "next_entry" not in lab.ask(host, "grub-editenv /boot/grub/grubenv list; true").replace("next_entry=\n", "")


def test_a_kernel_that_panics_in_a_run_is_followed_by_the_known_good_one(lab: Lab):
    lab.measure(lab.host(), lab.good, "true")
    host = lab.host()  # a worker that did not see the boot
    before = lab.switched()
    _, ended, _, _ = lab.measure(host, lab.good, "echo ops: 42; sync; echo c > /proc/sysrq-trigger")
    assert ended.cut is Cut.CRASHED
    assert re.match(r"panic \(verified\): .*Kernel panic - not syncing", ended.why)
    (*_, last) = host.boots()
    assert (last.failure, last.blame) == ("panic", "kernel")
    assert host.booted().signature == ""
    assert "root=/dev/vda1" in lab.comes_back(host)
    assert lab.switched() == before


def test_two_boots_that_panic_are_untestable_and_the_known_good_kernel_comes_back_by_itself(lab: Lab):
    host = lab.host()
    before = lab.switched()
    with pytest.raises(Untestable, match=r"2 boots died on box: panic .*Kernel panic - not syncing"):
        lab.measure(host, lab.dies, "echo ops: 42")
    assert [(record.failure, record.blame) for record in host.boots()] == [("panic", "kernel")] * 2
    resets = lab.switched()
    assert resets > before
    lab.comes_back(host)
    assert lab.switched() == resets  # two resets into the new kernel, none out of it


def test_kexec_starts_a_kernel_without_the_firmware_and_is_never_mixed_with_grub(lab: Lab):
    host = lab.host(boot="kexec")
    before = lab.switched()
    record, _, out, _ = lab.measure(host, lab.good, "cat /proc/cmdline")
    assert record is not None
    assert f"bisectbot.boot={record.key}" in out
    assert (record.failure, record.phase) == ("", "verified")
    assert "SeaBIOS" not in host.logs()["console"].read_text(errors="replace")
    assert lab.switched() == before
    assert dict(host.facts())["boot"] == "kexec"
    assert host.booted().boot == record.key
    assert lab.host().booted().boot == ""  # a host that boots by GRUB does not take what kexec has started


def test_a_program_is_measured_on_the_known_good_kernel_whatever_ran_before(lab: Lab):
    host = lab.host()
    record, ended, out, _ = lab.measure(host, lab.program, "cat /run/bisectbot/build/data /proc/cmdline")
    assert (record, ended.status) == (None, 0)
    assert out.startswith("42\n")
    assert "bisectbot.boot=" not in out
    facts = dict(host.facts())
    assert facts["kernel"] == lab.ask(host, "uname -r")
    assert "boot" not in facts
