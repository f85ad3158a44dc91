"""This machine as a host, on files that say what its processors do: set, read back, looked at before and after."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bisectbot import config
from bisectbot.clock import Clock
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from bisectbot.results.delivery import Outcome, RunDelivery
from tests.workers.server import TOKEN, Server
from workers.archive import pack
from workers.hosts import Place
from workers.hosts.here import Here
from workers.hosts.inventory import CPU, Expected
from workers.hosts.local import LocalHost
from workers.hosts.ready import SMI, THP, Ready, make_ready
from workers.running import take_run
from workers.station import Station

HOST = "here-1"
FILES = {
    "/proc/meminfo": "MemTotal:       16384000 kB\n",
    f"{CPU}/online": "0-1\n",
    f"{CPU}/smt/control": "on\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    "/sys/devices/system/node/online": "0\n",
    THP: "always\n",
    **{f"{CPU}/cpu{n}/cpufreq/scaling_governor": "powersave\n" for n in range(2)},
    **{f"{CPU}/cpu{n}/topology/physical_package_id": "0\n" for n in range(2)},
    **{f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "5\n" for n in range(2)},
}


class Lab:
    """A machine of files, and a station beside it that a server gives runs."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.root, self.server, self.runs = folder / "machine", server, 0
        for path, text in FILES.items():
            self.file(path).parent.mkdir(parents=True, exist_ok=True)
            self.file(path).write_text(text)
        (folder / "token").write_text(TOKEN)
        (folder / "build").mkdir()
        (folder / "build/data").write_text("42\n")
        self.signature = pack(folder / "build", ["data"], folder / "archive")
        self.artifact = server.store((folder / "archive").read_bytes())
        (folder / "hosts").mkdir()
        exclusive = f"test-{uuid.uuid4().hex[:12]}"
        self.lock = Path(f"/run/lock/bisectbot-{exclusive}.lock")
        driver = {"group": "lab", "driver": "local", "local": {"exclusive": exclusive}}
        (folder / "hosts" / f"{HOST}.yaml").write_text(yaml.safe_dump(driver))
        settings = {
            "server": {"url": server.url, "token_file": "token"},
            "worker": {"state": "state"},
            "trees": {"t": {"url": "/nowhere", "branches": {"master": {"build": "b", "jobs": ["j"]}}}},
            "builds": {"b": {"command": "make"}},
            "jobs": {"j": {"command": "./bench", "groups": ["lab"], "kpis": {"ops": {"better": "more"}}}},
        }
        (folder / "bisectbot.yaml").write_text(yaml.safe_dump(settings))
        self.station = Station.of(config.load(folder / "bisectbot.yaml"), HOST, Clock())

    def file(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        return self.file(path).read_text().strip()

    def host(self, ready: dict[str, object] | None = None, **facts: object) -> LocalHost:
        settings = config.Host.model_validate({"group": "lab", "driver": "local", "ready": ready or {}})
        place = Place(HOST, self.station.folder, self.station.clock, facts)
        return LocalHost(place, settings, Here(self.root))

    def run(self, host: LocalHost, line: str = "echo ops: $(cat data)", **job: object) -> RunDelivery:
        self.runs += 1
        what = Job("j", "j", "command", "lab", (Kpi("ops"),), line, monitors=(), **job)  # type: ignore[arg-type]
        given = RunAssignment(self.runs, 1, 90.0, HOST, what, "c" * 40, self.artifact, self.signature)
        self.server.runs.append(given)
        take_run(self.station, host)
        delivery = self.server.delivered[-1]
        assert isinstance(delivery, RunDelivery)
        assert delivery.run == self.runs
        return delivery


@pytest.fixture
def lab(tmp_path: Path, server: Server) -> Iterator[Lab]:
    made = Lab(tmp_path, server)
    yield made
    made.lock.unlink(missing_ok=True)


def test_what_the_host_file_says_is_set_on_every_cpu(lab: Lab):
    host = lab.host({"governor": "performance", "turbo": False, "smt": False, "thp": "never"})
    assert lab.run(host).outcome is Outcome.DONE
    assert [lab.read(f"{CPU}/cpu{n}/cpufreq/scaling_governor") for n in range(2)] == ["performance"] * 2
    assert lab.read(f"{CPU}/intel_pstate/no_turbo") == "1"
    assert (lab.read(f"{CPU}/smt/control"), lab.read(THP)) == ("off", "never")


def test_a_job_s_own_governor_is_stronger(lab: Lab):
    assert lab.run(lab.host({"governor": "schedutil"}), params=(("cpufreq_governor", "performance"),)).samples
    assert lab.read(f"{CPU}/cpu1/cpufreq/scaling_governor") == "performance"


def test_what_is_not_said_is_left_as_found(lab: Lab):
    assert lab.run(lab.host()).outcome is Outcome.DONE
    assert {path: lab.file(path).read_text() for path in FILES} == FILES


def test_a_cpu_that_does_not_take_its_governor_measures_nothing(lab: Lab):
    stuck = lab.file(f"{CPU}/cpu1/cpufreq/scaling_governor")
    stuck.unlink()
    stuck.symlink_to("/proc/version")  # can be read, takes nothing
    delivery = lab.run(lab.host({"governor": "performance"}))
    assert delivery.outcome is Outcome.INFRA
    assert "here-1 is not ready" in delivery.message
    assert "cpu1/cpufreq/scaling_governor is Linux version" in delivery.message
    assert delivery.samples == ()


def test_a_machine_without_the_knob_cannot_be_asked_for_it(lab: Lab):
    for path in (f"{CPU}/intel_pstate/no_turbo", THP, *(p for p in FILES if p.endswith("scaling_governor"))):
        lab.file(path).unlink()
    delivery = lab.run(lab.host({"governor": "performance", "turbo": False, "thp": "never"}))
    assert delivery.message == (
        "here-1 is not ready: no frequency governor to set to performance; no switch for turbo; "
        "no switch for transparent huge pages"
    )


def test_a_host_file_that_does_not_match_the_machine(lab: Lab):
    delivery = lab.run(lab.host(nr_cpu=128, nr_socket=2, memory="256G"))
    assert delivery.outcome is Outcome.INFRA
    assert delivery.message == (
        "here-1 is not what hosts/*.yaml says: nr_cpu is 128, the machine has 2; nr_socket is 2, the machine has 1; "
        "memory is 256G, the machine has 16G"
    )
    assert lab.run(lab.host(nr_cpu=2, nr_socket=1, nr_node=1, memory="16G")).outcome is Outcome.DONE
    with pytest.raises(UserError, match="no size like 256G"):
        lab.host(memory="lots")


def test_heat_in_a_run_discards_it(lab: Lab):
    hot = lab.file(f"{CPU}/cpu1/thermal_throttle/core_throttle_count")
    delivery = lab.run(lab.host(), f"echo 7 > {hot}; echo ops: 41")
    assert delivery.outcome is Outcome.INFRA
    assert delivery.message == "here-1: processors were slowed for heat 2 times; the run is discarded"
    assert (delivery.samples, delivery.stats) == ((), ())
    assert lab.run(lab.host()).outcome is Outcome.DONE  # what was before the run does not count


def test_a_system_management_interrupt_in_a_run_discards_it(lab: Lab):
    msr = lab.file("/dev/cpu/0/msr")
    msr.parent.mkdir(parents=True)
    msr.write_bytes(bytes(0x34) + (7).to_bytes(8, "little"))
    assert lab.host()._here.look()[SMI] == "7"
    assert lab.run(lab.host()).outcome is Outcome.DONE
    line = rf"printf '\011' | dd of={msr} bs=1 seek=52 conv=notrunc 2> /dev/null; echo ops: 41"
    delivery = lab.run(lab.host(), line)
    assert delivery.message == "here-1: 2 system management interrupts; the run is discarded"


def test_this_machine_can_be_looked_at():
    files = Here().look()
    assert f"Linux version {os.uname().release}" in files["/proc/version"]
    assert f"{CPU}/online" in files
    with pytest.raises(InfraError, match="nr_cpu is 9999"):
        make_ready("here-1", Here(), Ready(), Expected(cpus=9999))
