"""Host groups as jobs see them: how many CPUs, how much memory, which disks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bisectbot.jobs.document import Document, Template, is_comment
from bisectbot.jobs.origin import Origin
from bisectbot.jobs.units import parse_bytes


def host_group(host: str) -> str:
    """The group of identical machines that a host belongs to (LKP's tbox_group).

    A trailing ``-<number>`` is dropped, and one ``-<number>-`` inside: lkp-icl-2sp2-1 → lkp-icl-2sp2.
    """
    return re.sub(r"-\d+-", "-", re.sub(r"-\d+\Z", "", host), count=1)


@dataclass(frozen=True)
class Host:
    """A host or host group and its facts, as its file tells them."""

    name: str
    group: str
    facts: Mapping[str, Any]
    origin: Origin

    @classmethod
    def named(cls, name: str, **facts: Any) -> Host:
        """A host of which nothing but the given facts is known."""
        return cls(name, host_group(name), facts, Origin(name, 1))

    @classmethod
    def read(cls, name: str, group: str, document: Document) -> Host:
        """From its file. Raises UserError where a fact cannot be used."""
        facts = {key: value for key, value in document.body.items() if not is_comment(key)}
        for key, value in facts.items():
            if isinstance(value, Template):
                raise document.place((key,)).error("`{{ }}` is for jobs; a host file states facts")
        for key in ("nr_cpu", "nr_node", "nr_socket"):
            if key in facts and (type(facts[key]) is not int or facts[key] < 1):
                raise document.place((key,)).error(f"{key}: expected a whole number from 1, found {facts[key]!r}")
        if "memory" in facts and parse_bytes(str(facts["memory"])) is None:
            raise document.place(("memory",)).error(f"memory: expected a size like 256G, found {facts['memory']!r}")
        return cls(name, group, facts, document.origin)

    @property
    def nr_cpu(self) -> int | None:
        """Logical CPUs."""
        return self.facts.get("nr_cpu")

    @property
    def memory(self) -> int | None:
        """Bytes."""
        return parse_bytes(str(self.facts.get("memory", "")))

    @property
    def machine(self) -> str:
        """The line that reports print: ``128 threads 2 sockets <brand> (<model>) with 256G memory``.

        Sockets are physical packages (``nr_socket``), never the number of NUMA nodes; what is unknown is left out.
        """
        facts = self.facts
        words = [
            f"{facts['nr_cpu']} threads" if "nr_cpu" in facts else "",
            f"{facts['nr_socket']} sockets" if "nr_socket" in facts else "",
            str(facts.get("brand", "")),
            f"({facts['model']})" if "model" in facts else "",
            f"with {facts['memory']} memory" if "memory" in facts else "",
        ]
        return " ".join(word for word in words if word)
