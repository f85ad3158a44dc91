"""Throughput of the service's database work, printed: ``python -m tests.benchmarks.service [--quick]``.

Claims per second with 32 workers that claim at once, and the time to plan a new head when the store holds a million
runs (a thousand with ``--quick``), on SQLite and on a private PostgreSQL.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from sqlalchemy import func, insert, select

from bisectbot.jobs.assignment import RunClaim
from bisectbot.service.claims import claim_run
from bisectbot.service.plan import plan
from bisectbot.service.watch import watch
from bisectbot.store.database import Database, now
from bisectbot.store.tables import Build, BuildState, Commit, Head, HeadState, Job, Purpose, Run, RunState
from tests.support.lab import GROUP, Lab, make_lab
from tests.support.postgres import Cluster

WORKERS = 32
CLAIMS = 512
HEADS = 5


def main() -> None:
    quick = "--quick" in sys.argv
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    for name, url in _databases():
        with tempfile.TemporaryDirectory() as folder:
            Database(url(folder)).upgrade()
            hosts = {f"{GROUP}-{number}": {"group": GROUP} for number in range(1, WORKERS + 1)}
            lab = make_lab(Path(folder), url(folder), {"hosts": hosts}, scale=1.0)
            print(f"{name}: {_claims(lab):.0f} claims/s with {WORKERS} workers claiming at once")
            for runs in (1_000, 100_000, 1_000_000)[: 1 if quick else 3]:
                _fill(lab, runs)
                print(f"{name}: {1000 * _plan(lab):.1f} ms to plan a new head with {runs:,} runs in the store")
            lab.context.database.dispose()


def _databases() -> Iterator[tuple[str, Callable[[str], str]]]:
    yield "SQLite", lambda folder: f"sqlite:///{folder}/bisectbot.db"
    with _cluster() as cluster:
        url = cluster.create()
        yield "PostgreSQL", lambda _: url


@contextmanager
def _cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.stop()


def _claims(lab: Lab) -> float:
    lab.upstream.push(lab.upstream.line([100.0])[0])
    lab.tick()
    lab.build()
    with lab.context.database.write() as session:
        run = session.execute(select(Run).limit(1)).scalar_one()
        values = {c: getattr(run, c) for c in ("build_id", "job_id", "group_id", "branch_id", "created")}
        values |= {"purpose": int(Purpose.NEWEST), "state": RunState.QUEUED}
        session.execute(insert(Run), [values] * CLAIMS)
    taken: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        host = f"{GROUP}-{number}"
        while True:
            given = claim_run(lab.context, RunClaim(host, f"worker-{number}"))
            with lock:
                if given is None or len(taken) >= CLAIMS:
                    return
                taken.append(given.run)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, WORKERS + 1)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken), "a run was given out twice"
    return len(taken) / (time.perf_counter() - start)


def _fill(lab: Lab, runs: int) -> None:
    """Finished runs of many commits, as years of measuring leave them."""
    with lab.context.database.write() as session:
        have = int(session.execute(select(func.count()).select_from(Run)).scalar_one())
        job = session.execute(select(Job)).scalars().first()
        build = session.execute(select(Build)).scalars().first()
        assert job is not None
        assert build is not None
        time_now = now(session)
        commits = max(1, (runs - have) // 300)
        blank = {"author_name": "", "author_mail": "", "author_date": 0.0, "subject": ""}
        rows = [{**blank, "sha": f"{have:020x}{n:020x}"} for n in range(commits)]
        ids = session.execute(insert(Commit).returning(Commit.id), rows).scalars().all()
        like = {"recipe": build.recipe, "recipe_digest": build.recipe_digest, "state": BuildState.READY}
        made = [{**like, "commit_id": commit, "created": time_now} for commit in ids]
        builds = session.execute(insert(Build).returning(Build.id), made).scalars().all()
        values = {"job_id": job.id, "group_id": job.group_id, "purpose": int(Purpose.NEWEST), "state": RunState.DONE,
                  "created": time_now, "finished": time_now}  # fmt: skip
        for start in range(0, runs - have, 20_000):
            stop = min(start + 20_000, runs - have)
            session.execute(insert(Run), [{**values, "build_id": builds[n % commits]} for n in range(start, stop)])


def _plan(lab: Lab) -> float:
    """Median seconds of planning one new head."""
    times = []
    for number in range(HEADS):
        lab.upstream.push(lab.upstream.line([100.0], start=1000 + number)[0])
        watch(lab.context)
        start = time.perf_counter()
        assert plan(lab.context) == 1
        times.append(time.perf_counter() - start)
    with lab.context.database.read() as session:
        planned = select(func.count()).where(Head.state == HeadState.PLANNED)
        assert session.execute(planned).scalar_one() >= 1
    return sorted(times)[HEADS // 2]


if __name__ == "__main__":
    main()
