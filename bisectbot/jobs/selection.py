"""Of all the unit jobs of a job file, the ones that somebody wants on a host group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from bisectbot.errors import UserError
from bisectbot.jobs.hosts import Host
from bisectbot.jobs.jobfile import UnitJob, read_job
from bisectbot.jobs.library import Library


class AxisError(UserError):
    """``axis`` does not exist, or has none of the values that were asked for."""

    def __init__(self, axis: str, message: str) -> None:
        super().__init__(message)
        self.axis = axis


def select_units(
    file: Path, library: Library, host: Host, *, overrides: Sequence[str] = (), select: Mapping[str, Sequence[str]]
) -> list[UnitJob]:
    """The unit jobs of ``file`` on ``host`` whose parameters have one of the values that ``select`` lists for them.

    ``overrides`` are those of `read_job`. Raises AxisError when nothing is left, UserError with file:line for a job
    file that cannot be used and for a unit job that the host cannot run.
    """
    units = list(read_job(file, library, host=host, overrides=overrides).units())
    for axis, wanted in select.items():
        there = list(dict.fromkeys(unit.parameters[axis] for unit in units if axis in unit.parameters))
        if not there:
            axes = sorted({key for unit in units for key in unit.parameters})
            raise AxisError(axis, f"no such axis; {_near(axis, axes)}")
        for value in wanted:
            if value not in there:
                raise AxisError(axis, f"no unit job has {axis} {value}; {_near(value, there)}")
        units = [unit for unit in units if unit.parameters.get(axis) in wanted]
    for unit in units:
        if unit.unfit is not None:
            raise unit.origin.error(f"{unit.name} cannot run there: {unit.unfit}; select others, or another host group")
    return units


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
