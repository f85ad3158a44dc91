"""From a commit to something that can be measured, one builder a file. A new one: a file with a class like `Builder`,
and its line here."""

from __future__ import annotations

from bisectbot.errors import InfraError
from workers.builders.base import Builder, Built, Workshop
from workers.builders.command import CommandBuilder
from workers.builders.kernel import KernelBuilder

__all__ = ["BUILDERS", "Builder", "Built", "Workshop", "find"]

BUILDERS: dict[str, Builder] = {
    "command": CommandBuilder(),
    "kernel": KernelBuilder(),
}


def find(name: str) -> Builder:
    """The builder called ``name``. Raises InfraError: this worker is older than the recipe."""
    if name not in BUILDERS:
        raise InfraError(f"no builder {name!r} in this worker; there are: {', '.join(sorted(BUILDERS))}")
    return BUILDERS[name]
