"""What an operator edits, as frozen objects: ``bisectbot.yaml`` and the files it names.

Paths are relative to the file that names them. Durations are ``90``, ``90s``, ``10m``, ``2h`` or ``1d``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import tempfile
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from bisectbot.jobs.assignment import BuildRecipe, Job
from bisectbot.jobs.kpi import Better, Kpi
from bisectbot.yamlfile import ConfigError, Document, Problem, read, validate

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: object) -> float:
    """``10m`` → 600.0; raises ValueError with what was expected."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
    if not match:
        raise ValueError(f"expected a duration such as 90s, 10m, 2h or 1d, found {value!r}")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _ref_name(value: str) -> str:
    if value.startswith("-") or re.search(r"[\s~^:?*\[\\]|\.\.|@\{|//|\.lock$|/$|^/|^$", value):
        raise ValueError(f"{value!r} is no name of a branch")
    return value


def _word(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+%=-]*", value):
        raise ValueError(f"{value!r}: a name is letters, digits and ._+%=- and starts with a letter or digit")
    return value


def _url(value: str) -> str:
    if value.startswith("-") or "::" in value:
        raise ValueError(f"{value!r} is no address that git may fetch from")
    return value


def _relative(value: Any, info: ValidationInfo) -> Any:
    folder = (info.context or {}).get("folder")
    return folder / value if folder and isinstance(value, str) else value


def _secret(value: Any, info: ValidationInfo) -> Any:
    """A file with a secret: within a systemd unit, the credential of that name if the unit was given one."""
    path = _relative(value, info)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    given = Path(folder) / Path(path).name if folder and isinstance(path, str | Path) else None
    return given if given and given.is_file() else path


Seconds = Annotated[float, BeforeValidator(seconds)]
RefName = Annotated[str, AfterValidator(_ref_name)]
Name = Annotated[str, AfterValidator(_word)]
RelativePath = Annotated[Path, BeforeValidator(_relative)]
SecretPath = Annotated[Path, BeforeValidator(_secret)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MailPolicy(StrEnum):
    """How far a report may travel (a ladder: each rung includes the ones before)."""

    FILES = "files"
    OPERATORS = "operators"
    AUTHOR = "author"
    LISTS = "lists"


class Smtp(Section):
    host: str = "127.0.0.1"
    port: int = Field(25, ge=1, le=65535)
    starttls: bool = False
    user: str = ""
    password_file: SecretPath | None = None


class Mail(Section):
    """Who we are in mails and how they leave."""

    sender: str = "bisectbot <bisectbot@localhost>"
    operators: tuple[str, ...] = ()
    policy: MailPolicy = MailPolicy.FILES
    smtp: Smtp = Smtp()
    archive_url: str = ""


class Server(Section):
    """``listen`` is where web serves, ``url`` how workers reach it, ``token_file`` holds the workers' secret.

    ``fetch_url`` is where builders fetch from: "" is the mirror's path, for builders on this machine.
    """

    listen: str = Field("127.0.0.1:8460", pattern=r"^[^\s:]+:\d+$|^\[[0-9a-fA-F:]+\]:\d+$")
    url: str = Field("http://127.0.0.1:8460", pattern=r"^https?://\S+$")
    token_file: SecretPath | None = None
    fetch_url: str = ""


class BranchKind(StrEnum):
    LINEAR = "linear"
    REBUILT = "rebuilt"


class Branch(Section):
    """A watched ref: which build, which jobs. ``kind`` rebuilt: yesterday's head is no ancestor of today's."""

    kind: BranchKind = BranchKind.LINEAR
    build: str
    jobs: tuple[str, ...] = Field(min_length=1)
    backfill: int = Field(0, ge=0, description="heads of the past to measure when the branch is first seen")


class Tree(Section):
    """A git repository that is watched."""

    url: Annotated[str, AfterValidator(_url)]
    interval: Seconds = 300.0
    share: float = Field(1.0, gt=0, description="of the hosts' time, relative to the other trees")
    branches: dict[RefName, Branch] = Field(min_length=1)
    link: str = Field("", description="address of a commit for people, with {commit} in it")


class Build(Section):
    """How a commit is built."""

    builder: str = "command"
    command: str = ""
    outputs: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    timeout: Seconds = 3600.0

    def recipe(self, name: str) -> BuildRecipe:
        environment = tuple(sorted(self.environment.items()))
        return BuildRecipe(name, self.builder, self.command, self.outputs, environment, self.timeout)


class KpiSpec(Section):
    unit: str = ""
    better: Better = Better.NONE
    least_effect: float | None = Field(None, gt=0, description="percent")


class JobSpec(Section):
    """A testcase with its axes: each list among ``parameters`` is expanded, the first varies slowest."""

    benchmark: str = "command"
    command: str = ""
    parameters: dict[str, str | int | float | list[str | int | float]] = {}
    groups: tuple[Name, ...] = Field(min_length=1)
    kpis: dict[str, KpiSpec]
    runs: int = Field(3, ge=1, le=100, description="per head")
    timeout: Seconds = 600.0
    output_limit: int = Field(16 * 2**20, ge=1024)

    def units(self, name: str, group: str) -> list[Job]:
        """The jobs for one host group, one per combination of parameters."""
        lists = [[(key, str(v)) for v in (value if isinstance(value, list) else [value])]
                 for key, value in self.parameters.items()]  # fmt: skip
        kpis = tuple(Kpi(k, spec.unit, spec.better, spec.least_effect) for k, spec in self.kpis.items())
        return [
            Job(
                name="-".join([name, *(value for _, value in sorted(chosen))]),
                testcase=name,
                benchmark=self.benchmark,
                group=group,
                kpis=kpis,
                command=self.command,
                parameters=chosen,
                timeout_s=self.timeout,
                output_limit=self.output_limit,
            )
            for chosen in itertools.product(*lists)
        ]


class BisectionPolicy(Section):
    """When bisections start by themselves, how sure they must be and what they may cost (farm hours)."""

    automatic: bool = True
    confidence: float = Field(0.99, gt=0.5, lt=1)
    budget: Seconds = 48 * 3600.0
    daily_budget: Seconds = 12 * 3600.0
    least_probability: float = Field(0.7, gt=0.5, lt=1, description="of a step, before it is re-tested")


class CostsSpec(Section):
    """What things cost before the service has measured it itself (farm time)."""

    build: Seconds = 600.0
    boot: Seconds = 180.0
    run: Seconds = 300.0
    boot_failure: Seconds = 900.0
    builders: int = Field(4, ge=1)


class WorkerSpec(Section):
    """Of a worker's own machine: where it keeps its mirror, spool and logs; the lock that measuring shares."""

    state: RelativePath = Path("worker")
    exclusive: str = Field("", description="name of a machine-wide lock that builds wait for")


class LocalDriver(Section):
    """This machine, no boot. ``cpus`` pins runs; hosts with the same ``exclusive`` name never measure together."""

    cpus: tuple[int, ...] = ()
    exclusive: str = ""


class SimulatedDriver(Section):
    """A performance model per commit, from a file."""

    model: RelativePath


class Host(Section):
    """A machine: its group and the one driver section that says how it is reached."""

    group: Name
    driver: Literal["local", "simulated"]
    local: LocalDriver = LocalDriver()
    simulated: SimulatedDriver | None = None


class Config(Section):
    """``bisectbot.yaml``, whole. ``hosts`` is filled from the folder of host files beside it."""

    name: Name = "bisectbot"
    state: RelativePath = Path("/var/lib/bisectbot")
    database: str = ""
    broker: str = "embedded"
    server: Server = Server()
    mail: Mail = Mail()
    tick: Seconds = 5.0
    trees: dict[Name, Tree] = Field(min_length=1)
    builds: dict[Name, Build] = Field(min_length=1)
    jobs: dict[Name, JobSpec] = Field(min_length=1)
    bisection: BisectionPolicy = BisectionPolicy()
    costs: CostsSpec = CostsSpec()
    worker: WorkerSpec = WorkerSpec()
    hosts: dict[Name, Host] = {}

    @property
    def database_url(self) -> str:
        """SQLAlchemy's address of the database; SQLite below ``state`` unless told otherwise."""
        return self.database or f"sqlite:///{self.state / 'bisectbot.db'}"

    @property
    def token_path(self) -> Path:
        """The file with the workers' secret: as configured, or one that `serve` makes below ``state``."""
        return self.server.token_file or self.state / "worker.token"

    @property
    def broker_socket(self) -> Path:
        """Where the embedded broker listens: short, since the path of a Unix socket has at most 107 bytes."""
        digest = hashlib.sha256(str(self.state.absolute()).encode()).hexdigest()[:12]
        folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        return folder / f"bisectbot-{os.getuid()}-{digest}" / "broker"

    @property
    def broker_url(self) -> str:
        """Celery's address of the broker."""
        return f"redis+socket://{self.broker_socket}" if self.broker == "embedded" else self.broker

    def jobs_of(self, branch: Branch) -> list[Job]:
        """The unit jobs of a branch, for every host group."""
        named = [(name, self.jobs[name]) for name in branch.jobs]
        return [job for name, spec in named for group in spec.groups for job in spec.units(name, group)]


def load(path: Path) -> Config:
    """Read ``path`` and the host files beside it (``hosts/*.yaml``).

    Raises ConfigError (a UserError) with everything that is wrong, each with file:line and a remedy.
    """
    document = read(path)
    problems: list[Problem] = []
    hosts: dict[str, Host] = {}
    for file in sorted((path.parent / "hosts").glob("*.yaml")):
        host_document = read(file)
        if isinstance(host_document.data, dict) and "driver" not in host_document.data:
            continue  # a host group's facts
        try:
            hosts[_word(file.stem)] = validate(host_document, Host)
        except ConfigError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Problem(str(file), 0, str(error)))
    try:
        config = validate(document, Config)
    except ConfigError as error:
        raise ConfigError(error.problems + problems) from None
    config = config.model_copy(update={"hosts": {**hosts, **config.hosts}})
    problems += _Check(document, config).all()
    if problems:
        raise ConfigError(problems)
    return config


class _Check:
    """Names that point nowhere, files that are not there, KPIs that no job has."""

    def __init__(self, document: Document, config: Config) -> None:
        self.document = document
        self.config = config
        self.problems: list[Problem] = []

    def all(self) -> list[Problem]:
        for check in (self.trees, self.builds, self.jobs, self.hosts, self.files):
            check()
        return self.problems

    def tell(self, path: tuple[str | int, ...], message: str) -> None:
        self.problems.append(self.document.problem(path, message))

    def named(self, path: tuple[str | int, ...], name: str, known: Iterable[str], what: str) -> None:
        if name not in known:
            have = ", ".join(sorted(known)) or "none"
            self.tell(path, f"{what} {name!r} is not defined; there are: {have}")

    def trees(self) -> None:
        for tree_name, tree in self.config.trees.items():
            for ref, branch in tree.branches.items():
                here: tuple[str | int, ...] = ("trees", tree_name, "branches", ref)
                self.named((*here, "build"), branch.build, self.config.builds, "build")
                for i, job in enumerate(branch.jobs):
                    self.named((*here, "jobs", i), job, self.config.jobs, "job")

    def builds(self) -> None:
        for name, build in self.config.builds.items():
            if build.builder == "command" and not build.command:
                self.tell(("builds", name), f"builds.{name}.command is missing; add it")

    def jobs(self) -> None:
        groups = {host.group for host in self.config.hosts.values()}
        for name, job in self.config.jobs.items():
            if not job.kpis:
                text = f"jobs.{name}.kpis is empty: nothing would be watched; name at least one KPI"
                self.tell(("jobs", name, "kpis"), text)
            if job.benchmark == "command" and not job.command:
                self.tell(("jobs", name), f"jobs.{name}.command is missing; add it")
            for i, group in enumerate(job.groups):
                self.named(("jobs", name, "groups", i), group, groups, "host group")

    def hosts(self) -> None:
        for name, host in self.config.hosts.items():
            file = str(Path(self.document.file).parent / "hosts" / f"{name}.yaml")
            if host.driver == "simulated" and host.simulated is None:
                text = "driver is simulated, but the section `simulated` is missing; add it"
                self.problems.append(Problem(file, 0, text))
            if host.simulated and not host.simulated.model.is_file():
                self.problems.append(Problem(file, 0, f"simulated.model: no such file: {host.simulated.model}"))

    def files(self) -> None:
        for path, where in [
            (self.config.server.token_file, ("server", "token_file")),
            (self.config.mail.smtp.password_file, ("mail", "smtp", "password_file")),
        ]:
            if path is not None and not path.is_file():
                self.tell(where, f"{'.'.join(where)}: no such file: {path}")
