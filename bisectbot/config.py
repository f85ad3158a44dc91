"""What an operator edits, as frozen objects: ``bisectbot.yaml`` and the files it names.

Paths are relative to the file that names them. Durations are ``90``, ``90s``, ``10m``, ``2h`` or ``1d``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from bisectbot.chatconfig import Chat
from bisectbot.errors import UserError
from bisectbot.jobs.assignment import BuildRecipe, Job, KernelRecipe, Source
from bisectbot.jobs.hosts import Host as HostFacts
from bisectbot.jobs.kpi import Better, Kpi
from bisectbot.jobs.library import Library
from bisectbot.jobs.selection import AxisError, select_units
from bisectbot.mailconfig import Mail
from bisectbot.mailconfig import problems as mail_problems
from bisectbot.yamlfile import (
    ConfigError,
    Document,
    GitUrl,
    Name,
    Problem,
    RefName,
    RelativePath,
    Seconds,
    SecretPath,
    Section,
    read,
    validate,
    word,
)


class Server(Section):
    """``listen`` is where web serves, ``url`` how workers reach it, ``token_file`` holds the workers' secret.

    ``fetch_url`` is where builders fetch from: "" is the mirror's path, for builders on this machine.
    """

    listen: str = Field("127.0.0.1:8460", pattern=r"^[^\s:]+:\d+$|^\[[0-9a-fA-F:]+\]:\d+$")
    url: str = Field("http://127.0.0.1:8460", pattern=r"^https?://\S+$")
    token_file: SecretPath | None = None
    fetch_url: str = ""


Hour = Annotated[int, Field(ge=0, le=24)]


class BranchKind(StrEnum):
    LINEAR = "linear"
    REBUILT = "rebuilt"


class Branch(Section):
    """A watched ref: which build, which jobs. ``kind`` rebuilt: yesterday's head is no ancestor of today's.

    ``every``: measure each head that is seen, or also each merge or commit that came with it.
    """

    kind: BranchKind = BranchKind.LINEAR
    build: str
    jobs: tuple[str, ...] = Field(min_length=1)
    backfill: int = Field(0, ge=0, description="heads of the past to measure when the branch is first seen")
    every: Literal["head", "merge", "commit"] = "head"
    per_day: int | None = Field(None, ge=1, description="heads to begin within 24 hours")
    quiet: tuple[Hour, Hour] | None = Field(None, description="hours (UTC) in which nothing new is begun")


class Tree(Section):
    """A git repository that is watched."""

    url: GitUrl
    interval: Seconds = 300.0
    share: float = Field(1.0, gt=0, description="of the hosts' time, relative to the other trees")
    branches: dict[RefName, Branch] = Field(min_length=1)


COMPILER = re.compile(r"(gcc|clang|llvm)(-\d+)?")


class Build(Section):
    """How a commit is built.

    A kernel's ``kconfig`` is a target of the tree's own Makefile (``x86_64_defconfig``) or a file of ``kconfigs/``
    (without its ``.config``), as are the ``fragments`` that are merged into it in their order. Of other builds it is
    a name, for reports.
    """

    builder: Literal["command", "kernel"] = "command"
    command: str = ""
    outputs: tuple[str, ...] = ()
    environment: dict[str, str] = Field({})
    timeout: Seconds = 3600.0
    kconfig: str = Field("", description="name of the kernel configuration")
    fragments: tuple[Name, ...] = ()
    compiler: str = Field("", description="as gcc-12")
    arch: Name = "x86_64"

    _fragments: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def _names(self) -> list[str]:
        return [name for name in (self.kconfig, *self.fragments) if name]

    def read(self, folders: Sequence[Path]) -> None:
        """Take the files that are named out of the first of ``folders`` that has them. Raises OSError, ValueError."""
        for name in self._names:
            files = (folder / f"{name}.config" for folder in folders)
            if file := next((file for file in files if file.is_file()), None):
                self._fragments[name] = file.read_text(encoding="utf-8")

    @property
    def unread(self) -> list[str]:
        """Names that are no file, and not the tree's own configuration either."""
        own = {self.kconfig} if self.kconfig.endswith("config") else set()
        return [name for name in self._names if name not in self._fragments and name not in own]

    def recipe(self, name: str) -> BuildRecipe:
        kernel = None
        if self.builder == "kernel":
            base = "" if self.kconfig in self._fragments else self.kconfig
            kernel = KernelRecipe(base, tuple(self._fragments.items()), self.arch)
        return BuildRecipe(
            name=name,
            builder=self.builder,
            command=self.command,
            outputs=self.outputs,
            environment=tuple(sorted(self.environment.items())),
            timeout_s=self.timeout,
            kconfig="+".join(self._names),
            compiler=self.compiler,
            kernel=kernel,
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


class VerifyPolicy(Section):
    """What is tried once the search has named a commit, each by choice; what contradicts keeps it from its author.

    ``revert``: take it back on top of the bad end; ``reapply``: and put it there again. ``alignment``: variables added
    to the build's environment that force the alignment of functions; with them parent and culprit are built and
    measured when the effect is below ``alignment_below`` percent. ``second_group``: measure both on another host group
    of the same job, if one is idle.
    """

    revert: bool = True
    reapply: bool = True
    alignment: dict[str, str] = Field({})
    alignment_below: float = Field(5.0, gt=0, description="percent")
    second_group: bool = True
    budget: Seconds = Field(6 * 3600.0, description="host time for each check")


class BisectionPolicy(Section):
    """When bisections start by themselves, how sure they must be and what they may cost (farm hours)."""

    automatic: bool = True
    confidence: float = Field(0.99, gt=0.5, lt=1)
    budget: Seconds = 48 * 3600.0
    daily_budget: Seconds = 12 * 3600.0
    least_probability: float = Field(0.2, ge=0.05, le=0.99, description="of a step, before it is re-tested")
    verify: VerifyPolicy = VerifyPolicy()


class CanarySpec(Section):
    """One pinned commit that each host measures again and again: does it still measure what it did?"""

    commit: str = Field("", pattern=r"^([0-9a-f]{40})?$", description="40 hex digits; none, no canary")
    build: str = ""
    job: str = ""
    interval: Seconds = 24 * 3600.0
    runs: int = Field(3, ge=1, le=100, description="in one boot")
    aa_interval: Seconds = 24 * 3600.0
    aa_boots: int = Field(0, ge=0, le=100, description="of the pinned commit against itself, each time")


class CostsSpec(Section):
    """What things cost before the service has measured it itself (farm time)."""

    build: Seconds = 600.0
    boot: Seconds = 180.0
    run: Seconds = 300.0
    boot_failure: Seconds = 900.0
    builders: int = Field(4, ge=1)


class WorkerSpec(Section):
    """Of a worker's own machine: where it keeps its mirror, spool and logs; the lock that measuring shares."""

    state: RelativePath = Path("/var/lib/bisectbot/worker")
    exclusive: str = Field("", description="name of a machine-wide lock that builds wait for")
    slots: int = Field(1, ge=1, le=64, description="builds at once on this machine")


class LocalDriver(Section):
    """This machine, no boot. ``cpus`` pins runs; hosts with the same ``exclusive`` name never measure together."""

    cpus: tuple[int, ...] = ()
    exclusive: str = ""


class SimulatedDriver(Section):
    """A performance model per commit, from a file."""

    model: RelativePath


class QemuDriver(Section):
    """A virtual machine on the worker's own: each run is a boot of its own."""

    accel: Literal["auto", "kvm", "tcg"] = Field("auto", description="auto: KVM if a guest really boots with it")
    exact: bool = Field(False, description="count instructions instead of time")
    shift: int = Field(5, ge=0, le=10, description="an instruction of an exact guest takes 2^shift ns")
    cpus: int = Field(1, ge=1, le=255)
    nodes: int = Field(1, ge=1, le=16, description="NUMA nodes of equal size")
    memory: int = Field(512, ge=64, description="MiB")
    overlay: RelativePath | None = Field(None, description="folder with files that are laid over the guest's root")
    kernel: RelativePath | None = Field(None, description="for builds that hold none: they are programs, run on it")
    cmdline: str = "quiet"
    boot_timeout: Seconds = 300.0
    silence: Seconds = 120.0
    pinned: tuple[int, ...] = Field((), description="CPUs of the worker's machine that QEMU may use")
    exclusive: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.exact and (self.cpus > 1 or self.accel == "kvm"):
            raise ValueError("exact needs cpus: 1 and no kvm: several processors share no count of instructions")
        if self.cpus % self.nodes or self.memory % self.nodes:
            raise ValueError(f"cpus and memory cannot be shared out to {self.nodes} equal nodes")
        return self


class SshDriver(Section):
    """A box of its own: a shell over ssh, a power switch and a console through labgrid.

    ``labgrid`` is what labgrid's environment files hold for a target: ``resources`` and ``drivers``.
    """

    address: str = Field(pattern=r"^[^\s@-][^\s@]*@[^\s@:]+$", description="user@host; the user must be root")
    port: int = Field(22, ge=1, le=65535)
    key_file: SecretPath | None = None
    known_hosts: RelativePath | None = None
    labgrid: dict[str, Any]
    boot: Literal["grub", "kexec"] = "grub"
    cmdline: str = "quiet panic=30 oops=panic softlockup_panic=1"
    firmware: Seconds = 480.0
    loader: Seconds = 900.0
    silence: Seconds = 180.0
    boot_timeout: Seconds = 900.0
    login: Seconds = 300.0

    @field_validator("labgrid")
    @classmethod
    def _no_secrets(cls, target: dict[str, Any]) -> dict[str, Any]:
        for text in _strings(target):
            if re.search(r"\s-P[\s\S]|--password[= ]|://[^/\s:@]+:[^/\s@]+@", f" {text}"):
                raise ValueError("a password stands in it; keep it in a file that the command reads (ipmitool -f FILE)")
        return target


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, str):
        yield value


class ReadySpec(Section):
    """How a machine is set before each run, and read back; what is not given is left as found.

    A job's own ``cpufreq_governor`` is stronger than ``governor``.
    """

    governor: str = Field("", pattern=r"^[a-z]*$")
    turbo: bool | None = None
    smt: bool | None = None
    thp: Literal["", "always", "madvise", "never"] = ""


class Host(Section):
    """A machine: its group and the one driver section that says how it is reached."""

    group: Name
    driver: Literal["local", "qemu", "simulated", "ssh"]
    ready: ReadySpec = ReadySpec()
    local: LocalDriver = LocalDriver()
    qemu: QemuDriver = QemuDriver()
    ssh: SshDriver | None = None
    simulated: SimulatedDriver | None = None

    @property
    def exclusive(self) -> str:
        """The lock of the worker's machine that runs of this host hold, "" for none."""
        return {"local": self.local.exclusive, "qemu": self.qemu.exclusive}.get(self.driver, "")


class Config(Section):
    """``bisectbot.yaml``, whole. ``hosts`` is filled from the folder of host files beside it."""

    state: RelativePath = Path("/var/lib/bisectbot")
    database: str = ""
    broker: str = "embedded"
    server: Server = Server()
    mail: Mail = Mail()
    chat: Chat = Chat()
    tick: Seconds = 5.0
    trees: dict[Name, Tree] = Field(min_length=1)
    builds: dict[Name, Build] = Field(min_length=1)
    jobs: dict[Name, JobSpec] = Field(min_length=1)
    bisection: BisectionPolicy = BisectionPolicy()
    canary: CanarySpec = CanarySpec()
    costs: CostsSpec = CostsSpec()
    worker: WorkerSpec = WorkerSpec()
    hosts: dict[Name, Host] = Field({})

    _units: dict[str, tuple[Job, ...]] = PrivateAttr(default_factory=dict)
    _facts: dict[str, HostFacts] = PrivateAttr(default_factory=dict)

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

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """Of each host group that has a file (``hosts/GROUP.yaml``)."""
        return self._facts

    def units(self, name: str) -> tuple[Job, ...]:
        """The unit jobs of ``jobs.NAME``, for every host group; job files as they were when the service started."""
        return self._units[name]

    def jobs_of(self, branch: Branch) -> list[Job]:
        """The unit jobs of a branch, for every host group."""
        return [job for name in branch.jobs for job in self.units(name)]


def load(path: Path) -> Config:
    """Read ``path`` and the host files beside it (``hosts/*.yaml``).

    Raises ConfigError (a UserError) with everything that is wrong, each with file:line and a remedy.
    """
    document = read(path)
    problems: list[Problem] = []
    hosts: dict[str, Host] = {}
    for file in sorted((path.parent / "hosts").glob("*.yaml")):
        try:
            host_document = read(file)
            if isinstance(host_document.data, dict) and "driver" not in host_document.data:
                continue  # a host group's facts
            hosts[word(file.stem)] = validate(host_document, Host)
        except ConfigError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Problem(str(file), 0, str(error)))
    try:
        config = validate(document, Config)
    except ConfigError as error:
        raise ConfigError(error.problems + problems) from None
    if problems:
        raise ConfigError(problems)
    config = config.model_copy(update={"hosts": {**hosts, **config.hosts}})
    if config.chat.people is None and (people := path.parent / "people.yaml").is_file():
        config = config.model_copy(update={"chat": config.chat.model_copy(update={"people": people})})
    check = _Check(document, config)
    if wrong := check.all():
        raise ConfigError(wrong)
    config._units, config._facts = check.units, check.facts
    return config


def job_folders() -> list[Path]:
    """Where jobs' includes and programs are looked up last: an lkp-tests checkout (``$LKP_SRC``), if there is one, and
    the example configuration (in the wheel, or in the clone)."""
    package = Path(__file__).parent
    example = package / "example_config"
    lkp = os.environ.get("LKP_SRC")
    return [*([Path(lkp)] if lkp else []), example if example.is_dir() else package.parent / "config"]


class _Check:
    """Names that point nowhere, files that are not there, KPIs that no job has."""

    def __init__(self, document: Document, config: Config) -> None:
        self.document = document
        self.config = config
        self.problems: list[Problem] = []
        self.units: dict[str, tuple[Job, ...]] = {}
        self.facts: dict[str, HostFacts] = {}
        self.unread: set[str] = set()

    def all(self) -> list[Problem]:
        for check in (self.trees, self.builds, self.canary, self.groups, self.jobs, self.hosts, self.files, self.mail):
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
            if build.builder == "kernel":
                self.kconfig(name, build)

    def kconfig(self, name: str, build: Build) -> None:
        folder = Path(self.document.file).parent / "kconfigs"
        if not build.kconfig:
            self.tell(("builds", name), f"builds.{name}.kconfig is missing; add it: x86_64_defconfig, for example")
        if build.compiler and not COMPILER.fullmatch(build.compiler):
            text = f"builds.{name}.compiler: expected gcc, gcc-12, clang or llvm-14, found {build.compiler!r}"
            self.tell(("builds", name, "compiler"), text)
        try:
            build.read([folder, *(each / "kconfigs" for each in job_folders())])
        except (OSError, ValueError) as error:
            self.tell(("builds", name, "fragments"), f"builds.{name}.fragments: {folder} cannot be read: {error}")
            return
        for unread in build.unread:
            have = ", ".join(sorted(file.stem for file in folder.glob("*.config"))) or "none"
            key: tuple[str | int, ...] = ("kconfig",)
            if unread in build.fragments:
                key = ("fragments", build.fragments.index(unread))
            text = f"builds.{name}.{key[0]}: no file {unread}.config in {folder}; there are: {have}"
            self.tell(("builds", name, *key), text)

    def groups(self) -> None:
        folder = Path(self.document.file).parent
        for name, host in self.config.hosts.items():
            if host.group in self.facts or host.group in self.unread:
                continue
            if not (folder / "hosts" / f"{host.group}.yaml").is_file():
                continue
            try:
                self.facts[host.group] = Library((folder,)).host(host.group)
            except UserError as error:
                self.unread.add(host.group)
                self.problems.append(Problem(str(folder / "hosts" / f"{name}.yaml"), 0, f"its group's facts: {error}"))

    def canary(self) -> None:
        if self.config.canary.commit:
            self.named(("canary", "build"), self.config.canary.build, self.config.builds, "build")
            self.named(("canary", "job"), self.config.canary.job, self.config.jobs, "job")

    def jobs(self) -> None:
        groups = {host.group for host in self.config.hosts.values()}
        for name, job in self.config.jobs.items():
            if not job.kpis:
                text = f"jobs.{name}.kpis is empty: nothing would be watched; name at least one KPI"
                self.tell(("jobs", name, "kpis"), text)
            for i, group in enumerate(job.groups):
                self.named(("jobs", name, "groups", i), group, groups, "host group")
            if job.select and job.file is None:
                text = f"jobs.{name}.select is for a job file; add jobs.{name}.file, or use parameters"
                self.tell(("jobs", name, "select"), text)
            if job.file is not None and not job.file.is_file():
                self.tell(("jobs", name, "file"), f"jobs.{name}.file: no such file: {job.file}")
            else:
                self.units[name] = tuple(self.expanded(name, job, groups))
                if not job.command and any(unit.benchmark == "command" for unit in self.units[name]):
                    self.tell(("jobs", name), f"jobs.{name}.command is missing; add it")

    def expanded(self, name: str, job: JobSpec, groups: set[str]) -> list[Job]:
        folder, units = Path(self.document.file).parent, []
        for group in (group for group in job.groups if group in groups - self.unread):
            try:
                units += job.units(name, group, folder)
            except AxisError as error:
                self.tell(("jobs", name, "select", error.axis), f"jobs.{name}.select.{error.axis}: {error}")
                break
            except UserError as error:
                self.tell(("jobs", name, "file"), f"jobs.{name}.file on {group}: {error}")
        return units

    def hosts(self) -> None:
        for name, host in self.config.hosts.items():
            file = str(Path(self.document.file).parent / "hosts" / f"{name}.yaml")
            if host.driver == "simulated" and host.simulated is None:
                text = "driver is simulated, but the section `simulated` is missing; add it"
                self.problems.append(Problem(file, 0, text))
            if host.driver == "ssh" and host.ssh is None:
                self.problems.append(Problem(file, 0, "driver is ssh, but the section `ssh` is missing; add it"))
            if host.ssh and host.ssh.key_file and not host.ssh.key_file.is_file():
                self.problems.append(Problem(file, 0, f"ssh.key_file: no such file: {host.ssh.key_file}"))
            if host.simulated and not host.simulated.model.is_file():
                self.problems.append(Problem(file, 0, f"simulated.model: no such file: {host.simulated.model}"))

    def files(self) -> None:
        token = self.config.server.token_file
        if token is not None and not token.is_file():
            self.tell(("server", "token_file"), f"server.token_file: no such file: {token}")

    def mail(self) -> None:
        trees = {name: list(tree.branches) for name, tree in self.config.trees.items()}
        for where, message in mail_problems(self.config.mail, trees):
            self.tell(where, message)
