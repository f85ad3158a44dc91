"""Attempts to boot, as rows: one each, with what they died of; only sound ones tell what a boot costs."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from bisectbot.results.delivery import BootRecord, Outcome, RunDelivery
from bisectbot.service.deliveries import deliver_run
from bisectbot.store.tables import Boot, Host, HostState, Run
from tests.support.lab import HOST, Lab

PANIC = ("panic", "kernel", "panic (kernel_started): Kernel panic - not syncing")


def rows(lab: Lab) -> list[tuple[str, str, str, float]]:
    with lab.context.database.read() as session:
        found = session.execute(select(Boot).order_by(Boot.id)).scalars()
        return [(boot.key, boot.failure, boot.blame, boot.seconds) for boot in found]


def claimed(lab: Lab):
    lab.upstream.push(lab.upstream.line([100.0])[-1])
    lab.tick()
    lab.build()
    given = lab.claim()
    assert given is not None
    return given


def test_every_attempt_is_a_row_and_the_sound_one_is_the_runs(lab: Lab):
    given = claimed(lab)
    dead = BootRecord("box-1", 60.0, 5.0, "kernel_started", *PANIC, given.signature)
    sound = BootRecord("box-2", 200.0, 90.0, "verified", signature=given.signature)
    done = replace(lab.measured(given), boot=sound, boots=(dead, sound))
    deliver_run(lab.context, done)
    assert rows(lab) == [("box-1", "panic", "kernel", 60.0), ("box-2", "", "", 200.0)]
    with lab.context.database.read() as session:
        run = session.get_one(Run, given.run)
        assert run.boot is not None
        assert run.boot.key == "box-2"


def test_two_dead_boots_leave_two_rows_and_no_verdict_on_the_host(lab: Lab):
    given = claimed(lab)
    dead = tuple(BootRecord(f"box-{n}", 60.0, 5.0, "kernel_started", *PANIC, given.signature) for n in (1, 2))
    message = "does not boot: 2 boots died"
    deliver_run(lab.context, RunDelivery(given.run, given.token, Outcome.UNTESTABLE, message, boots=dead))
    assert [row[1] for row in rows(lab)] == ["panic", "panic"]
    with lab.context.database.read() as session:
        host = session.execute(select(Host).where(Host.name == HOST)).scalar_one()
        assert (host.failures, host.state is HostState.SUSPECT) == (0, False)


def test_a_boot_that_dies_in_a_run_is_the_same_row(lab: Lab):
    given = claimed(lab)
    sound = BootRecord("box-2", 200.0, 90.0, "verified", signature=given.signature)
    died = replace(sound, phase="running", failure="panic", blame="kernel", message="panic (running): sysrq")
    failed = RunDelivery(given.run, given.token, Outcome.FAILED, "the kernel died", boot=sound, boots=(sound, died))
    deliver_run(lab.context, failed)
    assert rows(lab) == [("box-2", "panic", "kernel", 200.0)]
