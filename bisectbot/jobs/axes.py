"""Which keys of a job distinguish it from others, and the unit jobs that lists of their values make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bisectbot.errors import UserError
from bisectbot.jobs.document import Document, Path, Template, is_comment
from bisectbot.jobs.programs import Catalogue, Role
from bisectbot.jobs.revise import copied

MAX_UNITS = 20_000
MAX_LISTS = 100  # axes of one job that hold lists
MAX_ROUNDS = 10  # of lists that a `{{ }}` made

_SOURCES = frozenset(
    ["kconfig", "commit", "rootfs"]
    + [f"{name}_commit" for name in ("ltp", "nvml", "blktests", "qemu", "perf_test", "linux")]
)


@dataclass(frozen=True)
class Axis:
    """A key that distinguishes; ``in_path`` says whether result paths show it, ``assigned`` as ``key=value``."""

    path: Path
    value: Any
    in_path: bool = True
    assigned: bool = False

    @property
    def key(self) -> str:
        return self.path[-1]


def find_axes(body: Mapping[str, Any], catalogue: Catalogue) -> list[Axis]:
    """The axes in the order of the document.

    An axis is an option of a program that the job names, or a test, set-up or daemon that is given a value itself
    (``fs: xfs``), or what is tested (kconfig, commit, rootfs). Options of monitors are none.
    """
    options: dict[str, bool] = {}
    for name in _named(body, catalogue):
        program = catalogue[name]
        if not program.only_monitors:
            options.update({option: option in program.assigned for option in program.options})
    return list(_walk(body, (), catalogue, options))


def tests_in(body: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """The test programs that a job names."""
    return [name for name in _named(body, catalogue) if Role.TEST in catalogue[name].roles]


def check_options(job: Document, catalogue: Catalogue, tests: Sequence[str]) -> None:
    """Refuse a list that a test is given as an option it does not have: nobody would ever choose from it."""

    def look(body: Mapping[str, Any], above: Path) -> None:
        for key, value in body.items():
            if isinstance(value, dict):
                look(value, (*above, key))
            elif isinstance(value, list) and above and above[-1] in tests and key not in catalogue[above[-1]].options:
                options = ", ".join(catalogue[above[-1]].options)
                raise job.place((*above, key)).error(
                    f"{above[-1]} has no option {key!r} to choose values for, only {options}; "
                    "if it should, add it in jobs/programs.yaml"
                )

    look(job.body, ())


def _named(body: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    """Programs that keys name, outside of monitors' own settings."""
    for key, value in body.items():
        known = key in catalogue
        if known:
            yield key
        if isinstance(value, dict) and not (known and catalogue[key].only_monitors):
            yield from _named(value, catalogue)


def _walk(body: Mapping[str, Any], above: Path, catalogue: Catalogue, options: Mapping[str, bool]) -> Iterator[Axis]:
    for key, value in body.items():
        path = (*above, key)
        if is_comment(key) or (key in catalogue and catalogue[key].only_monitors):
            continue
        if isinstance(value, dict):
            yield from _walk(value, path, catalogue, options)
        elif key in options:
            yield Axis(path, value, assigned=options[key])
        elif key in catalogue:
            yield Axis(path, value)
        elif key in _SOURCES:
            yield Axis(path, value, in_path=False)


def expand(job: Document, catalogue: Catalogue, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The unit jobs: the first axis that holds a list takes each of its elements in turn, then the next.

    ``{{ }}`` are evaluated once per unit job; the job's own keys, then the facts of its host, are their names.
    Raises UserError with file:line.
    """
    for count, body in enumerate(_chosen(copied(job.body), job, catalogue, facts, 0)):
        if count == MAX_UNITS:
            raise _too_many(job)
        yield body


def _too_many(job: Document) -> UserError:
    return job.origin.error(f"expands to more than {MAX_UNITS} unit jobs")


def _chosen(
    body: dict[str, Any], job: Document, catalogue: Catalogue, facts: Mapping[str, Any], rounds: int
) -> Iterator[dict[str, Any]]:
    lists = [axis for axis in find_axes(body, catalogue) if isinstance(axis.value, list)]
    if len(lists) > MAX_LISTS:
        raise job.origin.error(f"more than {MAX_LISTS} keys hold lists to choose from")
    if math.prod(len(axis.value) for axis in lists) > MAX_UNITS:
        raise _too_many(job)
    if not lists:
        if not _has_template(body):
            yield body
            return
        rendered = _rendered(body, (body,), facts)
        if rounds == MAX_ROUNDS:
            raise job.origin.error(f"`{{{{ }}}}` that make lists of `{{{{ }}}}`, more than {MAX_ROUNDS} times")
        yield from _chosen(rendered, job, catalogue, facts, rounds + 1)
        return
    listed = lists[0]
    place = job.place(listed.path)
    if not listed.value:
        raise place.error(f"{listed.key}: an empty list makes no job; expected values, or nil for without")
    for element in listed.value:
        if isinstance(element, list | dict):
            raise place.error(f"{listed.key}: expected a list of plain values")
        chosen = copied(body)
        target = chosen
        for name in listed.path[:-1]:
            target = target[name]
        target[listed.key] = element
        yield from _chosen(chosen, job, catalogue, facts, rounds)


def _has_template(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(_has_template(inner) for inner in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Template)


def _rendered(value: Any, scopes: tuple[Mapping[str, Any], ...], facts: Mapping[str, Any]) -> Any:
    """Evaluate the templates; names are looked up in the innermost mapping first."""
    if isinstance(value, Template):
        return value.render(_lookup(scopes, facts, (value,)))
    if isinstance(value, list):
        return [_rendered(item, scopes, facts) for item in value]
    if isinstance(value, dict):
        return {key: _rendered(inner, (value, *scopes), facts) for key, inner in value.items()}
    return value


def _lookup(
    scopes: tuple[Mapping[str, Any], ...], facts: Mapping[str, Any], asking: tuple[Template, ...]
) -> Callable[[str], Any]:
    def lookup(name: str) -> Any:
        if name == "job":
            return {**facts, **scopes[-1]}
        for scope in (*scopes, facts):
            if name in scope:
                found = scope[name]
                if not isinstance(found, Template):
                    return found
                if any(found is one for one in asking):
                    raise KeyError(name)
                return found.render(_lookup(scopes, facts, (*asking, found)))
        raise KeyError(name)

    return lookup
