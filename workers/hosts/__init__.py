"""Host drivers, one a file. A new one: a file with a class like `Host`, and its line here."""

from __future__ import annotations

from collections.abc import Callable

from bisectbot import config
from bisectbot.errors import UserError
from workers.hosts.base import RESULTS, Booted, Host, Place, Program
from workers.hosts.local import LocalHost
from workers.hosts.qemu import QemuHost
from workers.hosts.simulated import SimulatedHost
from workers.hosts.ssh import SshHost

__all__ = ["DRIVERS", "RESULTS", "Booted", "Host", "Place", "Program", "attach"]

DRIVERS: dict[str, Callable[[Place, config.Host], Host]] = {
    "local": LocalHost,
    "qemu": QemuHost,
    "simulated": SimulatedHost,
    "ssh": SshHost,
}


def attach(place: Place, settings: config.Host) -> Host:
    """The driver that ``settings`` name. Raises UserError when they cannot work on this machine."""
    if settings.driver not in DRIVERS:
        raise UserError(f"host {place.name}: no driver {settings.driver!r}; there are: {', '.join(sorted(DRIVERS))}")
    return DRIVERS[settings.driver](place, settings)
