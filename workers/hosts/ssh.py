"""Boxes of their own: power and console through labgrid, a shell over ssh, kernels booted once and proven."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import structlog

from bisectbot import config
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import BootRecord
from workers.archive import unpack
from workers.facts import environment
from workers.guest import files_of
from workers.hosts import bootload, job, kernel
from workers.hosts.attempts import Attempt, DiedError, Journal, boot
from workers.hosts.base import Booted, Place, Program
from workers.hosts.boxes import LOOK, Box
from workers.hosts.console import Listener
from workers.hosts.inventory import expected, measure, missing
from workers.hosts.kernel import Kernel
from workers.hosts.ready import disturbances, make_ready, wanted
from workers.hosts.shell import quote
from workers.hosts.watch import Blame, Death, Failure, Phase
from workers.process import Cut, Ended, Stop

log = structlog.get_logger(__name__)

RESULTS_FOLDER = f"{job.FOLDER}/results"
FIRST_LOOK_S, LAST_LOOK_S = 1.0, 30.0
"""Real seconds between two looks at a job that runs: ever rarer, each costs the measured machine a login."""


class SshHost:
    """A box boots a kernel once and stays on it until another is wanted; what it runs outlives the connection."""

    def __init__(self, place: Place, settings: config.Host) -> None:
        if settings.ssh is None:
            raise UserError(f"host {place.name}: the section `ssh` is missing; add it")
        self._place = place
        self._settings = settings.ssh
        self._ready = settings.ready
        self._expected = expected(place.facts)
        self._box = Box(place, settings.ssh)
        self._journal = Journal(place.folder, place.name)
        self._state = place.folder / "booted.json"
        self._tree = place.folder / "unpacked"
        self._listener: Listener | None = None
        self._own = False  # whether the build brings the kernel
        self._before: dict[str, str] = {}
        self._after: dict[str, str] = {}
        self._results = b""
        self._disturbed: list[str] = []

    def clear(self) -> int:
        """Raises nothing for a box that is off: then nothing runs there either."""
        with contextlib.suppress(InfraError):
            return self._stop_job()
        return 0

    def booted(self) -> Booted:
        record = self._known()
        if record is None:
            return Booted()
        signature, boot_record = record
        up = self._box.up_with(boot_record.key)
        return Booted(signature, boot_record.key) if up else Booted()

    def boots(self) -> tuple[BootRecord, ...]:
        return self._journal.take()

    def prepare(self, assignment: RunAssignment, program: Program, archive: Path, stop: Stop) -> BootRecord | None:  # noqa: ARG002
        shutil.rmtree(self._tree, ignore_errors=True)
        unpack(archive, self._tree)
        found = kernel.find(self._tree)
        self._own = found is not None
        record = None
        if found:
            record = self._on_kernel(assignment, found, stop)
        else:
            self._on_any(stop)
        self._stop_job()
        self._make_ready(assignment)
        return record

    def run(
        self,
        assignment: RunAssignment,  # noqa: ARG002
        program: Program,
        stdout: Path,
        stderr: Path,
        *,
        stop: Stop,
        hold: Sequence[int] = (),  # noqa: ARG002 - the box is its own machine
    ) -> Ended:
        self._results, self._disturbed = b"", []
        shell = self._box.shell
        limit = program.output_limit
        shell.run(job.start_script(program.line, program.environment, limit, RESULTS_FOLDER))
        began = time.monotonic()
        try:
            ended = self._wait(program, began, stop)
        except DiedError as error:
            return self._crashed(error.how, time.monotonic() - began, stdout, stderr)
        for name, file in (("stdout", stdout), ("stderr", stderr)):
            file.write_bytes(shell.get(f"{job.FOLDER}/out/{name}", limit))
        self._results = shell.fetch(RESULTS_FOLDER)
        left = self._stop_job()
        self._after = self._box.look()
        self._disturbed = disturbances(self._before, self._after)
        printed = stdout.stat().st_size + stderr.stat().st_size
        if ended.cut is Cut.NONE and printed >= limit - 8192:  # the limit is a tmpfs, which fills by pages
            return replace(ended, cut=Cut.OUTPUT)
        return replace(ended, left=max(ended.left, left if ended.cut else 0))

    def disturbed(self) -> str:
        return "; ".join(self._disturbed)

    def results(self) -> dict[str, Path]:
        found = {}
        for path, content in files_of(self._results).items():
            name = path.strip("/").replace("/", ".")
            found[name] = self._place.folder / f"result.{name}"
            found[name].write_bytes(content)
        return found

    def logs(self) -> dict[str, Path]:
        found = {}
        with contextlib.suppress(InfraError):
            found["dmesg"] = self._place.folder / "dmesg"
            found["dmesg"].write_text(self._box.shell.run("dmesg"), encoding="utf-8")
        if self._box.console_log.is_file():
            found["console"] = self._place.folder / "console.copy"
            shutil.copyfile(self._box.console_log, found["console"])
        return {name: file for name, file in found.items() if file.is_file()}

    def read(self, path: str) -> str:
        files = self._after or self._before
        if path in files:
            return files[path]
        return self._box.shell.run(f"cat {quote(path)} 2> /dev/null; true")

    def facts(self) -> tuple[tuple[str, str], ...]:
        told = environment(lambda path: self._before.get(path, ""))
        if not self._own:
            return (*told, ("kernel", measure(self._before).release))
        return (*told, ("boot", self._settings.boot))

    def _on_kernel(self, assignment: RunAssignment, found: Kernel, stop: Stop) -> BootRecord:
        signature = assignment.signature or assignment.artifact
        known = self._known()
        if known and known[0] == signature and not assignment.fresh_boot and self._box.up_with(known[1].key):
            if self._listener is None:  # an earlier worker has booted it
                self._listener = self._box.attend()
            return known[1]
        self._state.unlink(missing_ok=True)

        def attempt(this: Attempt) -> float:
            return self._boot(this, found, stop)

        record = boot(self._journal, signature, attempt, self._place.clock.now)
        state = {"signature": signature, "boot": self._settings.boot, "record": asdict(record)}
        self._state.write_text(json.dumps(state), encoding="utf-8")
        return record

    def _on_any(self, stop: Stop) -> None:
        """What is measured is a program: on the known-good kernel, whatever was measured before."""
        self._box.recover(stop)
        if self._box.up_with(f"{bootload.KEY}="):
            self._listen_no_more()
            self._box.cycle(stop)
        self._box.send_tree(self._tree, f"{job.FOLDER}/build")

    def _known(self) -> tuple[str, BootRecord] | None:
        """What was booted last, if it was in the way in which this host boots now: the two are never mixed."""
        try:
            told = json.loads(self._state.read_text(encoding="utf-8"))
            if told["boot"] != self._settings.boot:
                return None
            return str(told["signature"]), BootRecord(**told["record"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _boot(self, this: Attempt, found: Kernel, stop: Stop) -> float:
        began = time.monotonic()
        self._listen_no_more()
        self._journal.reach(Phase.INSTALLING)
        self._box.recover(stop)
        installed = self._box.install(found, this.signature, self._settings.cmdline)
        self._journal.reach(Phase.ARMING)
        try:
            self._listener = self._box.start(installed, this.key, lambda: self._journal.reach(Phase.RESETTING))
            self._box.wait_for(self._listener, this.key, stop)
            self._verify(self._listener, found)
        except DiedError as error:
            raise DiedError(self._judged(error.how, stop)) from None
        finally:
            if self._listener is not None:
                self._journal.reach(self._listener.watch.phase)
        log.info("box is up", host=self._place.name, boot=this.key)
        return round(self._place.clock.farm(time.monotonic() - began), 3)

    def _verify(self, listener: Listener, found: Kernel) -> None:
        have = measure(self._box.look())
        watch = listener.watch
        if found.release and have.release != found.release:
            raise DiedError(watch.died(Failure.WRONG_KERNEL, f"{have.release} is up, not {found.release}"))
        build_id = kernel.build_id_of(self._box.shell.get(kernel.NOTES, 65536)) if found.build_id else ""
        if build_id and build_id != found.build_id:
            raise DiedError(watch.died(Failure.WRONG_KERNEL, f"build-id {build_id} is up, not {found.build_id}"))
        if lacking := missing(self._expected, have):
            raise DiedError(watch.died(Failure.HALF_UP, f"only {', '.join(lacking)}"))
        listener.tell(lambda watch: watch.reached(Phase.VERIFIED, time.monotonic()))

    def _judged(self, how: Death, stop: Stop) -> Death:
        """Where the failure does not tell whose fault it is, the known-good kernel does."""
        if how.blame is not Blame.UNKNOWN:
            return how
        try:
            self._box.cycle(stop)
            lacking = missing(self._expected, measure(self._box.look()))
        except InfraError as error:
            return replace(how, blame=Blame.MACHINE, why=f"{how.why}; with the known-good kernel: {error}")
        if lacking:
            why = f"{how.why}; with the known-good kernel as well: only {', '.join(lacking)}"
            return replace(how, blame=Blame.MACHINE, why=why)
        return replace(how, blame=Blame.KERNEL, why=f"{how.why}; the known-good kernel is well")

    def _make_ready(self, assignment: RunAssignment) -> None:
        want = wanted(self._ready, assignment.job)
        self._before = make_ready(self._place.name, self._box, want, self._expected)
        self._after = {}

    def _wait(self, program: Program, began: float, stop: Stop) -> Ended:
        deadline = began + self._place.clock.real(program.timeout_s)
        pause, lost = FIRST_LOOK_S, 0.0
        while True:
            if stop.wait(min(pause, max(0.0, deadline - time.monotonic()))):
                return Ended(1, time.monotonic() - began, cut=Cut.STOPPED)
            if self._listener is not None and (how := self._listener.death()) is not None:
                raise DiedError(how)
            try:
                end = self._box.shell.get(f"{job.FOLDER}/end", 100, LOOK)
                lost = 0.0
            except InfraError as error:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > self._box.limits.ssh_s:
                    raise InfraError(f"{self._place.name} was lost in the run: {error}") from None
                continue
            if words := end.split():
                return Ended(int(words[0]), float(words[2]) - float(words[1]), left=int(words[3]))
            if time.monotonic() > deadline:
                return Ended(1, time.monotonic() - began, cut=Cut.TIMEOUT)
            pause = min(LAST_LOOK_S, pause * 1.2)

    def _crashed(self, how: Death, seconds: float, stdout: Path, stderr: Path) -> Ended:
        """The kernel died in the run, or the machine did."""
        stdout.touch()
        stderr.touch()
        known = self._known()
        self._state.unlink(missing_ok=True)
        if known is not None:
            self._journal.died_later(known[1], how)
        if how.blame is Blame.MACHINE:
            raise InfraError(f"{self._place.name}: {how}")
        return Ended(1, seconds, cut=Cut.CRASHED, why=str(how))

    def _stop_job(self) -> int:
        return int(self._box.shell.run(job.stop_script()).split()[0])

    def _listen_no_more(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
