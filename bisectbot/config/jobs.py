"""What is run: jobs, their KPIs and where their benchmarks come from."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from bisectbot.jobs.assignment import Job, Source
from bisectbot.jobs.kpi import Better, Kpi
from bisectbot.jobs.library import Library
from bisectbot.jobs.selection import select_units
from bisectbot.yamlfile import (
    Name,
    RelativePath,
    Seconds,
    Section,
)


class KpiSpec(Section):
    unit: str = ""
    better: Better = Better.NONE
    least_effect: float | None = Field(None, gt=0, description="percent")


class SourceSpec(Section):
    """One of three: a git ``url`` with its ``commit``, a tarball's with its ``sha256``, a distribution's package."""

    url: str = Field("", pattern=r"^((https?|file|git|ssh)://\S+|/\S+)?$")
    commit: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$")
    package: str = Field("", pattern=r"^([a-z0-9][a-z0-9.+-]+(=\S+)?)?$")
    build: str = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.url) == bool(self.package) or (self.url and bool(self.commit) == bool(self.sha256)):
            raise ValueError("give a url with its commit (git) or its sha256 (tarball), or a package")
        return self

    @property
    def source(self) -> Source:
        return Source(self.url, self.commit, self.sha256, self.package, self.build)


Values = str | int | float | list[str | int | float]


def _texts(value: Values) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value])]


class JobSpec(Section):
    """What is run on which host groups: an LKP job ``file``, or a ``command`` with its parameters.

    Of a ``file``, ``select`` keeps the unit jobs with these axes, and ``parameters`` are stronger than what it says.
    Without one, each list among ``parameters`` is expanded, the first varies slowest. ``benchmark`` names the adapter:
    the file's testcase unless given, or ``command``.
    """

    file: RelativePath | None = None
    select: dict[str, Values] = Field({})
    benchmark: str = ""
    command: str = ""
    parameters: dict[str, Values] = Field({})
    groups: tuple[Name, ...] = Field(min_length=1)
    kpis: dict[str, KpiSpec]
    broad: bool = Field(False, description="stands for real use, as a micro-benchmark does not")
    runs: int = Field(3, ge=1, le=100, description="per head")
    timeout: Seconds = 600.0
    output_limit: int = Field(16 * 2**20, ge=1024)
    monitors: tuple[Name, ...] | None = Field(None, description="what is recorded beside it")
    source: SourceSpec | None = Field(None, description="where hosts get the benchmark from")

    def units(self, name: str, group: str, folder: Path) -> list[Job]:
        """The jobs for one host group, one per combination of parameters.

        ``folder`` holds the group's facts (in ``hosts/``). Raises AxisError or UserError, see `select_units`.
        """
        if self.file is not None:
            return self._of_file(self.file, group, folder)
        lists = [[(key, text) for text in _texts(value)] for key, value in self.parameters.items()]
        return [
            self._job("-".join([name, *(value for _, value in sorted(chosen))]), name, group, chosen)
            for chosen in itertools.product(*lists)
        ]

    def _of_file(self, file: Path, group: str, folder: Path) -> list[Job]:
        library = Library.around(file, folder, *job_folders())
        overrides = [
            f"{key}: [{', '.join(_texts(value))}]" if isinstance(value, list) else f"{key}: {value}"
            for key, value in self.parameters.items()
        ]
        select = {axis: _texts(value) for axis, value in self.select.items()}
        units = select_units(file, library, library.host(group), overrides=overrides, select=select)
        return [
            self._job(
                unit.name.removesuffix(".yaml"),
                unit.testcase,
                group,
                tuple(unit.parameters.items()),
                tuple((key, str(value)) for key, value in unit.params.items()),
            )
            for unit in units
        ]

    def _job(
        self,
        name: str,
        testcase: str,
        group: str,
        parameters: tuple[tuple[str, str], ...],
        params: tuple[tuple[str, str], ...] = (),
    ) -> Job:
        return Job(
            name=name,
            testcase=testcase,
            benchmark=self.benchmark or ("command" if self.file is None else testcase),
            group=group,
            kpis=tuple(Kpi(key, spec.unit, spec.better, spec.least_effect) for key, spec in self.kpis.items()),
            command=self.command,
            parameters=parameters,
            params=params,
            timeout_s=self.timeout,
            output_limit=self.output_limit,
            broad=self.broad,
            monitors=self.monitors,
            source=self.source.source if self.source else None,
        )


def job_folders() -> list[Path]:
    """Where jobs' includes and programs are looked up last: an lkp-tests checkout (``$LKP_SRC``), if there is one, and
    the example configuration (in the wheel, or in the clone)."""
    package = Path(__file__).parents[1]
    example = package / "example_config"
    lkp = os.environ.get("LKP_SRC")
    return [*([Path(lkp)] if lkp else []), example if example.is_dir() else package.parent / "config"]
