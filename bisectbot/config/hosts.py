"""Machines: how each is reached, and what it must be before anything is measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from bisectbot.yamlfile import (
    Name,
    RelativePath,
    Seconds,
    SecretPath,
    Section,
)


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

    @field_validator("ready")
    @classmethod
    def _knobs(cls, ready: ReadySpec, info: ValidationInfo) -> ReadySpec:
        if info.data.get("driver") == "qemu" and ready != ReadySpec():
            raise ValueError(
                "a guest has no governor and no turbo; set them on the worker's machine, and huge pages with"
                " qemu.cmdline: transparent_hugepage=never"
            )
        return ready

    @property
    def exclusive(self) -> str:
        """The lock of the worker's machine that runs of this host hold, "" for none."""
        return {"local": self.local.exclusive, "qemu": self.qemu.exclusive}.get(self.driver, "")
