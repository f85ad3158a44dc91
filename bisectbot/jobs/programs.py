"""Programs: the tests, set-ups, daemons and monitors that a job's keys name, and the options that each declares."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisectbot.jobs.document import Document, is_comment


class Role(enum.StrEnum):
    """What a program is for."""

    TEST = "test"
    SETUP = "setup"
    DAEMON = "daemon"
    MONITOR = "monitor"


@dataclass(frozen=True)
class Program:
    """A program by name; ``options`` are the keys that parametrise it, ``assigned`` those that paths show as ``k=v``.

    Options of a program that is only a monitor do not distinguish jobs.
    """

    name: str
    roles: frozenset[Role]
    options: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()

    @property
    def only_monitors(self) -> bool:
        return self.roles <= {Role.MONITOR}


_COMMON = ("runtime", "testtime", "nr_task", "nr_threads", "iterations")


@dataclass(frozen=True)
class Catalogue:
    """All known programs by name."""

    programs: Mapping[str, Program]

    def __getitem__(self, name: str) -> Program:
        return self.programs[name]

    def __contains__(self, name: str) -> bool:
        return name in self.programs

    def knowing(self, body: Mapping[str, Any]) -> Catalogue:
        """With the test that a job's ``testcase`` or ``suite`` names, where nobody described it.

        Its options are then the keys that the job gives it, and those that nearly every test has.
        """
        for key in ("testcase", "suite"):
            name = body.get(key)
            if isinstance(name, str) and name in body and name not in self.programs:
                inner = body[name]
                options = (*(inner if isinstance(inner, dict) else ()), *_COMMON)
                return Catalogue({**self.programs, name: Program(name, frozenset({Role.TEST}), options)})
        return self


def parse_programs(document: Document) -> dict[str, Program]:
    """Read ``programs.yaml``: ``name: {role: test, options: [a, b], assigned: [c]}``. Raises UserError."""
    programs: dict[str, Program] = {}
    for name, entry in document.body.items():
        if is_comment(name):
            continue
        place = document.place((name,))
        if not isinstance(entry, dict) or set(entry) - {"role", "options", "assigned"} or "role" not in entry:
            raise place.error("expected `{role: test|setup|daemon|monitor, options: […], assigned: […]}`")
        roles = entry["role"] if isinstance(entry["role"], list) else [entry["role"]]
        known = {role.value for role in Role}
        if not roles or any(role not in known for role in roles):
            raise place.error(f"role {entry['role']!r}: expected one or a list of {', '.join(sorted(known))}")
        options, assigned = (entry.get(key) or [] for key in ("options", "assigned"))
        if not all(
            isinstance(part, list) and all(isinstance(one, str) for one in part) for part in (options, assigned)
        ):
            raise place.error("options and assigned are lists of names")
        programs[name] = Program(
            name, frozenset(Role(role) for role in roles), (*options, *assigned), frozenset(assigned)
        )
    return programs


_SCRIPTS = {
    "run": Role.TEST,
    "setup": Role.SETUP,
    "daemon": Role.DAEMON,
    "monitor": Role.MONITOR,
    "no-stdout-monitor": Role.MONITOR,
    "one-shot-monitor": Role.MONITOR,
    "plain-monitor": Role.MONITOR,
}
_OPTION = re.compile(rb"#\s*([-=])\s+([A-Za-z_][\w.-]*)")


def scan_programs(folder: Path) -> dict[str, Program]:
    """Read an lkp-tests checkout's ``programs``: only names and declared options are taken from the scripts."""
    programs: dict[str, Program] = {}
    for place in sorted(folder.iterdir()):
        roles: set[Role] = set()
        options: dict[str, bool] = {}
        for script, role in _SCRIPTS.items():
            if (file := place / script).is_file():
                roles.add(role)
                if role is not Role.MONITOR:
                    options.update(_declared(file))
        if roles:
            assigned = frozenset(name for name, assign in options.items() if assign)
            programs[place.name] = Program(place.name, frozenset(roles), tuple(options), assigned)
    return programs


def _declared(script: Path) -> dict[str, bool]:
    """Options in a script's first comment block, up to the first blank line; True where marked ``=``."""
    found: dict[str, bool] = {}
    with script.open("rb") as stream:
        for line in stream.read(16_384).splitlines():
            if not line.strip():
                break
            if match := _OPTION.match(line):
                found[match[2].decode("ascii")] = match[1] == b"="
    return found
