"""How a commit is built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr

from bisectbot.jobs.assignment import BuildRecipe, KernelRecipe
from bisectbot.yamlfile import (
    Name,
    Seconds,
    Section,
)

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
