"""The boot's state machine: what recorded and made-up consoles say, in whatever pieces they arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.hosts.watch import BLAME, Blame, BootWatch, Failure, Limits, Phase

FIRMWARE = b"SeaBIOS (version 1.16.2)\r\n\r\niPXE 1.21 (http://ipxe.org)\r\nBooting from Hard Disk...\r\n"
GRUB = b"GRUB loading.\r\nWelcome to GRUB!\r\n\x1b[0m\x1b[30;47mbisectbot: starting box-1a2b\x1b[m\r\n"
BANNER = b"[    0.000000] Linux version 6.1.0-57-cloud-amd64 (debian-kernel@lists.debian.org) (gcc-12) #1 SMP\r\n"
BOOT = b"[    0.000000] Command line: console=ttyS0\r\n[    0.213000] smp: Brought up 1 node, 2 CPUs\r\n"
LOGIN = b"\r\nDebian GNU/Linux 12 box ttyS0\r\n\r\nbox login: "
PANIC = b"[    3.101000] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n"
TRACE = b"[    3.101000] CPU: 0 PID: 1 Comm: swapper/0\r\n[    3.101000] Call Trace:\r\n"
OOPS = b"[   12.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n"
MCE = b"[    1.000000] mce: [Hardware Error]: Machine check events logged\r\n"

LIMITS = Limits(firmware_s=480, kernel_s=900, silence_s=180, userspace_s=900, ssh_s=300)


def watching(*said: bytes, then: float = 0.0) -> BootWatch:
    """A watch after a reset at 0 that heard ``said``, a second apiece, and then ``then`` seconds of nothing."""
    watch = BootWatch(LIMITS)
    watch.reset(0.0)
    now = 0.0
    for piece in said:
        now += 1.0
        watch.feed(piece, now)
        watch.tick(now)
    watch.tick(now + then)
    return watch


SOUND = (FIRMWARE, GRUB, BANNER, BOOT, LOGIN)

ROWS: dict[str, tuple[tuple[bytes, ...], float, Failure | None, Phase]] = {
    "a sound boot": (SOUND, 0, None, Phase.USERSPACE),
    "a sound quiet boot": ((FIRMWARE, GRUB, LOGIN), 0, None, Phase.USERSPACE),
    "a sound boot by another loader": ((BANNER, BOOT, LOGIN), 0, None, Phase.USERSPACE),
    "still in its firmware": ((FIRMWARE,), 800, None, Phase.FIRMWARE),
    "not a byte": ((), 481, Failure.NO_FIRMWARE, Phase.RESETTING),
    "a firmware that finds no disk": ((FIRMWARE, b"No bootable device.\r\n"), 901, Failure.NO_KERNEL, Phase.FIRMWARE),
    "a hang": ((FIRMWARE, GRUB, BANNER, BOOT), 181, Failure.KERNEL_HANG, Phase.KERNEL_STARTED),
    "a quiet hang": ((FIRMWARE, GRUB), 181, Failure.KERNEL_HANG, Phase.KERNEL_STARTED),
    "a panic": ((FIRMWARE, GRUB, BANNER, BOOT, PANIC, TRACE), 0, Failure.PANIC, Phase.KERNEL_STARTED),
    "a panic and the way back": (
        (FIRMWARE, GRUB, BANNER, PANIC, FIRMWARE, GRUB, BANNER, LOGIN), 0, Failure.PANIC, Phase.KERNEL_STARTED,
    ),
    "an oops": ((FIRMWARE, GRUB, BANNER, OOPS), 0, Failure.OOPS, Phase.KERNEL_STARTED),
    "a soft lockup": (
        (*SOUND, b"[ 44.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [x:1]\r\n"),
        0, Failure.LOCKUP, Phase.USERSPACE,
    ),
    "an RCU stall": (
        (*SOUND, b"[ 44.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\r\n"),
        0, Failure.LOCKUP, Phase.USERSPACE,
    ),
    "a hung task": (
        (*SOUND, b"[ 244.0] INFO: task jbd2/vda1-8:99 blocked for more than 120 seconds.\r\n"),
        0, Failure.LOCKUP, Phase.USERSPACE,
    ),
    "a triple fault": ((FIRMWARE, GRUB, BANNER, BOOT, FIRMWARE), 0, Failure.SELF_REBOOT, Phase.KERNEL_STARTED),
    "a second banner": ((FIRMWARE, GRUB, BANNER, BOOT, BANNER), 0, Failure.SELF_REBOOT, Phase.KERNEL_STARTED),
    "a quiet second start": ((GRUB, GRUB), 0, Failure.SELF_REBOOT, Phase.KERNEL_STARTED),
    "a machine that cannot be reached": (SOUND, 301, Failure.SSH_LOST, Phase.USERSPACE),
    "broken memory": ((FIRMWARE, GRUB, BANNER, MCE, LOGIN), 0, Failure.SICK, Phase.KERNEL_STARTED),
    "broken memory that panics": ((FIRMWARE, GRUB, BANNER, PANIC, MCE), 0, Failure.SICK, Phase.KERNEL_STARTED),
    "a fatal machine check": (
        (BANNER, b"[ 9.0] Kernel panic - not syncing: Fatal machine check\r\n"), 0, Failure.SICK, Phase.KERNEL_STARTED,
    ),
    "correctable errors": (
        (*SOUND, b"[ 77.0] EDAC MC0: 1 CE memory read error on CPU_SrcID#0\r\n"), 0, Failure.SICK, Phase.USERSPACE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_console_says(row: tuple[tuple[bytes, ...], float, Failure | None, Phase]):
    said, then, failure, phase = row
    watch = watching(*said, then=then)
    assert (watch.death.failure if watch.death else None) == failure
    assert (watch.death.phase if watch.death else watch.phase) == phase
    if watch.death:
        assert watch.death.blame is BLAME[watch.death.failure]
        assert watch.death.why


def test_a_kernel_that_prints_without_end_is_told_from_one_that_hangs():
    watch = watching(FIRMWARE, GRUB, BANNER)
    for second in range(4, 910):
        watch.feed(b"[ 5.0] usb 1-1: device descriptor read/64, error -71\n" * 100, second)
        watch.tick(second)
    assert watch.death is not None
    assert watch.death.failure is Failure.NO_USERSPACE
    assert len(watch._line) == 0


def test_one_line_without_end_costs_no_memory():
    watch = watching(BANNER)
    for second in range(20):
        watch.feed(b"\xff" * 100_000, second)
    assert len(watch._line) < 4096
    assert watch.death is None


def test_what_is_worth_a_note_is_no_death():
    watch = watching(
        *SOUND, b"[ 9.0] mce: CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)\n" * 99
    )
    assert watch.death is None
    assert len(watch.notes) == 20


def test_a_boot_that_somebody_else_watched_may_still_die():
    watch = BootWatch(LIMITS)
    watch.attend(0.0)
    watch.tick(1e6)
    assert (watch.death, watch.phase) == (None, Phase.VERIFIED)
    watch.feed(FIRMWARE, 1e6)
    assert watch.death is not None
    assert (watch.death.failure, watch.death.blame) == (Failure.SELF_REBOOT, Blame.KERNEL)


def test_a_reset_on_purpose_forgets_what_was_before():
    watch = watching(*SOUND)
    watch.reset(100.0)
    assert watch.phase is Phase.RESETTING
    for second, piece in enumerate(SOUND):
        watch.feed(piece, 101.0 + second)
    assert (watch.death, watch.phase, watch.started) == (None, Phase.USERSPACE, 1)


@given(st.sampled_from(sorted(ROWS)), st.lists(st.integers(1, 60), max_size=40))
def test_the_pieces_make_no_difference(name: str, sizes: list[int]):
    said = ROWS[name][0]
    stream, watch, at = b"".join(said), BootWatch(LIMITS), 0
    watch.reset(0.0)
    for size in sizes:
        watch.feed(stream[at : at + size], 1.0)
        at += size
    watch.feed(stream[at:], 1.0)
    spoken = watching(*said)
    assert (watch.death and watch.death.failure) == (spoken.death and spoken.death.failure)
    assert (watch.phase, watch.started) == (spoken.phase, spoken.started)


@given(
    st.lists(
        st.one_of(st.binary(max_size=200), st.sampled_from([p for said, *_ in ROWS.values() for p in said])),
        max_size=30,
    )
)
def test_no_console_ever_breaks_the_watch(pieces: list[bytes]):
    watch = watching(*pieces)
    first = watch.death
    watch.feed(PANIC + BANNER + BANNER, 100.0)
    assert watch.death is not None
    if first is not None:
        assert watch.death == first  # the first cause stays


@given(
    st.lists(st.tuples(st.sampled_from([FIRMWARE, GRUB, BANNER, BOOT, LOGIN, b""]), st.floats(0, 1000)), max_size=20)
)
def test_phases_never_go_back_and_only_kernels_are_blamed_after_they_started(story: list[tuple[bytes, float]]):
    watch, now, seen = BootWatch(LIMITS), 0.0, Phase.RESETTING
    watch.reset(0.0)
    for piece, wait in story:
        watch.feed(piece, now)
        now += wait
        watch.tick(now)
        assert not watch.phase.before(seen)
        seen = watch.phase
    if watch.death and watch.death.blame is Blame.KERNEL:
        assert watch.started >= 1
