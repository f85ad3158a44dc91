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
from dataclasses import dataclass
from pathlib import Path

import yaml

from bisectbot.clock import Clock
from bisectbot.config import Config, load
from bisectbot.demo.history import BRANCH
from bisectbot.demo.kernel import history
from bisectbot.demo.run import EXCLUSIVE, Display, Ending, Sink, free_port, perform, split_cpus
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.jobs.queues import BUILD_QUEUE
from bisectbot.source.git import PUBLISHED, Checkout, Git
from workers.builders import Built, Workshop
from workers.builders.kernel import KernelBuilder
from workers.hosts import Place, Program, attach
from workers.process import Stop
from workers.station import Station

GROUP, HOST, KPI = "exact-guest", "exact-guest-1", "paths.open_close"
COMMAND = "/bin/paths 4000 3"
BOOTS = 3
LEAST, SIGMAS = 4.0, 3.0  # percent, standard deviations: what the culprit costs at least
SHIFT = 5
"""An instruction of the guest takes 2^SHIFT ns."""
LIMIT_S = 1800.0
_PROGRAM = Path(__file__).with_name("paths.c")


@dataclass(frozen=True)
class Noise:
    """Boots of one kernel: the level (1/s) and one boot's standard deviation in percent of it."""

    level: float
    percent: float


def demo(folder: Path, seed: int, *, serve: bool, as_json: bool) -> Ending:
    """Run the demo in ``folder`` (empty or new); returns how it ended. Raises UserError for what this machine lacks."""
    display = Display(quiet=as_json)
    folder.mkdir(parents=True, exist_ok=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bisectbot" / "demo-kernel"
    cache.mkdir(parents=True, exist_ok=True)
    package = history.find_package()
    base = history.prepare(package, cache)
    display.say(f"source: {package}")
    sink = Sink()
    path, upstream = write_config(folder, cache, sink.port), folder / "upstream.git"
    config = load(path)
    _forget(config)
    noise = calibrate(config, base, display)
    percent = max(LEAST, SIGMAS * noise.percent)
    made = history.make(base, upstream, seed, percent, 1e9 / 2**SHIFT / noise.level)
    display.say(f"{BOOTS} boots of the first commit: {noise.level:.0f} opens/s, one varies by {noise.percent:.3f} %")
    display.say(f"planted among {made.commits} commits: opening a file costs {percent:.1f} % more")
    return perform(display, config, path, made, sink, split_cpus()[0], LIMIT_S, serve=serve, as_json=as_json)


def calibrate(config: Config, base: Git, display: Display) -> Noise:
    """Build the first commit where the service's builder will go on, and boot it a few times."""
    sha = base.resolve(history.BASE)
    base.run("update-ref", PUBLISHED + sha, sha)
    with tempfile.TemporaryDirectory(prefix="bisectbot-calibrate-", dir=config.worker.state) as desk:
        built = _build(config, base, sha, Path(desk))
        display.say(f"the first commit is built: {len(built.compiled)} files, signature {built.signature[:12]}")
        values = [_boot(config, sha, built, Path(desk)) for _ in range(BOOTS)]
    level = statistics.fmean(values)
    return Noise(level, 100 * statistics.stdev(values) / level)


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


def _boot(config: Config, sha: str, built: Built, desk: Path) -> float:
    """One boot and one run of the job, as a worker does them."""
    (job,) = config.units("paths")
    host = attach(Place(HOST, desk, Clock()), config.hosts[HOST])
    run = RunAssignment(0, 0, 90.0, HOST, job, sha, "", built.signature)
    program, stop = Program(COMMAND, timeout_s=job.timeout_s), Stop()
    host.prepare(run, program, built.archive, stop)
    stdout = desk / "stdout"
    host.run(run, program, stdout, desk / "stderr", stop=stop)
    host.clear()
    stop.close()
    return float(stdout.read_text(encoding="utf-8").split()[1])


def write_config(folder: Path, cache: Path, smtp_port: int) -> Path:
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
                "groups": [GROUP],
                "runs": 1,
                "timeout": "5m",
                "kpis": {KPI: {"unit": "opens/s", "better": "more", "least_effect": 3.0}},
            }
        },
        "costs": {"build": "10s", "boot": "3s", "run": "3s", "boot_failure": "5s", "builders": 1},
        "worker": {"state": str((cache / "workers").absolute()), "exclusive": EXCLUSIVE},
    }
    (folder / "hosts").mkdir(exist_ok=True)
    qemu = {"exact": True, "shift": SHIFT, "memory": 128, "overlay": str(overlay.absolute()), "exclusive": EXCLUSIVE}
    host = {"group": GROUP, "driver": "qemu", "qemu": qemu}
    (folder / "hosts" / f"{HOST}.yaml").write_text(yaml.safe_dump(host, sort_keys=False))
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
