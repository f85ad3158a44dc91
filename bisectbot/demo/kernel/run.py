"""The demo on real kernels: their history is pushed head by head, and the service builds, boots, measures and searches.

What takes long is kept in the user's cache and found again by the next demo: the imported source, the work tree, the
objects. All builds are done by one builder, and none while a guest measures.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bisectbot.clock import Clock
from bisectbot.config import Config, load
from bisectbot.demo.history import BRANCH
from bisectbot.demo.kernel import history
from bisectbot.demo.run import EXCLUSIVE, Display, Ending, Sink, free_port, perform
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.jobs.queues import BUILD_QUEUE
from bisectbot.source.git import PUBLISHED, Checkout, Git
from workers.builders import Built, Workshop
from workers.builders.kernel import KernelBuilder
from workers.hosts import Place, Program, attach
from workers.process import Stop
from workers.station import Station

COMMAND = "/bin/paths 4000 3"
BOOTS = 3
LEAST, SIGMAS = 4.0, 3.0  # percent, standard deviations: what the culprit costs at least
SHIFT = 5
"""An instruction of the guest takes 2^SHIFT ns."""
ALIGNED, SMALLEST = 5.0, 0.1
"""Percent: smaller effects are measured with aligned code too, all of them or none that the demo has."""
LIMIT_S = 1800.0
_PROGRAM = Path(__file__).with_name("paths.c")


@dataclass(frozen=True)
class Guest:
    """A host group of one virtual machine."""

    group: str
    qemu: dict[str, object]

    @property
    def host(self) -> str:
        return f"{self.group}-1"


EXACT = Guest("exact-guest", {"exact": True, "shift": SHIFT})
TIMED = Guest("timed-guest", {"accel": "tcg"})
"""One counts instructions and has no noise of its own; the other takes its time, and has much."""


@dataclass(frozen=True)
class Part:
    """How much of the demo is played: its commits, its guests, and whether kernels are built with aligned code too."""

    sizes: history.Sizes
    guests: tuple[Guest, ...]
    alignment: bool


WHOLE = Part(history.WHOLE, (EXACT, TIMED), alignment=True)
CUT = Part(history.LEAST, (EXACT,), alignment=False)
"""What tests have time for: nothing is built from nothing twice."""


@dataclass(frozen=True)
class Noise:
    """Boots of one kernel: the level (1/s) and one boot's standard deviation in percent of it."""

    level: float
    percent: float

    def __str__(self) -> str:
        return f"{self.level:.0f} opens/s, one varies by {self.percent:.3f} %"


def demo(folder: Path, seed: int, *, serve: bool, as_json: bool) -> Ending:
    """Run the demo in ``folder`` (empty or new); returns how it ended. Raises UserError for what this machine lacks."""
    return play(folder, seed, WHOLE, serve=serve, as_json=as_json)


def play(folder: Path, seed: int, part: Part, *, serve: bool, as_json: bool) -> Ending:
    """Run a part of the demo, as `demo`."""
    display = Display(quiet=as_json)
    folder.mkdir(parents=True, exist_ok=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bisectbot" / "demo-kernel"
    cache.mkdir(parents=True, exist_ok=True)
    package = history.find_package()
    base = history.prepare(package, cache)
    display.say(f"source: {package}")
    sink = Sink()
    path, upstream = write_config(folder, cache, sink.port, part), folder / "upstream.git"
    config = load(path)
    _forget(config)
    noise = calibrate(config, base, display, part.guests)[EXACT.group]
    percent = max(LEAST, SIGMAS * noise.percent)
    made = history.make(base, upstream, seed, percent, 1e9 / 2**SHIFT / noise.level, part.sizes)
    display.say(f"planted among {made.commits} commits: opening a file costs {percent:.1f} % more instructions")
    cpus = sorted(os.sched_getaffinity(0))  # all: nothing is built while a guest measures
    return perform(display, config, path, made, sink, cpus, LIMIT_S, serve=serve, as_json=as_json)


def calibrate(config: Config, base: Git, display: Display, guests: Sequence[Guest]) -> dict[str, Noise]:
    """Build the first commit where the service's builder will go on, and boot it a few times in each guest."""
    sha = base.resolve(history.BASE)
    base.run("update-ref", PUBLISHED + sha, sha)
    with tempfile.TemporaryDirectory(prefix="bisectbot-calibrate-", dir=config.worker.state) as desk:
        built = _build(config, base, sha, Path(desk))
        display.say(f"the first commit is built: {len(built.compiled)} files, signature {built.signature[:12]}")
        found = {}
        for guest in guests:
            values = [_boot(config, guest, sha, built, Path(desk)) for _ in range(BOOTS)]
            level = statistics.fmean(values)
            found[guest.group] = Noise(level, 100 * statistics.stdev(values) / level)
            display.say(f"{BOOTS} boots of it in {guest.group}: {found[guest.group]}")
    return found


def _build(config: Config, base: Git, sha: str, desk: Path) -> Built:
    station = Station.of(config, BUILD_QUEUE, Clock())
    checkout = Checkout(station.folder / "git")
    checkout.fetch(str(base.path.absolute()), sha)
    keep = station.folder / "out" / "slot0"
    shop = Workshop(
        checkout.tree(sha, "slot0"),
        desk,
        keep,
        station.folder,
        "demo",
        Clock(),
        Stop(),
        jobs=len(os.sched_getaffinity(0)),
    )
    return KernelBuilder().build(config.builds["kernel"].recipe("kernel"), shop, desk / "build.log")


def _boot(config: Config, guest: Guest, sha: str, built: Built, desk: Path) -> float:
    """One boot and one run of the job, as a worker does them."""
    job = next(job for job in config.units("paths") if job.group == guest.group)
    host = attach(Place(guest.host, desk, Clock()), config.hosts[guest.host])
    run = RunAssignment(0, 0, 90.0, guest.host, job, sha, "", built.signature)
    program, stop = Program(COMMAND, timeout_s=job.timeout_s), Stop()
    host.prepare(run, program, built.archive, stop)
    stdout = desk / "stdout"
    host.run(run, program, stdout, desk / "stderr", stop=stop)
    host.clear()
    stop.close()
    return float(stdout.read_text(encoding="utf-8").split()[1])


def write_config(folder: Path, cache: Path, smtp_port: int, part: Part) -> Path:
    """The demo's configuration: an ordinary one."""
    port = free_port()
    overlay = cache / "overlay"
    (overlay / "bin").mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-static", "-o", overlay / "bin/paths", _PROGRAM], check=True)
    config = {
        "state": "state",
        "tick": "0.5s",
        "server": {"listen": f"127.0.0.1:{port}", "url": f"http://127.0.0.1:{port}"},
        "mail": {
            "sender": "bisectbot <bisectbot@demo.example.org>",
            "operators": ["operator@demo.example.org"],
            "policy": "author",
            "smtp": {"host": "127.0.0.1", "port": smtp_port},
        },
        "trees": {
            "demo": {
                "url": str((folder / "upstream.git").absolute()),
                "interval": "1s",
                "branches": {BRANCH: {"build": "kernel", "jobs": ["paths"]}},
            }
        },
        "builds": {
            "kernel": {"builder": "kernel", "kconfig": "tinyconfig", "fragments": ["tiny-guest"], "timeout": "40m"}
        },
        "jobs": {
            "paths": {
                "command": COMMAND,
                "groups": [guest.group for guest in part.guests],
                "runs": 1,
                "timeout": "5m",
                "kpis": {"paths.open_close": {"unit": "opens/s", "better": "more", "least_effect": 3.0}},
            }
        },
        "bisection": {"verify": {"alignment_below": ALIGNED if part.alignment else SMALLEST}},
        "costs": {"build": "10s", "boot": "3s", "run": "3s", "boot_failure": "5s", "builders": 1},
        "worker": {"state": str((cache / "workers").absolute()), "exclusive": EXCLUSIVE},
    }
    (folder / "hosts").mkdir(exist_ok=True)
    for guest in part.guests:
        qemu = {**guest.qemu, "memory": 128, "overlay": str(overlay.absolute()), "exclusive": EXCLUSIVE}
        host = {"group": guest.group, "driver": "qemu", "qemu": qemu}
        (folder / "hosts" / f"{guest.host}.yaml").write_text(yaml.safe_dump(host, sort_keys=False))
    path = folder / "bisectbot.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _forget(config: Config) -> None:
    """Remove what an earlier demo's workers kept for their own service, all but the builder's work tree and objects."""
    state = config.worker.state
    state.mkdir(parents=True, exist_ok=True)
    for folder in state.iterdir():
        if folder.name != BUILD_QUEUE:
            shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(state / BUILD_QUEUE / "spool", ignore_errors=True)
