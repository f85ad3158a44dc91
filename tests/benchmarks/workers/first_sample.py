"""`python -m tests.benchmarks.workers.first_sample [FOLDER]`: from "commit known" to "first sample" on QEMU, and the
share of a host's time that is no benchmark.

FOLDER is what ``bisectbot demo --kernel --dir FOLDER`` has left (kernels built by tuxmake, booted in QEMU); without
one, such a demo is run first, which takes some minutes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.config import load
from bisectbot.store.database import Database
from bisectbot.store.tables import Artifact, Boot, Build, Head, Host, Run, RunState


@dataclass(frozen=True)
class First:
    """Seconds since the head was fetched: waiting, building, the first run with its boot. Bytes that crossed the wire:
    the built kernel, and what the run delivered."""

    total: float
    build: float
    run: float
    built: int
    delivered: int


def first(session: Session, head: Head, archives: Path) -> First | None:
    """None for a head that was not measured, or whose build was another's."""
    query = (
        select(Run)
        .join(Build, Run.build_id == Build.id)
        .where(Build.commit_id == head.commit_id, Run.state == RunState.DONE, Run.branch_id == head.branch_id)
        .order_by(Run.finished)
        .limit(1)
    )
    run = session.execute(query).scalar_one_or_none()
    if run is None or run.finished is None or not run.build.artifact:
        return None
    delivered = session.execute(select(func.sum(Artifact.size)).where(Artifact.run_id == run.id)).scalar() or 0
    sha256 = run.build.artifact
    built = (archives / sha256[:2] / sha256[2:]).stat().st_size
    return First(run.finished - head.seen, run.build.seconds, run.host_s, built, int(delivered))


def report(folder: Path) -> None:
    config = load(folder / "bisectbot.yaml")
    database = Database(config.database_url)
    with database.read() as session:
        heads = session.execute(select(Head).order_by(Head.number)).scalars()
        found = [one for head in heads if (one := first(session, head, config.state / "artifacts")) is not None]
        print(f"{'':34} {'median':>10} {'least':>10} {'most':>10}   of {len(found)} heads")
        _row("commit known to first sample, s", [one.total for one in found])
        _row("  of it building, s", [one.build for one in found])
        _row("  of it boot and run, s", [one.run for one in found])
        _row("built kernel, bytes", [float(one.built) for one in found])
        _row("delivered with the run, bytes", [float(one.delivered) for one in found])
        for host in session.execute(select(Host).order_by(Host.name)).scalars():
            _share(session, host, exact=config.hosts[host.name].qemu.exact)
    database.dispose()


def _share(session: Session, host: Host, *, exact: bool) -> None:
    """What the host did between its first run and its last. An exact guest's own clock counts instructions: of its
    runs nobody knows how long they took here, so all but boots and waiting counts as run."""
    done = (Run.host_id == host.id, Run.host_s > 0)
    columns = (func.sum(Run.seconds), func.sum(Run.host_s), func.count(), func.min(Run.started), func.max(Run.finished))
    used, held, runs, began, ended = session.execute(select(*columns).where(*done)).one()
    if not runs or began is None or ended is None:
        return
    boots = session.execute(select(func.sum(Boot.seconds)).where(Boot.host_id == host.id)).scalar() or 0.0
    span, measuring = ended - began, held - boots if exact else used
    print(
        f"{host.name}: {runs} runs in {span:.0f} s; not in a benchmark run: {100 * (1 - measuring / span):.0f} %"
        f" ({100 * (1 - held / span):.0f} % waiting for builds and the like, {100 * boots / span:.0f} % booting)"
    )


def _row(what: str, values: list[float]) -> None:
    if values:
        numbers = " ".join(f"{value:10.1f}" for value in (statistics.median(values), min(values), max(values)))
        print(f"{what:34} {numbers}")


def main() -> None:
    if len(sys.argv) > 1:
        report(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory(prefix="first-sample-") as folder:
        demo = [sys.executable, "-m", "bisectbot", "demo", "--kernel", "--json", "--dir", folder]
        subprocess.run(demo, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        report(Path(folder))


if __name__ == "__main__":
    main()
