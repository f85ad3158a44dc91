"""What a whole configuration must make sense of: names that point nowhere, files that are not there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bisectbot.config.builds import COMPILER, Build
from bisectbot.config.jobs import JobSpec, job_folders
from bisectbot.config.mail import problems as mail_problems
from bisectbot.config.whole import Config
from bisectbot.errors import UserError
from bisectbot.jobs.assignment import Job
from bisectbot.jobs.hosts import Host as HostFacts
from bisectbot.jobs.library import Library
from bisectbot.jobs.selection import AxisError
from bisectbot.yamlfile import (
    Document,
    Problem,
)


class Check:
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
