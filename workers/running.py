"""One run, from the claim to the delivery."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from bisectbot.errors import InfraError, Untestable
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import Heartbeat, Job, RunAssignment, RunClaim
from bisectbot.results.delivery import BootRecord, Outcome, RunDelivery
from bisectbot.results.logs import read_logs
from bisectbot.results.output import Reading
from workers import benchmarks, monitors
from workers.archive import Archives
from workers.benchmarks import Benchmark, Output
from workers.benchmarks.base import last_line
from workers.benchmarks.source import FAILED as NOT_INSTALLED
from workers.benchmarks.source import installed
from workers.client import Client
from workers.hosts import RESULTS, Host, Program
from workers.lease import Lease
from workers.process import Cut, Ended, Stop
from workers.station import Station

log = structlog.get_logger(__name__)


def take_run(station: Station, host: Host) -> str:
    """Claim the best run for the host, do it and deliver it; what happened, in a word or two for the log.

    Raises InfraError when the server cannot be asked.
    """
    client = station.client()
    station.spool.deliver(client)
    with station.measuring() as hold, station.desk() as desk:
        booted = host.booted()
        claim = RunClaim(station.name, station.instance, booted.signature, booted.boot)
        assignment = client.claim_run(claim)
        if assignment is None:
            return "nothing to run"
        beat = Heartbeat("run", assignment.run, assignment.token)
        with Lease(station.client(), beat, assignment.lease_s, station.clock) as lease:
            measuring = _Run(station, host, assignment, client, desk, lease.stop, hold)
            try:
                delivery = measuring.deliver()
            except Exception as bug:  # it still crashes here, but the server need not wait for it
                failed = measuring.failed(Outcome.INFRA, f"bug in the worker: {bug!r}")
                station.spool.put(failed, measuring.files)
                raise
            if lease.stop:
                return f"run {assignment.run} stopped: {lease.stop.reason}"
            station.spool.put(delivery, measuring.files)
    station.spool.deliver(client)
    return f"run {assignment.run} {delivery.outcome}"


@dataclass
class _Run:
    """The run in hand and what has been learnt of it so far."""

    station: Station
    host: Host
    assignment: RunAssignment
    client: Client
    desk: Path
    stop: Stop
    hold: tuple[int, ...]

    def __post_init__(self) -> None:
        self.files: dict[str, Path] = {}
        self.boot: BootRecord | None = None
        self.began = self.station.clock.monotonic()
        self.started = self.station.clock.now()

    def deliver(self) -> RunDelivery:
        """Do the run; whatever happens becomes an outcome, save a bug."""
        try:
            archives = Archives(self.station.folder / "archives")
            archive = archives.get(self.assignment.artifact, self.client)
            benchmark = benchmarks.find(self.assignment.job.benchmark)
            job = self.assignment.job
            program = installed(monitors.beside(benchmark.program(job), job), job)
            self.boot = self.host.prepare(self.assignment, program, archive, self.stop)
            return self._measure(benchmark, program)
        except Untestable as error:
            return self.failed(Outcome.UNTESTABLE, str(error))
        except InfraError as error:
            return self.failed(Outcome.INFRA, str(error))
        except OSError as error:  # a full disk, mostly
            return self.failed(Outcome.INFRA, f"{self.station.name}: {error}")

    def failed(self, outcome: Outcome, message: str) -> RunDelivery:
        return self._result(Reading(outcome, message=message), 0.0, ())

    def _measure(self, benchmark: Benchmark, program: Program) -> RunDelivery:
        job = self.assignment.job
        environment = self.host.facts()
        stdout, stderr = self.desk / "stdout", self.desk / "stderr"
        self.files |= _records(job, program, self.desk)
        self.started = self.station.clock.now()
        ended = self.host.run(self.assignment, program, stdout, stderr, stop=self.stop, hold=self.hold)
        results = self.host.results()
        logs = monitors.logs(results, job, self.desk)
        self.files |= {"stdout": stdout, "stderr": stderr, **logs}
        if ended.status == NOT_INSTALLED and job.source:
            raise InfraError(f"{self.station.name}: {last_line(stderr)}")
        if disturbed := self.host.disturbed():
            raise InfraError(f"{self.station.name}: {disturbed}; the run is discarded")
        if self.host.facts() != environment:
            raise InfraError(f"{self.station.name}: the environment changed during the run")
        reading = _cut(self.assignment, ended) or benchmark.read(job, ended, Output(stdout, stderr, results))
        if ended.left:
            log.warning("processes left behind were killed", run=self.assignment.run, count=ended.left)
        recorded = read_logs(logs)
        for warning in recorded.warnings:
            log.warning("a monitor's log was not read whole", run=self.assignment.run, what=warning)
        reading = replace(reading, stats=(*reading.stats, *recorded.stats.items()))
        return self._result(reading, self.station.clock.farm(ended.seconds), environment)

    def _result(self, reading: Reading, seconds: float, environment: tuple[tuple[str, str], ...]) -> RunDelivery:
        self.files |= {name: file for name, file in self.host.logs().items() if name not in self.files}
        return RunDelivery(
            run=self.assignment.run,
            token=self.assignment.token,
            outcome=reading.outcome,
            message=reading.message,
            samples=reading.samples,
            stats=reading.stats,
            boot=self.boot,
            environment=environment,
            started=self.started,
            seconds=round(seconds, 3),
            host_s=round(self.station.clock.monotonic() - self.began, 3),
            boots=self.host.boots(),
        )


def _records(job: Job, program: Program, desk: Path) -> dict[str, Path]:
    """What somebody needs who wants to do the run again: the job, and the lines that were run."""
    files = {name: desk / name for name in ("job.json", "reproduce.sh")}
    files["job.json"].write_bytes(wire.encode(job))
    told = {
        RESULTS: "$(mktemp -d)",
        **{name: shlex.quote(value) for name, value in sorted(program.environment.items())},
    }
    exports = "".join(f"export {name}={value}\n" for name, value in told.items())
    files["reproduce.sh"].write_text(f"#!/bin/sh\n{exports}\n{program.line}", encoding="utf-8")
    return files


def _cut(assignment: RunAssignment, ended: Ended) -> Reading | None:
    """What a run that had to be ended says; None for one that ended by itself."""
    job = assignment.job
    match ended.cut:
        case Cut.NONE:
            return None
        case Cut.TIMEOUT:
            return Reading(Outcome.FAILED, message=f"no end after {job.timeout_s:g} s, killed")
        case Cut.OUTPUT:
            return Reading(Outcome.FAILED, message=f"more than {job.output_limit} bytes of output, killed")
        case Cut.STOPPED:
            return Reading(Outcome.CANCELLED, message="stopped")
        case Cut.CRASHED:
            return Reading(Outcome.FAILED, message=f"the kernel died in the run: {ended.why}")
