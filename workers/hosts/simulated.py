"""A host that is only a model: a level per commit, noise and faults from a YAML file, time from the clock.

Everything that happens to it follows from (seed, host, boot, run), so that a lab repeats exactly.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bisectbot import config
from bisectbot.errors import InfraError, Untestable, UserError
from bisectbot.jobs.assignment import RunAssignment
from bisectbot.results.delivery import BootRecord
from bisectbot.yamlfile import Seconds, Section, read, validate
from workers.archive import unpack
from workers.hosts.base import Booted, Place, Program
from workers.process import Cut, Ended, Stop

BOOTS = 2  # a build whose boot dies this often in a row does not boot


def _pattern(value: str) -> str:
    if re.compile(value).groups != 1:
        raise ValueError(f"{value!r} needs exactly one group, around the number")
    return value


class Rule(Section):
    """Commits whose id begins with ``commit``, or whose build holds ``file`` (with ``pattern``'s group a number).

    ``level`` is theirs; without one it is the number that ``pattern`` found.
    """

    commit: str = Field("", pattern=r"^[0-9a-f]*$")
    file: str = ""
    pattern: Annotated[str, AfterValidator(_pattern)] = r"([-+0-9.eE]+)"
    level: float | None = None
    boots: bool = True


class Noise(Section):
    """Of a run, in units of the KPI. ``sigma`` is one run's, ``boot_sigma`` what a boot shifts all of its runs by."""

    family: Literal["gauss", "t3"] = "gauss"
    sigma: float = Field(1.0, ge=0)
    boot_sigma: float = Field(0.0, ge=0)
    outliers: float = Field(0.0, ge=0, le=1, description="share of runs that are moved")
    outlier: float = Field(0.0, description="by this much")
    modes: float = Field(0.0, ge=0, le=1, description="share of boots that are in the second mode")
    mode: float = Field(0.0, description="which is this much away")
    drift: float = Field(0.0, description="a slow wave of this height")
    drift_period: Seconds = 6 * 3600.0


class Faults(Section):
    """Probabilities: ``boot`` that a boot dies, ``hang`` that a run never ends, ``run`` that it prints nothing,
    ``host`` that the machine fails in it. Durations in farm time."""

    boot: float = Field(0.0, ge=0, le=1)
    hang: float = Field(0.0, ge=0, le=1)
    run: float = Field(0.0, ge=0, le=1)
    host: float = Field(0.0, ge=0, le=1)


class Model(Section):
    """The file of a simulated host."""

    seed: int = 0
    level: float = 100.0
    rules: tuple[Rule, ...] = ()
    noise: Noise = Noise()
    faults: Faults = Faults()
    boot: Seconds = 180.0
    run: Seconds = 300.0


@dataclass(frozen=True)
class _Boot:
    key: str
    number: int
    signature: str
    level: float
    started: float
    seconds: float


class SimulatedHost:
    """Goes through the same steps as a real one; what it has booted outlives the worker, as on a real one."""

    def __init__(self, place: Place, settings: config.Host) -> None:
        if settings.simulated is None:
            raise UserError(f"host {place.name}: the section `simulated` is missing; add it")
        self._place = place
        self._model = validate(read(settings.simulated.model), Model)
        self._state = place.folder / "booted.json"
        self._tree = place.folder / "unpacked"

    def clear(self) -> int:
        return 0

    def booted(self) -> Booted:
        boot = self._boot()
        return Booted(boot.signature, boot.key) if boot and boot.signature else Booted()

    def prepare(
        self,
        assignment: RunAssignment,
        program: Program,  # noqa: ARG002
        archive: Path,
        stop: Stop,
    ) -> BootRecord | None:
        boot = self._boot()
        if boot is None or assignment.fresh_boot or boot.signature != assignment.signature:
            boot = self._reboot(assignment, archive, boot.number if boot else 0, stop)
        return BootRecord(boot.key, boot.seconds, boot.started)

    def boots(self) -> tuple[BootRecord, ...]:
        return ()

    def run(
        self,
        assignment: RunAssignment,
        program: Program,
        stdout: Path,
        stderr: Path,
        *,
        stop: Stop,
        hold: Sequence[int] = (),  # noqa: ARG002
    ) -> Ended:
        boot = self._boot()
        if boot is None:
            raise InfraError(f"{self._place.name}: nothing is booted")
        rng = self._rng("run", boot.number, assignment.run)
        faults = self._model.faults
        if rng.random() < faults.host:
            raise InfraError(f"{self._place.name}: connection lost (simulated)")
        hangs = rng.random() < faults.hang or self._model.run > program.timeout_s
        seconds = program.timeout_s if hangs else self._model.run
        cut = Cut.TIMEOUT if hangs else Cut.NONE
        if stop.wait(self._place.clock.real(seconds)):
            cut = Cut.STOPPED
        silent = cut is not Cut.NONE or rng.random() < faults.run
        values = {kpi.name: self._value(rng, boot) for kpi in assignment.job.kpis}
        stdout.write_text("" if silent else "".join(f"{name}: {value!r}\n" for name, value in values.items()))
        stderr.write_text("")
        return Ended(1 if silent else 0, self._place.clock.real(seconds), cut=cut)

    def disturbed(self) -> str:
        return ""

    def results(self) -> dict[str, Path]:
        return {}

    def logs(self) -> dict[str, Path]:
        return {}

    def read(self, path: str) -> str:  # noqa: ARG002
        return ""

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("model", f"simulated {self._place.name}"),)

    def _reboot(self, assignment: RunAssignment, archive: Path, number: int, stop: Stop) -> _Boot:
        shutil.rmtree(self._tree, ignore_errors=True)
        unpack(archive, self._tree)
        rule = self._rule(assignment.commit)
        started = self._place.clock.now()
        for _ in range(BOOTS):
            number += 1
            self._remember(_Boot("", number, "", 0.0, 0.0, 0.0))  # before the risky step
            if stop.wait(self._place.clock.real(self._model.boot)):
                raise InfraError("stopped in the middle of a boot")
            if rule.boots and self._rng("boot", number).random() >= self._model.faults.boot:
                seconds = self._place.clock.farm(self._place.clock.now() - started)
                level = self._level(rule)
                boot = _Boot(
                    f"{self._place.name}-{number}", number, assignment.signature, level, started, round(seconds, 3)
                )
                self._remember(boot)
                return boot
        raise Untestable(f"{assignment.commit[:12]} does not boot: {BOOTS} boots died on {self._place.name}")

    def _rule(self, commit: str) -> Rule:
        for rule in self._model.rules:
            if commit.startswith(rule.commit) and (not rule.file or self._found(rule) is not None):
                return rule
        return Rule(level=self._model.level)

    def _level(self, rule: Rule) -> float:
        if rule.level is not None:
            return rule.level
        found = self._found(rule) if rule.file else None
        return self._model.level if found is None else found

    def _found(self, rule: Rule) -> float | None:
        try:
            text = (self._tree / rule.file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        match = re.search(rule.pattern, text)
        try:
            return float(match[1]) if match else None
        except ValueError:
            return None

    def _value(self, rng: random.Random, boot: _Boot) -> float:
        noise = self._model.noise
        of_boot = self._rng("level", boot.number)
        value = boot.level + of_boot.gauss(0.0, noise.boot_sigma)
        value += noise.mode if of_boot.random() < noise.modes else 0.0
        scale = math.sqrt(rng.gammavariate(1.5, 2.0) / 3.0) if noise.family == "t3" else 1.0  # χ²₃ / 3
        value += rng.gauss(0.0, noise.sigma) / scale
        value += noise.outlier if rng.random() < noise.outliers else 0.0
        at = self._place.clock.farm(self._place.clock.now())
        return value + noise.drift * math.sin(2.0 * math.pi * at / noise.drift_period)

    def _rng(self, *what: object) -> random.Random:
        return random.Random(f"{self._model.seed} {self._place.name} {what}")  # noqa: S311 - a model, no secret

    def _boot(self) -> _Boot | None:
        try:
            return _Boot(**json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _remember(self, boot: _Boot) -> None:
        new = self._state.with_suffix(".new")
        new.write_text(json.dumps(asdict(boot)), encoding="utf-8")
        new.replace(self._state)
