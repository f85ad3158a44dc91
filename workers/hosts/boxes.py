"""A box as the boot sees it: installed on, armed, reset, waited for, brought back to its known-good kernel."""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from bisectbot import config
from bisectbot.errors import InfraError
from workers.hosts import bootload
from workers.hosts.attempts import DiedError
from workers.hosts.base import Place
from workers.hosts.bootload import Installed
from workers.hosts.console import Listener
from workers.hosts.inventory import FILES
from workers.hosts.kernel import Kernel
from workers.hosts.machine import Machine
from workers.hosts.ready import SMI, parse_look
from workers.hosts.shell import Shell, quote
from workers.hosts.watch import BootWatch, Failure, Limits, Phase
from workers.process import Stop

log = structlog.get_logger(__name__)

LOOK = 20.0
"""Real seconds within which a box that is up has answered."""
ARM_S = 300.0
PAUSE_S = 2.0
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LOOK_SCRIPT = f"""
[ -e /dev/cpu/0/msr ] || modprobe -q msr 2> /dev/null
grep -sH '' {" ".join(FILES)}
[ -r /dev/cpu/0/msr ] && dd if=/dev/cpu/0/msr bs=8 count=1 skip=52 iflag=skip_bytes 2> /dev/null | od -An -td8 |
    sed 's/^ */{SMI}:/'
true
"""


class Box:
    """Power, console and shell of one box. Methods raise InfraError for a box that does not answer."""

    def __init__(self, place: Place, settings: config.SshDriver) -> None:
        self.name = place.name
        self.shell = Shell(place.name, settings.address, settings.port, settings.key_file, settings.known_hosts)
        self.console_log = place.folder / "console"
        real = place.clock.real
        self.limits = Limits(
            real(settings.firmware), real(settings.loader), real(settings.silence), real(settings.boot_timeout),
            real(settings.login),
        )  # fmt: skip
        self._kexec = settings.boot == "kexec"
        self._target = settings.labgrid
        self._machine = Machine(place.name, settings.labgrid)
        self._machine.check()

    def up_with(self, key: str) -> bool:
        """Whether the box is up in the boot that has this key."""
        try:
            return key in self.shell.run("cat /proc/cmdline", LOOK)
        except InfraError:
            return False

    def look(self) -> dict[str, str]:
        return parse_look(self.shell.run(_LOOK_SCRIPT, LOOK * 3))

    def write(self, values: Sequence[tuple[str, str]]) -> None:
        """Write each value; one that is not taken shows when it is read back."""
        if values:
            self.shell.run("".join(f"echo {quote(value)} > {quote(path)}\n" for path, value in values) + "true\n")

    def recover(self, stop: Stop) -> None:
        """See to it that some kernel of the box answers: it may be on its way back by itself, else it is reset."""
        if self.shell.reachable(LOOK):
            return
        patience = time.monotonic() + self.limits.silence_s
        while time.monotonic() < patience:
            if self.shell.reachable(LOOK):
                return
            _rest(stop)
        self.cycle(stop)

    def cycle(self, stop: Stop) -> None:
        """Reset into the known-good kernel and wait for it. Raises InfraError, NO_POWER's words among them."""
        log.info("box is reset", host=self.name)
        with contextlib.suppress(InfraError):
            self.shell.run(bootload.disarm_script(), LOOK)
        before = self._up()
        self._machine.power("cycle")
        deadline = time.monotonic() + self.limits.firmware_s + self.limits.userspace_s
        while self._up() in {"", before}:  # a controller may take its time: what still answers is not back yet
            if time.monotonic() > deadline:
                raise InfraError(f"{self.name} does not come back after a reset")
            _rest(stop)

    def attend(self) -> Listener:
        """Listen to a box that is up."""
        watch = BootWatch(self.limits)
        watch.attend(time.monotonic())
        return Listener(self._console().read, watch, self.console_log)

    def install(self, kernel: Kernel, signature: str, extra: str) -> Installed:
        """The kernel on the box's own disk. Raises InfraError when the disk is full."""
        folder = f"{bootload.FOLDER}/{signature[:16] or 'unsigned'}"
        files = [(kernel.image, "vmlinuz"), *([(kernel.initrd, "initrd")] if kernel.initrd else [])]
        here = sum(file.stat().st_size for file, _ in files) + (kernel.modules.stat().st_size if kernel.modules else 0)
        said = self.shell.run(
            f"cat /proc/cmdline; [ -f {folder}/whole ] && {{ touch {folder}; echo whole; }}; true", LOOK
        ).splitlines()
        arguments = bootload.arguments(said[0], extra)
        if "whole" not in said[1:]:
            self.shell.run(bootload.free_script(2 * here, folder.rpartition("/")[2]))
            for file, name in files:
                self.shell.put(file.read_bytes(), f"{folder}/{name}")
            if kernel.modules:
                self.shell.put(kernel.modules.read_bytes(), f"{folder}/modules.tar")
                self.shell.run(f"tar -C / --no-same-owner -xf {folder}/modules.tar && rm {folder}/modules.tar", 600.0)
            self.shell.run(f"sync; touch {folder}/whole")
        return Installed(folder, kernel.initrd is not None, arguments)

    def start(self, kernel: Installed, key: str, risked: Callable[[], None]) -> Listener:
        """Arm the kernel and start it, with somebody listening. Raises DiedError when the power switch fails."""
        self._boot_id = self.shell.run(f"cat {BOOT_ID}", LOOK).strip()
        watch = BootWatch(self.limits)
        listener = Listener(self._console().read, watch, self.console_log)
        time.sleep(0.5)  # a console server has let us in by then
        try:
            if not self._kexec:
                self.shell.run(bootload.grub_script(kernel, key), ARM_S)
            risked()
            listener.tell(lambda watch: watch.reset(time.monotonic()))
            if self._kexec:
                self.shell.run(bootload.kexec_script(kernel, key), ARM_S)
            else:
                self._cycle(watch)
        except BaseException:
            listener.close()
            raise
        return listener

    def wait_for(self, listener: Listener, key: str, stop: Stop) -> None:
        """Until the box is up in the boot that has this key. Raises DiedError, InfraError when it is stopped."""
        while True:
            if (how := listener.death()) is not None:
                time.sleep(PAUSE_S)  # the rest of what it says belongs into the log
                raise DiedError(listener.death() or how)
            answer = self._answer()
            if answer is not None and self._boot_id not in answer:
                if key in answer:
                    listener.tell(lambda watch: watch.reached(Phase.USERSPACE, time.monotonic()))
                    return
                raise DiedError(listener.watch.died(*_another(listener.watch, answer)))
            _rest(stop)

    def send_tree(self, tree: Path, folder: str) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(tree, ".")
        self.shell.run(f"rm -rf {folder}; mkdir -p {folder}")
        self.shell.put(packed.getvalue(), f"{folder}.tar.gz")
        self.shell.run(f"tar -C {folder} --no-same-owner -xzf {folder}.tar.gz && rm {folder}.tar.gz", 600.0)

    def _cycle(self, watch: BootWatch) -> None:
        try:
            self._machine.power("cycle")
        except InfraError as error:
            with contextlib.suppress(InfraError):
                self.shell.run(bootload.disarm_script(), ARM_S)
            raise DiedError(watch.died(Failure.NO_POWER, str(error))) from None

    def _answer(self) -> str | None:
        try:
            return self.shell.run(f"cat {BOOT_ID} /proc/cmdline /proc/version", LOOK)
        except InfraError:
            return None

    def _up(self) -> str:
        """What tells the boot that the box is up in from all others, "" if it does not answer."""
        try:
            return self.shell.run(f"cat {BOOT_ID}", LOOK).strip()
        except InfraError:
            return ""

    def _console(self) -> Machine:
        return Machine(f"{self.name} console", self._target)


def _another(watch: BootWatch, answer: str) -> tuple[Failure, str]:
    """Up, but in another kernel: ours was started and died without a word, or it never was."""
    version = answer.rpartition("Linux version ")[2].split(" ")[0]
    if watch.started > 1:
        return Failure.SELF_REBOOT, f"{version} is up: the machine was reset after the kernel was started"
    return Failure.WRONG_KERNEL, f"{version} is up, the boot loader did not take our entry"


def _rest(stop: Stop) -> None:
    if stop.wait(PAUSE_S):
        raise InfraError("stopped in the middle of a boot")
