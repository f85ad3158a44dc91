"""Virtual machines: each run is a boot of its own, with the job in its initramfs and the results over a serial port."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from bisectbot import config
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import BootRecord
from workers import process
from workers.archive import unpack
from workers.facts import environment
from workers.guest import GuestJob, Records, files_of, static_busybox, write_initramfs
from workers.hosts import kernel
from workers.hosts.attempts import Attempt, DiedError, Journal, boot
from workers.hosts.base import RESULTS, Booted, Place, Program
from workers.hosts.console import Listener
from workers.hosts.guestdriver import GuestDriver
from workers.hosts.here import Here
from workers.hosts.inventory import FILES, Expected, Inventory, expected, measure, mismatches, missing
from workers.hosts.machine import Machine
from workers.hosts.ready import disturbances
from workers.hosts.watch import Blame, BootWatch, Death, Failure, Limits, Phase
from workers.process import Cut, Ended, Stop

log = structlog.get_logger(__name__)

QEMU = "qemu-system-x86_64"
LINGER_S = 1.0
"""Real seconds that a dying kernel is listened to: what it says after its first word is in the log."""
KVM_S = 25.0
"""Real seconds within which a guest must be up if KVM works."""
LOOK_S = 0.2


class QemuHost:
    """``exact``: instructions are counted instead of time, so that equal kernels give equal numbers; one processor.

    KVM is used where a guest really boots with it: /dev/kvm may be there, and guests still hang.
    """

    def __init__(self, place: Place, settings: config.Host) -> None:
        self._place = place
        self._settings = settings.qemu
        self._owner = f"{place.name} {place.folder.resolve()}"
        self._tree = place.folder / "unpacked"
        self._initramfs = place.folder / "initramfs"
        self._journal = Journal(place.folder, place.name)
        self._guest: _Guest | None = None
        self._record = BootRecord("", 0.0, 0.0)
        self._here = Here()
        self._borrowed = False  # the kernel is the host file's, and a program is measured on it
        self._before: dict[str, str] = {}
        self._disturbed: list[str] = []
        self._check()
        self._qemu = _version()

    def clear(self) -> int:
        self._end()
        return process.kill_owned(self._owner)

    def booted(self) -> Booted:
        return Booted()

    def boots(self) -> tuple[BootRecord, ...]:
        return self._journal.take()

    def prepare(self, assignment: RunAssignment, program: Program, archive: Path, stop: Stop) -> BootRecord:
        self._end()
        shutil.rmtree(self._tree, ignore_errors=True)
        unpack(archive, self._tree)
        own = kernel.find(self._tree)
        self._borrowed = own is None
        built = own or kernel.Kernel(self._fallback(), release="")
        job = GuestJob(
            program.line,
            {**program.environment, RESULTS: "/results"},
            work=None if built.image.is_relative_to(self._tree) else self._tree,
            overlay=self._settings.overlay,
            output_limit=program.output_limit,
            snapshot=(*FILES, kernel.NOTES),
        )
        write_initramfs(job, self._initramfs)
        accel = self._accelerator(built.image)
        self._before = self._here.look()

        def attempt(this: Attempt) -> float:
            return self._boot(this, built, accel, stop)

        signature = assignment.signature or assignment.artifact
        self._record = boot(self._journal, signature, attempt, self._place.clock.now)
        return self._record

    def run(
        self,
        assignment: RunAssignment,  # noqa: ARG002
        program: Program,
        stdout: Path,
        stderr: Path,
        *,
        stop: Stop,
        hold: Sequence[int] = (),  # noqa: ARG002 - the guest dies with this process
    ) -> Ended:
        guest = self._guest
        if guest is None:
            raise InfraError(f"{self._place.name}: nothing is booted")
        self._disturbed = []
        stdout.touch()
        stderr.touch()
        began = time.monotonic()
        deadline = began + self._place.clock.real(program.timeout_s)
        try:
            while "end" not in guest.records:
                if stop.wait(0.0):
                    return Ended(1, time.monotonic() - began, cut=Cut.STOPPED)
                if time.monotonic() > deadline:
                    return Ended(1, time.monotonic() - began, cut=Cut.TIMEOUT)
                guest.listen()
        except DiedError as error:
            self._journal.died_later(self._record, error.how)
            return Ended(1, time.monotonic() - began, cut=Cut.CRASHED, why=str(error.how))
        finally:
            guest.end()
        if not self._settings.exact:  # heat changes no count of instructions
            self._disturbed = disturbances(self._before, self._here.look())
        return guest.outcome(stdout, stderr, program.output_limit)

    def read(self, path: str) -> str:
        files = self._guest.files("after") or self._guest.files("before") if self._guest else {}
        return files.get(path, "")

    def facts(self) -> tuple[tuple[str, str], ...]:
        files = self._guest.files("before") if self._guest else {}
        machine = (
            ("guest", f"qemu {self._settings.cpus} CPUs, {self._settings.nodes} nodes, {self._settings.memory} MiB"),
            ("accelerator", self._guest.accelerator if self._guest else ""),
            ("qemu", self._qemu),
            *((("kernel", measure(files).release),) if self._borrowed else ()),
        )
        return (*environment(lambda path: files.get(path, "")), *machine)

    def disturbed(self) -> str:
        """What happened to the worker's own machine: a guest knows nothing of heat."""
        return "; ".join(self._disturbed)

    def results(self) -> dict[str, Path]:
        return self._guest.results() if self._guest else {}

    def logs(self) -> dict[str, Path]:
        return self._guest.logs() if self._guest else {}

    def _check(self) -> None:
        for tool, package in ((QEMU, "qemu-system-x86"), ("setpriv", "util-linux"), ("taskset", "util-linux")):
            if not shutil.which(tool):
                raise UserError(f"host {self._place.name}: no {tool} on this machine; install {package}")
        static_busybox()
        process.check_cpus(self._settings.pinned, f"host {self._place.name}: qemu.pinned")
        have = Inventory(cpus=self._settings.cpus, nodes=self._settings.nodes, memory_kib=self._settings.memory * 1024)
        if wrong := mismatches(expected(self._place.facts), have):
            raise UserError(f"host {self._place.name}: its group's file and qemu.* differ: {'; '.join(wrong)}")

    def _fallback(self) -> Path:
        if self._settings.kernel is None:
            raise InfraError(f"{self._place.name}: the build holds no kernel, and qemu.kernel names none to run it on")
        return self._settings.kernel

    def _boot(self, this: Attempt, built: kernel.Kernel, accel: str, stop: Stop) -> float:
        began = time.monotonic()
        self._journal.reach(Phase.RESETTING)
        guest = _Guest(self._place, self._argv(built.image, accel), accel, self._owner, self._settings.pinned)
        self._guest = guest
        try:
            guest.start(self._limits())
            while "before" not in guest.records:
                _check_stop(stop)
                guest.listen()
            guest.verify(built, self._expected())
        except BaseException:
            guest.end()
            raise
        self._journal.reach(Phase.VERIFIED)
        log.info("guest is up", host=self._place.name, boot=this.key, accelerator=accel)
        return round(self._place.clock.farm(time.monotonic() - began), 3)

    def _expected(self) -> Expected:
        settings = self._settings
        return Expected(cpus=settings.cpus, nodes=settings.nodes if settings.nodes > 1 else 0)

    def _limits(self) -> Limits:
        real = self._place.clock.real
        boot_s = real(self._settings.boot_timeout)
        return Limits(boot_s, boot_s, real(self._settings.silence), boot_s, boot_s)

    def _argv(self, image: Path, accel: str) -> list[str]:
        settings = self._settings
        words = [QEMU, "-M", "pc", "-m", str(settings.memory), "-nodefaults", "-no-user-config", "-no-reboot"]
        words += ["-display", "none", "-monitor", "none", "-kernel", str(image), "-initrd", str(self._initramfs)]
        words += ["-append", f"console=ttyS0 panic=-1 {settings.cmdline}".strip()]
        words += ["-smp", str(settings.cpus), *_nodes(settings)]
        if settings.exact:
            words += ["-accel", "tcg,thread=single", "-icount", f"shift={settings.shift},sleep=off", "-cpu", "qemu64"]
            return [*words, "-rtc", "base=2026-01-01,clock=vm"]
        return [*words, "-accel", accel, *(["-cpu", "host"] if accel == "kvm" else [])]

    def _accelerator(self, image: Path) -> str:
        """``kvm`` where it is wanted and a guest boots with it, else ``tcg``; asked once for each start of this
        machine."""
        wanted = self._settings.accel
        if self._settings.exact or wanted == "tcg":
            return "tcg"
        works = wanted == "kvm" or self._kvm_boots(image)
        return "kvm" if works else "tcg"

    def _kvm_boots(self, image: Path) -> bool:
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        known = self._place.folder / "kvm.json"
        now = f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()} {_version()}"
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads(known.read_text(encoding="utf-8"))
            if told["machine"] == now:
                return bool(told["works"])
        works = self._try_kvm(image)
        log.info("KVM was tried", host=self._place.name, works=works)
        known.write_text(json.dumps({"machine": now, "works": works}), encoding="utf-8")
        return works

    def _try_kvm(self, image: Path) -> bool:
        guest = _Guest(self._place, self._argv(image, "kvm"), "kvm", self._owner, self._settings.pinned)
        try:
            guest.start(Limits(KVM_S, KVM_S, KVM_S, KVM_S, KVM_S))
            while "before" not in guest.records:
                guest.listen()
        except (DiedError, InfraError):
            return False
        finally:
            guest.end()
        return True

    def _end(self) -> None:
        if self._guest is not None:
            self._guest.end()
            self._guest = None


class _Guest:
    """One QEMU process from its start to its end, and what it has said."""

    def __init__(self, place: Place, argv: list[str], accel: str, owner: str, pinned: Sequence[int]) -> None:
        exact = "-icount" in argv
        shift = argv[argv.index("-icount") + 1] if exact else ""
        self.accelerator = f"tcg, instruction-exact ({shift})" if exact else accel
        self.records: dict[str, bytes] = {}
        self._folder = place.folder
        self._name = place.name
        settings = {"argv": argv, "owner": owner, "cpus": list(pinned)}
        self._machine = Machine(place.name, {"drivers": {GuestDriver.__name__: settings}})
        self._driver: GuestDriver = self._machine.driver(GuestDriver.__name__)
        self._stream = Records()
        self._listener: Listener | None = None
        self._snapshots: dict[str, dict[str, str]] = {}

    def start(self, limits: Limits) -> None:
        watch = BootWatch(limits)
        now = time.monotonic()
        watch.reset(now)
        watch.reached(Phase.KERNEL_STARTED, now)  # QEMU is the loader
        self._driver.on()  # from this thread: QEMU lives as long as it does
        self._listener = Listener(self._machine.read, watch, self._folder / "console")

    def listen(self) -> None:
        """Hear a moment longer. Raises DiedError when the guest has died, InfraError when QEMU could not go on."""
        assert self._listener is not None
        data = self._driver.receive(LOOK_S)
        if data is None:
            self._closed(self._listener)
        for name, content in self._stream.feed(data or b""):
            self.records[name] = content
            phase = Phase.USERSPACE if name == "before" else Phase.COLLECTING
            self._listener.tell(lambda watch, phase=phase: watch.reached(phase, time.monotonic()))  # type: ignore[misc]
        if "end" not in self.records and (how := self._listener.death()) is not None:
            self._linger()
            raise DiedError(self._listener.death() or how)

    def verify(self, built: kernel.Kernel, want: Expected) -> None:
        assert self._listener is not None
        have = measure(self.files("before"))
        watch = self._listener.watch
        build_id = kernel.build_id_of(files_of(self.records["before"]).get(kernel.NOTES, b""))
        if built.release and have.release != built.release:
            raise DiedError(watch.died(Failure.WRONG_KERNEL, f"{have.release} is up, not {built.release}"))
        if built.build_id and build_id and build_id != built.build_id:
            raise DiedError(watch.died(Failure.WRONG_KERNEL, f"build-id {build_id} is up, not {built.build_id}"))
        if lacking := missing(want, have):  # QEMU gave the guest all of it: the kernel lost it
            how = watch.died(Failure.HALF_UP, f"only {', '.join(lacking)}")
            raise DiedError(kernels_fault(how))
        self._listener.tell(lambda watch: watch.reached(Phase.RUNNING, time.monotonic()))

    def files(self, snapshot: str) -> dict[str, str]:
        """The texts of a snapshot (``before``, ``after``), {} if it has not come."""
        if snapshot not in self.records:
            return {}
        if snapshot not in self._snapshots:
            found = files_of(self.records[snapshot])
            self._snapshots[snapshot] = {path: text.decode("utf-8", "replace") for path, text in found.items()}
        return self._snapshots[snapshot]

    def outcome(self, stdout: Path, stderr: Path, output_limit: int) -> Ended:
        """What the ``end`` record says: status, up-time before and after, processes left behind."""
        stdout.write_bytes(self.records.get("stdout", b""))
        stderr.write_bytes(self.records.get("stderr", b""))
        match = re.fullmatch(rb"(\d+) ([\d.]+) ([\d.]+) (\d+)\n", self.records["end"])
        if match is None:
            raise InfraError(f"{self._name}: the guest's last word cannot be read: {self.records['end'][:80]!r}")
        printed = len(self.records.get("stdout", b"")) + len(self.records.get("stderr", b""))
        cut = Cut.OUTPUT if printed >= output_limit - 8192 else Cut.NONE  # the limit is a tmpfs, which fills by pages
        return Ended(int(match[1]), float(match[3]) - float(match[2]), cut=cut, left=int(match[4]))

    def logs(self) -> dict[str, Path]:
        found = {"console": self._folder / "console"}
        if "dmesg" in self.records:
            found["dmesg"] = self._folder / "dmesg"
            found["dmesg"].write_bytes(self.records["dmesg"])
        return {name: file for name, file in found.items() if file.is_file()}

    def results(self) -> dict[str, Path]:
        found = {}
        for path, content in files_of(self.records.get("results", b"")).items():
            name = path.strip("/").replace("/", ".")
            found[name] = self._folder / f"result.{name}"
            found[name].write_bytes(content)
        return found

    def end(self) -> None:
        self._driver.off()
        if self._listener is not None:
            self._listener.close()
        self._machine.close()

    def _closed(self, listener: Listener) -> None:
        """QEMU has ended: with ``-no-reboot`` that is what a reset does."""
        if "end" in self.records or listener.death() is not None:
            return
        status = self._driver.process.wait() if self._driver.process else 0
        time.sleep(LOOK_S)  # the console's last bytes
        if status != 0:
            raise InfraError(f"{self._name}: QEMU ended with status {status}: {self._driver.complaint()}")
        listener.tell(lambda watch: watch.died(Failure.SELF_REBOOT, "the machine reset itself"))

    def _linger(self) -> None:
        time.sleep(LINGER_S)


def _check_stop(stop: Stop) -> None:
    if stop.wait(0.0):
        raise InfraError("stopped in the middle of a boot")


def kernels_fault(how: Death) -> Death:
    return replace(how, blame=Blame.KERNEL)


def _nodes(settings: config.QemuDriver) -> list[str]:
    """``-numa`` for equal nodes with neighbouring processors."""
    if settings.nodes < 2:
        return []
    each_cpus, each_memory = settings.cpus // settings.nodes, settings.memory // settings.nodes
    words = []
    for node in range(settings.nodes):
        first = node * each_cpus
        words += ["-object", f"memory-backend-ram,id=m{node},size={each_memory}M"]
        words += ["-numa", f"node,nodeid={node},cpus={first}-{first + each_cpus - 1},memdev=m{node}"]
    return words


def _version() -> str:
    told = subprocess.run([QEMU, "--version"], check=False, capture_output=True, text=True, timeout=60)
    return told.stdout.partition("\n")[0]
