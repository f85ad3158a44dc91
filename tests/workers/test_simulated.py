"""The simulated host: what its model says, and the same again from the same seed."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest
import yaml

from bisectbot import config
from bisectbot.clock import Clock
from bisectbot.errors import InfraError, Untestable, UserError
from bisectbot.jobs.assignment import Job, RunAssignment
from bisectbot.jobs.kpi import Kpi
from workers.archive import pack
from workers.hosts import Host, Place, Program, attach
from workers.process import Cut, Stop

GOOD, BAD, DEAD = "a" * 40, "b" * 40, "d" * 40
RULES = [{"commit": "bbbb", "level": 90}, {"commit": "dddd", "boots": False}, {"file": "level", "pattern": r"=(\S+)"}]


class Lab:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = 0
        self.stop = Stop()
        (folder / "tree").mkdir()

    def host(self, name: str = "sim-1", **model: object) -> Host:
        file = self.folder / "model.yaml"
        file.write_text(yaml.safe_dump({"seed": 7, "rules": RULES, **model}))
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        settings = config.Host(group="g", driver="simulated", simulated=config.SimulatedDriver(model=file))
        return attach(Place(name, folder, Clock(scale=1e6)), settings)

    def measure(
        self, host: Host, commit: str = GOOD, *, fresh: bool = False, signature: str = ""
    ) -> float | Cut | None:
        self.run += 1
        job = Job("j", "j", "command", "g", (Kpi("ops"),))
        pack(self.folder / "tree", [file.name for file in (self.folder / "tree").iterdir()], self.folder / "archive")
        run = RunAssignment(self.run, 1, 90.0, "sim-1", job, commit, "", signature or commit, fresh)
        program = Program("", timeout_s=600.0)
        boot = host.prepare(run, program, self.folder / "archive", self.stop)
        assert boot
        assert host.booted().boot == boot.key
        out = self.folder / "out"
        ended = host.run(run, program, out, self.folder / "err", stop=self.stop)
        if ended.cut:
            return ended.cut
        return float(out.read_text().removeprefix("ops: ")) if ended.status == 0 else None


@pytest.fixture
def lab(tmp_path: Path):
    made = Lab(tmp_path)
    yield made
    made.stop.close()


def test_levels_by_commit_and_by_content(lab: Lab):
    host = lab.host(noise={"sigma": 0.0})
    assert [lab.measure(host, GOOD), lab.measure(host, BAD)] == [100.0, 90.0]
    (lab.folder / "tree" / "level").write_text("level=95.5\n")
    assert lab.measure(host, GOOD, signature="other") == 95.5


def test_the_same_seed_gives_the_same_lab(lab: Lab, tmp_path: Path):
    def values(name: str) -> list[object]:
        lab.run = 0
        host = lab.host(name, noise={"sigma": 1.0, "boot_sigma": 2.0, "outliers": 0.2, "outlier": 9.0})
        return [lab.measure(host, fresh=i % 3 == 0) for i in range(12)]

    first = values("sim-1")
    (tmp_path / "sim-1" / "booted.json").unlink()
    assert values("sim-1") == first
    assert values("sim-2") != first
    assert len(set(first)) == 12


def test_a_boot_is_kept_and_outlives_the_worker(lab: Lab):
    noise = {"sigma": 0.0, "boot_sigma": 5.0}
    values = [lab.measure(lab.host(noise=noise)) for _ in range(3)]
    assert len(set(values)) == 1
    assert lab.measure(lab.host(noise=noise), fresh=True) != values[0]


def test_noise_has_the_spread_that_was_asked_for(lab: Lab):
    host = lab.host(noise={"family": "t3", "sigma": 2.0, "modes": 0.3, "mode": -50.0})
    values = [v for _ in range(400) if isinstance(v := lab.measure(host, fresh=True), float)]
    low = [value for value in values if value < 75]
    assert 0.2 < len(low) / 400 < 0.4
    high = sorted(value for value in values if value >= 75)
    quartiles = statistics.quantiles(high, n=4)
    assert math.isclose(quartiles[2] - quartiles[0], 2 * 2.0 * 0.765, rel_tol=0.25)  # of Student's t, 3 d.f.


def test_faults(lab: Lab):
    assert lab.measure(lab.host(faults={"hang": 1.0})) is Cut.TIMEOUT
    assert lab.measure(lab.host(faults={"run": 1.0})) is None
    with pytest.raises(InfraError, match="connection lost"):
        lab.measure(lab.host(faults={"host": 1.0}))
    with pytest.raises(Untestable, match="2 boots died on sim-1"):
        lab.measure(lab.host(faults={"boot": 1.0}), fresh=True)
    with pytest.raises(Untestable, match="does not boot"):
        lab.measure(lab.host(), DEAD)
    assert lab.host().booted().signature == ""
    lab.stop.set("enough")
    with pytest.raises(InfraError, match="in the middle of a boot"):
        lab.measure(lab.host())


def test_a_wrong_model_says_where(lab: Lab):
    with pytest.raises(UserError, match=r"model.yaml:\d+: unknown key noise.sigm; did you mean sigma\?"):
        lab.host(noise={"sigm": 1})
    with pytest.raises(UserError, match="needs exactly one group"):
        lab.host(rules=[{"file": "x", "pattern": "abc"}])
