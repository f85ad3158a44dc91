"""Where numbers were made: the machine in words, kernel configuration, compiler and root file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.config import Config
from bisectbot.jobs.assignment import BuildRecipe, Job
from bisectbot.jobs.hosts import Host
from bisectbot.store.tables import Environment, HostGroup


@dataclass(frozen=True)
class Surroundings:
    """``machine`` describes the host group's hardware, ``axes`` tell where a table's numbers belong: what the job
    fixes, and what it ran on. Unknown facts are "" or not among the axes."""

    machine: str
    kconfig: str
    compiler: str
    axes: Mapping[str, str]


def surroundings(session: Session, config: Config, job: Job, recipe: BuildRecipe) -> Surroundings:
    """Of a job that ran what ``recipe`` built."""
    facts = config.facts.get(job.group)
    around = {
        "compiler": recipe.compiler,
        "kconfig": recipe.kconfig,
        "rootfs": str(facts.facts.get("rootfs", "")) if facts else "",
    }
    fixed = {"testcase": job.testcase, "tbox_group": job.group}
    axes = {**{axis: value for axis, value in around.items() if value}, **dict(job.parameters), **fixed}
    machine = (facts or _measured(session, job.group)).machine or f"a host of group {job.group}"
    return Surroundings(machine, recipe.kconfig, recipe.compiler, axes)


def _measured(session: Session, group: str) -> Host:
    """What the hosts of a group without a file said of themselves when they last ran something."""
    query = (
        select(Environment.facts)
        .join(HostGroup, HostGroup.id == Environment.group_id)
        .where(HostGroup.name == group)
        .order_by(Environment.since.desc(), Environment.id.desc())
        .limit(1)
    )
    measured = session.execute(query).scalar_one_or_none() or {}
    words = {
        "nr_cpu": _count(str(measured.get("cpus", ""))),
        "brand": measured.get("cpu"),
        "memory": f"{measured['memory_gib']}G" if measured.get("memory_gib", "0") != "0" else None,
    }
    return Host.named(group, **{name: value for name, value in words.items() if value})


def _count(ranges: str) -> int:
    """How many CPUs ``0-3,8`` names; 0 for what is no such list."""
    ends = [part.partition("-") for part in ranges.split(",") if part]
    if not all(low.isdecimal() and (high.isdecimal() or not dash) for low, dash, high in ends):
        return 0
    return sum(int(high or low) - int(low) + 1 for low, _, high in ends)
