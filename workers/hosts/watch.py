"""What a boot's console says: how far it has come, and what it died of. Pure: bytes and times in, a verdict out.

Words and limits are those of a farm with serial consoles; every failure has a name, and every name has somebody to
blame: a commit is skipped only for what is certainly the kernel's fault.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass


class Phase(enum.StrEnum):
    """How far an attempt to boot has come, in this order."""

    RESERVED = "reserved"
    INSTALLING = "installing"
    ARMING = "arming"
    RESETTING = "resetting"
    FIRMWARE = "firmware"
    KERNEL_STARTED = "kernel_started"
    USERSPACE = "userspace"
    VERIFIED = "verified"
    RUNNING = "running"
    COLLECTING = "collecting"
    RESTORING = "restoring"
    IDLE = "idle"

    def before(self, other: Phase) -> bool:
        order = list(Phase)
        return order.index(self) < order.index(other)


class Blame(enum.StrEnum):
    """Whose fault a failure is. ``UNKNOWN``: the known-good kernel on the same machine decides."""

    KERNEL = "kernel"
    MACHINE = "machine"
    UNKNOWN = "unknown"
    NOBODY = "nobody"


class Failure(enum.StrEnum):
    """What a boot died of."""

    NO_POWER = "no_power"
    """The power switch (BMC) cannot be reached or refuses."""
    NO_FIRMWARE = "no_firmware"
    """Not a byte on the console after the reset."""
    NO_KERNEL = "no_kernel"
    """The firmware speaks, but no kernel is ever started."""
    KERNEL_HANG = "kernel_hang"
    """Silence after the kernel was started."""
    NO_USERSPACE = "no_userspace"
    """The kernel speaks, but userspace never comes."""
    PANIC = "panic"
    OOPS = "oops"
    LOCKUP = "lockup"
    """Soft or hard lockup, RCU stall, hung task: a processor or a task that is stuck."""
    SELF_REBOOT = "self_reboot"
    """A second banner: the machine was reset without a word, by a triple fault mostly."""
    WRONG_KERNEL = "wrong_kernel"
    """Up, but it is not the kernel that was armed."""
    HALF_UP = "half_up"
    """Up with fewer processors, nodes or less memory than the machine has."""
    SSH_LOST = "ssh_lost"
    """Userspace is up as the console says, but the machine cannot be reached."""
    SICK = "sick"
    """The hardware reports errors."""
    INTERRUPTED = "interrupted"
    """The worker itself ended in the middle."""


BLAME = {
    Failure.NO_POWER: Blame.MACHINE,
    Failure.NO_FIRMWARE: Blame.MACHINE,
    Failure.NO_KERNEL: Blame.MACHINE,
    Failure.KERNEL_HANG: Blame.KERNEL,
    Failure.NO_USERSPACE: Blame.KERNEL,
    Failure.PANIC: Blame.KERNEL,
    Failure.OOPS: Blame.KERNEL,
    Failure.LOCKUP: Blame.KERNEL,
    Failure.SELF_REBOOT: Blame.KERNEL,
    Failure.WRONG_KERNEL: Blame.MACHINE,
    Failure.HALF_UP: Blame.UNKNOWN,
    Failure.SSH_LOST: Blame.UNKNOWN,
    Failure.SICK: Blame.MACHINE,
    Failure.INTERRUPTED: Blame.NOBODY,
}


@dataclass(frozen=True)
class Death:
    """How a boot ended before its time. ``why`` quotes the console's line or says what was waited for."""

    failure: Failure
    phase: Phase
    why: str
    blame: Blame

    def __str__(self) -> str:
        return f"{self.failure} ({self.phase}): {self.why}"


def death(failure: Failure, phase: Phase, why: str) -> Death:
    """A death with the blame that its kind usually has."""
    return Death(failure, phase, why, BLAME[failure])


@dataclass(frozen=True)
class Limits:
    """How long to wait, in seconds: for the first byte after a reset, for a kernel, for the next byte of a kernel that
    is booting, for userspace after the kernel started, for a connection after userspace came up."""

    firmware_s: float = 480.0
    kernel_s: float = 900.0
    silence_s: float = 180.0
    userspace_s: float = 900.0
    ssh_s: float = 300.0


MARKER = "bisectbot: starting "
"""What a boot loader entry of ours prints before the kernel; the boot's key follows."""

LINE_LIMIT = 4096  # bytes; a longer line is taken as several
QUOTE = 160  # characters of a line that are kept
NOTES = 20

_DEATHS: tuple[tuple[Failure, bytes], ...] = (
    # Hardware first: a fatal machine check panics as well, and is still nobody's commit.
    (Failure.SICK, rb"\[Hardware Error\]|EDAC \S+ .*(?: CE | UE )|[Ff]atal [Mm]achine check|Machine check: "),
    (Failure.PANIC, rb"Kernel panic - not syncing"),
    (Failure.OOPS, rb"BUG: kernel NULL pointer|BUG: unable to handle|general protection fault|kernel BUG at "),
    (Failure.OOPS, rb"double fault: |(?:Oops|invalid opcode|stack segment): [0-9a-f]{4}"),
    (Failure.LOCKUP, rb"BUG: soft lockup|[Hh]ard LOCKUP|INFO: task .* blocked for more than|BUG: workqueue lockup"),
    (Failure.LOCKUP, rb"rcu: INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stall|rcu_\w+ kthread starved"),
)
_NOTES = rb"clock throttled|Marking clocksource|clocksource: .* unstable|perf: interrupt took too long|WARNING: CPU:"
_STARTED = rb"(?:^|\r)(?:\[ *0\.000000\][^\n]{0,40})?Linux version \d|" + MARKER.encode()
_FIRMWARE = rb"SeaBIOS \(version|GRUB loading|GNU GRUB|iPXE \d|BIOS Date:|UEFI Interactive Shell|Booting from "
_USERSPACE = rb"\blogin: *(?:$|\[)|systemd\[1\]: Reached target .*(?:Multi-User|multi-user)"

_death_patterns = [(failure, re.compile(pattern)) for failure, pattern in _DEATHS]
_notes = re.compile(_NOTES)
_started = re.compile(_STARTED)
_firmware = re.compile(_FIRMWARE)
_userspace = re.compile(_USERSPACE)
_interesting = re.compile(
    b"|".join([pattern for _, pattern in _DEATHS] + [_NOTES, _STARTED, _FIRMWARE, _USERSPACE]), re.MULTILINE
)
_escape = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>c78])")


class BootWatch:
    """One attempt, from the reset to the end of its last run. Times are seconds of one monotonic clock."""

    def __init__(self, limits: Limits) -> None:
        self.phase = Phase.RESERVED
        self.death: Death | None = None
        self.notes: list[str] = []
        self.started = 0
        """How many kernels have been started since the reset."""
        self.heard = 0
        """Bytes since the reset."""
        self._limits = limits
        self._line = bytearray()
        self._since = 0.0
        self._last = 0.0
        self._marked = False

    def reached(self, phase: Phase, now: float) -> None:
        """The driver knows more than the console says: never goes back."""
        if self.phase.before(phase):
            self.phase, self._since, self._last = phase, now, now

    def reset(self, now: float) -> None:
        """The machine was switched on or reset on purpose: what the console said before is forgotten."""
        self.phase, self._since, self._last = Phase.RESETTING, now, now
        self.started = self.heard = 0
        self._marked = False
        self._line.clear()

    def attend(self, now: float) -> None:
        """The machine is up in a boot that somebody else has watched."""
        self.reset(now)
        self.started = 1
        self.reached(Phase.VERIFIED, now)

    def died(self, failure: Failure, why: str) -> Death:
        """The driver saw it die. The first death stays, save that failing hardware explains all others."""
        if self.death is None or (failure is Failure.SICK and self.death.blame is not Blame.MACHINE):
            self.death = death(failure, self.phase, why)
        return self.death

    def feed(self, data: bytes, now: float) -> None:
        """Take what the console said; in which pieces it comes makes no difference."""
        if not data:
            return
        self.heard += len(data)
        self._last = now
        if self.phase is Phase.RESETTING:
            self.phase, self._since = Phase.FIRMWARE, now
        self._line += data
        whole = self._whole()
        if _interesting.search(_escape.sub(b"", whole)):
            for line in whole.splitlines():
                self._heard(_escape.sub(b"", line), now)
        if self._line.endswith((b" ", b":")) and len(self._line) < 200:  # a prompt ends no line
            self._prompt(bytes(self._line), now)

    def tick(self, now: float) -> None:
        """Time passes: what was waited for too long is a death."""
        if self.death is not None:
            return
        waited, silent = now - self._since, now - self._last
        limits = self._limits
        if self.phase is Phase.RESETTING and waited > limits.firmware_s:
            self.died(Failure.NO_FIRMWARE, f"nothing on the console for {waited:.0f} s after the reset")
        elif self.phase is Phase.FIRMWARE and waited > limits.kernel_s:
            self.died(Failure.NO_KERNEL, f"no kernel was started within {waited:.0f} s")
        elif self.phase is Phase.KERNEL_STARTED and silent > limits.silence_s:
            self.died(Failure.KERNEL_HANG, f"silent for {silent:.0f} s")
        elif self.phase is Phase.KERNEL_STARTED and waited > limits.userspace_s:
            self.died(Failure.NO_USERSPACE, f"no userspace {waited:.0f} s after the kernel was started")
        elif self.phase is Phase.USERSPACE and waited > limits.ssh_s:
            self.died(Failure.SSH_LOST, f"cannot be reached {waited:.0f} s after userspace came up")

    def _whole(self) -> bytes:
        """The lines that are whole, taken off the buffer."""
        whole = bytearray()
        while True:
            end = self._line.find(b"\n", 0, LINE_LIMIT)
            if end < 0 and len(self._line) < LINE_LIMIT:
                return bytes(whole)
            cut = LINE_LIMIT if end < 0 else end + 1
            whole += self._line[:cut]
            if end < 0:
                whole += b"\n"
            del self._line[:cut]

    def _heard(self, line: bytes, now: float) -> None:
        if _userspace.search(line):  # a prompt, perhaps with the kernel's word on the same line
            self._userspace(now)
        for failure, pattern in _death_patterns:
            if pattern.search(line):
                self.died(failure, _quote(line))
                return
        if _started.search(line):
            self._kernel_started(line, now)
        elif _firmware.search(line) and self.started:
            self.died(Failure.SELF_REBOOT, f"the firmware speaks again: {_quote(line)}")
        elif _notes.search(line) and len(self.notes) < NOTES:
            self.notes.append(_quote(line))

    def _kernel_started(self, line: bytes, now: float) -> None:
        """A loader's marker and the banner after it are one start."""
        marker = MARKER.encode() in line
        if marker or not self._marked:
            self.started += 1
        self._marked = marker
        if self.started > 1:
            self.died(Failure.SELF_REBOOT, f"a second kernel was started: {_quote(line)}")
        self.reached(Phase.KERNEL_STARTED, now)

    def _prompt(self, line: bytes, now: float) -> None:
        if _userspace.search(_escape.sub(b"", line)):
            self._userspace(now)

    def _userspace(self, now: float) -> None:
        if self.started or not self.phase.before(Phase.KERNEL_STARTED):
            self.reached(Phase.USERSPACE, now)


def _quote(line: bytes) -> str:
    return "".join(c if c.isprintable() else " " for c in line.decode("utf-8", "replace")).strip()[:QUOTE]
