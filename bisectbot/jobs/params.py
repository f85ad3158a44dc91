"""What a parameter's text means on a host: ``nr_task: 50%`` is 64 on 128 CPUs, ``runtime: 5m`` is 300 seconds.

Counts: ``N%`` is floor(N × CPUs / 100), unit letters are dropped. Times become seconds, sizes bytes (``N%``: of the
memory). ``disk: 1BRD_48G`` becomes ``nr_brd`` 1 and ``ramdisk_size`` 48G, ``md: RAID5`` becomes ``raid_level``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from bisectbot.jobs.axes import Axis
from bisectbot.jobs.document import Document
from bisectbot.jobs.evaluate import as_text
from bisectbot.jobs.hosts import Host
from bisectbot.jobs.origin import Origin
from bisectbot.jobs.units import parse_bytes, parse_count, parse_percent, parse_seconds

Param = int | float | str

_COUNTS = re.compile(
    r"nr_\w+|threads?|tasks?|processes|instances|workers|iterations|loops|number|trans|subdirs|filenum"
)
_TIMES = frozenset({"runtime", "testtime", "period", "duration", "warmup"})
_SIZES = frozenset({"size", "filesize", "test_size", "bs", "block_size", "send_size", "recv_size", "unit_size"})
_FACTS = {"need_memory": "memory", "need_cpu": "nr_cpu", "need_node": "nr_node"}
_DISK = re.compile(r"(?P<count>\d{1,4})(?P<kind>[A-Za-z]+)(?:_(?P<size>\d+[KMGT]))?")


def map_params(axes: Iterable[Axis], job: Document, host: Host | None) -> dict[str, Param]:
    """Parameters as the programs get them, in the job's order; nil ones are left out.

    Without a host percentages stay as they are. Raises UserError with file:line for a text that means nothing, or
    where the host's file lacks what a percentage is of.
    """
    params: dict[str, Param] = {}
    for axis in axes:
        if axis.in_path and axis.value is not None:
            params.update(_mapped(axis.key, axis.value, job.place(axis.path), host))
    return params


def _mapped(key: str, value: Any, place: Origin, host: Host | None) -> Mapping[str, Param]:
    text = as_text(value).strip()
    percent = parse_percent(text)
    if key == "disk" and (found := _DISK.fullmatch(text)):
        size = {"ramdisk_size": found["size"]} if found["size"] else {}
        return {f"nr_{found['kind'].lower()}": int(found["count"]), **size}
    if key == "md":
        return {"raid_level": text.lower()}
    if _COUNTS.fullmatch(key):
        return {key: _count(key, text, percent, place, host)}
    if key in _SIZES:
        return {key: _size(key, text, percent, place, host)}
    if key in _TIMES:
        seconds = parse_seconds(text)
        if seconds is None:
            raise place.error(f"{key}: expected a time like 300s, 5m or 1h, found {text!r}")
        return {key: seconds}
    return {key: value if isinstance(value, int | float) and not isinstance(value, bool) else text}


def _count(key: str, text: str, percent: float | None, place: Origin, host: Host | None) -> Param:
    if percent is not None:
        return text if host is None else _share(f"{key}: {text}", percent, host.nr_cpu, "nr_cpu", place)
    count = parse_count(text)
    if count is None:
        raise place.error(f"{key}: expected a count like 16, 16t or 50%, found {text!r}")
    return count


def _size(key: str, text: str, percent: float | None, place: Origin, host: Host | None) -> Param:
    if percent is not None:
        return text if host is None else _share(f"{key}: {text}", percent, host.memory, "memory", place)
    size = parse_bytes(text)
    if size is None:
        raise place.error(f"{key}: expected a size like 4K, 1G or 10%, found {text!r}")
    return size


def _share(what: str, percent: float, whole: int | None, fact: str, place: Origin) -> int:
    if whole is None:
        raise place.error(f"{what} is a part of `{fact}`, which the host's file does not tell")
    return math.floor(Fraction(str(percent)) * whole / 100)


def unfit(params: Mapping[str, Param], job: Document, host: Host) -> str | None:
    """Why a job cannot run on a host, or None.

    Looks at need_memory (a size), need_cpu, need_node (counts) and at counts that came out as 0. Needs that a build
    decides (need_kconfig, need_kernel_version) are not looked at here. Raises UserError for a need without meaning.
    """
    for key, value in params.items():
        if value == 0 and re.fullmatch(r"nr_(task|threads|processes|instances|jobs?)", key):
            return f"{key} is 0 on {host.group}"
    nr_node = host.facts.get("nr_node")
    for key, have, meaning in (
        ("need_memory", host.memory, parse_bytes),
        ("need_cpu", host.nr_cpu, parse_count),
        ("need_node", nr_node if isinstance(nr_node, int) else None, parse_count),
    ):
        if job.body.get(key) is None or have is None:
            continue
        need = meaning(as_text(job.body[key]))
        if need is None:
            raise job.place((key,)).error(f"{key}: expected a number or size, found {job.body[key]!r}")
        if have < need:
            return f"{key} is {job.body[key]}, {host.group} has {host.facts[_FACTS[key]]}"
    return None
