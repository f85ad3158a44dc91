"""What every builder can do; a builder is one file beside this one, registered in `workers.builders`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bisectbot.clock import Clock
from bisectbot.jobs.assignment import BuildRecipe
from workers.process import Stop


@dataclass(frozen=True)
class Workshop:
    """Where a builder works: the checked-out ``tree``, a ``folder`` for what it makes, who owns its processes.

    ``keep`` is a folder of this build slot that stays for the next build in it, ``cache`` one that all slots of the
    machine share; ``jobs`` is how many processes a build may run at once.
    """

    tree: Path
    folder: Path
    keep: Path
    cache: Path
    owner: str
    clock: Clock
    stop: Stop
    hold: tuple[int, ...] = ()
    jobs: int = 1


@dataclass(frozen=True)
class Built:
    """``archive`` holds what was built, ``signature`` is equal for equal code, ``compiled`` the source files that went
    into it as far as the builder knows."""

    archive: Path
    signature: str
    compiled: tuple[str, ...] = ()


class Builder(Protocol):
    def build(self, recipe: BuildRecipe, shop: Workshop, log: Path) -> Built:
        """Build ``shop.tree``; all that the tools print goes to ``log``.

        Raises Untestable when the commit does not build, InfraError when this machine could not try.
        """
