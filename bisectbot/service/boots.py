"""Attempts to boot, as hosts tell them with their results: a row each, whatever became of them."""

from __future__ import annotations

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.results.delivery import BootRecord, RunDelivery
from bisectbot.service import catalog
from bisectbot.store.tables import Boot, Build, Host, Run

log = structlog.get_logger()


def keep_boots(session: Session, run: Run, host: Host, delivery: RunDelivery) -> None:
    """Keep every attempt that came with a result; the sound one in which it was made becomes the run's."""
    for record in delivery.boots:
        boot = _row(session, run, host, record)
        boot.phase, boot.failure, boot.blame = record.phase, record.failure, record.blame
        boot.message = record.message
        if record.failure:
            log.warning("a boot died", host=host.name, boot=record.key, how=record.message, blame=record.blame)
    if delivery.boot is not None:
        run.boot_id = _row(session, run, host, delivery.boot).id


def _row(session: Session, run: Run, host: Host, record: BootRecord) -> Boot:
    """A boot is told of again with each run in it, and once more if it dies in one."""
    build = run.build_id
    if record.signature and record.signature != run.build.signature:  # told late: of an attempt for another build
        other = session.execute(select(Build.id).where(Build.signature == record.signature).limit(1)).scalar()
        build = other if other is not None else build
    rest = {"host_id": host.id, "build_id": build, "started": record.started, "seconds": record.seconds}
    return catalog.find_or_add(session, Boot, {"key": record.key}, **rest)
