"""A built kernel as an archive holds it: what the builder wrote and the host drivers read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import InfraError, UserError
from bisectbot.jobs import wire

DESCRIPTION = "kernel.json"
CONFIG, SYMBOLS, MODULES = "config", "System.map", "modules.tar"


@dataclass(frozen=True)
class Kernel:
    """``release`` is what ``uname -r`` must say once it is booted, ``build_id`` (40 hex digits, "" if none) what
    ``/sys/kernel/notes`` must hold; ``image`` and ``modules`` are names in the archive, ``modules`` a tar of
    ``lib/modules/RELEASE`` or "" if the kernel has none. ``compiler`` is the compiler's own first line."""

    release: str
    build_id: str
    image: str
    arch: str
    compiler: str
    modules: str = ""

    def write(self, folder: Path) -> None:
        (folder / DESCRIPTION).write_bytes(wire.encode(self))


def read(folder: Path) -> Kernel:
    """The kernel in an unpacked archive. Raises InfraError: it holds none, another recipe made it."""
    try:
        kernel = wire.decode(Kernel, (folder / DESCRIPTION).read_bytes())
    except (OSError, UserError) as error:
        raise InfraError(f"{folder} holds no kernel ({error}); its build needs `builder: kernel`") from None
    if not (folder / kernel.image).is_file():
        raise InfraError(f"{folder} holds no {kernel.image}")
    return kernel
