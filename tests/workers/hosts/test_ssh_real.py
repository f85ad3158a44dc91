"""The ssh driver on a box with Debian, GRUB, sshd, a serial console and an IPMI controller: everything but the iron."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot import config
from bisectbot.clock import Clock
from bisectbot.errors import InfraError
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from tests.support.box import Box, box
from workers.archive import pack
from workers.hosts import Place, Program
from workers.hosts.ssh import SshHost
from workers.process import Cut, Stop

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

JOB = Job("j", "j", "command", "boxes", (Kpi("ops"),))
RUN = RunAssignment(1, 1, 90.0, "box", JOB, "a" * 40, "", "")
FACTS = {"nr_cpu": 2, "nr_socket": 1, "nr_node": 1}


class Lab:
    """A box, its archives, and host drivers for it."""

    def __init__(self, folder: Path, real: Box) -> None:
        self.folder, self.box, self.stop = folder, real, Stop()
        made = real.image
        self.good = self.archive("good", bzImage=made.vmlinuz, **{"initrd.img": made.initrd})

    def archive(self, name: str, **files: Path) -> tuple[Path, str]:
        tree = self.folder / name
        tree.mkdir()
        for target, source in files.items():
            shutil.copy(source, tree / target)
        return self.folder / f"{name}.archive", pack(tree, list(files), self.folder / f"{name}.archive")

    def host(self, name: str = "box", *, power: str = "", **changes: object) -> SshHost:
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
        return SshHost(Place(name, folder, Clock(), FACTS), whole)

    def measure(self, host: SshHost, built: tuple[Path, str], line: str, *, fresh: bool = False, limit: int = 2**20):
        run = replace(RUN, signature=built[1], fresh_boot=fresh)
        program = Program(line, {"word": "it's"}, timeout_s=60.0, output_limit=limit)
        record = host.prepare(run, program, built[0], self.stop)
        out, err = self.folder / "out", self.folder / "err"
        ended = host.run(run, program, out, err, stop=self.stop)
        return record, ended, out.read_text(), err.read_text()

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
