"""A job file, read and put together, and the unit jobs that it expands into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from bisectbot.errors import UserError
from bisectbot.jobs.axes import Axis, check_options, expand, find_axes, tests_in
from bisectbot.jobs.document import Document, is_comment, parse_documents
from bisectbot.jobs.erb import render
from bisectbot.jobs.evaluate import as_text
from bisectbot.jobs.hosts import Host
from bisectbot.jobs.includes import expand_includes
from bisectbot.jobs.library import Library, read_file
from bisectbot.jobs.names import RESULT_ROOT, axes_line, path_params, path_value, unit_name
from bisectbot.jobs.origin import Line, Origin
from bisectbot.jobs.params import Param, map_params, unfit
from bisectbot.jobs.revise import revised

_PLACES = ("tbox_group", "rootfs", "kconfig", "compiler", "commit")


@dataclass(frozen=True)
class UnitJob:
    """One testcase with every parameter fixed.

    ``job`` is the whole job without lists to choose from, ``axes`` what distinguishes it, ``origin`` where the
    document begins that it came from.
    """

    name: str
    testcase: str
    job: Mapping[str, Any]
    axes: tuple[Axis, ...]
    host: Host | None
    document: Document

    @property
    def origin(self) -> Origin:
        return self.document.origin

    @property
    def path_params(self) -> str:
        """The parameters' part of a result path."""
        return path_params(self.axes)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters as a report lists them: in the job's order, the host's settings last."""
        texts = {axis.key: as_text(axis.value) for axis in self.axes if axis.in_path and axis.value is not None}
        last = [key for key in ("cpufreq_governor", "ucode") if key in texts]
        return {key: texts[key] for key in [*(key for key in texts if key not in last), *last]}

    @cached_property
    def params(self) -> Mapping[str, Param]:
        """The parameters as the programs get them on this host. Raises UserError."""
        return map_params(self.axes, self.document, self.host)

    @property
    def unfit(self) -> str | None:
        """Why the host cannot run it; None where it can, or no host was given."""
        return None if self.host is None else unfit(self.params, self.document, self.host)

    @property
    def all_axes(self) -> Mapping[str, str]:
        """All that tells two results apart: parameters, testcase, host group, rootfs, kconfig, compiler, commit."""
        texts = {axis.key: as_text(axis.value) for axis in self.axes if axis.value is not None}
        texts["testcase"] = self.testcase
        group = self.host.group if self.host else self.job.get("tbox_group")
        for key, value in (("tbox_group", group), *((key, self.job.get(key)) for key in _PLACES[1:])):
            if isinstance(value, str | int):
                texts[key] = as_text(value)
        if "rootfs" in texts:
            texts["rootfs"] = texts["rootfs"].rpartition("/")[2]
        return texts

    def axes_line(self, compared: str = "commit") -> tuple[str, str]:
        """Keys and values as they head a report's table."""
        return axes_line(self.all_axes, compared)

    def result_root(self, run: int | None = None, base: str = RESULT_ROOT) -> str:
        """Where LKP keeps a run's results; without ``run`` the folder of all its runs. Raises UserError."""
        axes = self.all_axes
        if missing := [key for key in _PLACES if key not in axes]:
            raise self.origin.error(
                f"{self.name}: a result root needs {', '.join(missing)}; say it with -s 'key: value'"
            )
        words = [path_value(self.testcase), self.path_params, *(_folder(axes[key]) for key in _PLACES)]
        return "/".join([base, *words, *([] if run is None else [str(run)])])

    def to_yaml(self) -> str:
        """The unit job as a file, its comments kept."""
        parts = []
        for key, value in self.job.items():
            if is_comment(key):
                parts.append(f"\n{key.removeprefix(':')}\n")
            else:
                parts.append(yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True, width=1000))
        return "".join(parts).lstrip("\n")


def _folder(text: str) -> str:
    return re.sub(r"[^-\w+=:.%]", "_", text)


@dataclass(frozen=True)
class JobFile:
    """A job file with its includes, defaults and overrides: one job per document that makes jobs."""

    path: str
    jobs: tuple[Document, ...]
    library: Library
    host: Host | None = None

    def units(self) -> Iterator[UnitJob]:
        """The unit jobs in their order; a document that only prepares later ones makes none.

        Raises UserError with file:line, also where no document names a test.
        """
        facts = self.host.facts if self.host else {}
        prefix = Path(self.path).name.removesuffix(".yaml")
        testing = []
        for job in self.jobs:
            catalogue = self.library.catalogue.knowing(job.body)
            if tests := tests_in(job.body, catalogue):
                testing.append((job, catalogue, tests))
        if not testing:
            raise self.jobs[-1].origin.error(
                f"no test in this job: none of its keys ({_some(self.jobs[-1].body)}) is a test that "
                "jobs/programs.yaml describes, and no `testcase:` names one of them"
            )
        for job, catalogue, tests in testing:
            check_options(job, catalogue, tests)
            for body in expand(job, catalogue, facts):
                axes = tuple(find_axes(body, catalogue))
                testcase = as_text(body.get("testcase") or body.get("suite") or tests[0])
                yield UnitJob(unit_name(prefix, axes), testcase, body, axes, self.host, job)


def _some(body: Mapping[str, Any]) -> str:
    keys = [key for key in body if not is_comment(key)]
    return ", ".join(keys[:8]) + (", …" if len(keys) > 8 else "") or "it has none"


def read_job(
    file: Path,
    library: Library,
    *,
    host: Host | None = None,
    overrides: Sequence[str] = (),
    lines: Sequence[Line] | None = None,
    compatible: bool = False,
) -> JobFile:
    """Read a job file.

    ``overrides`` are texts like ``nr_task: 4``, stronger than everything. ``lines`` is the text when it is not the
    file's (standard input). ``compatible`` keeps of an already expanded job.yaml only what a ``#! ….yaml`` comment
    heads, and expands that again. Raises UserError with file:line, whatever the bytes are.
    """
    stronger = [_override(text) for text in overrides]
    facts = host.facts if host else {}
    visible = {**facts, **_all_revised(Document({}, Origin("-s", 1)), stronger).body}
    text = expand_includes(read_file(file) if lines is None else lines, file, library)
    documents = parse_documents(render(text, visible), str(file))
    if compatible:
        documents = [_marked(document) for document in documents]
    if not any(document.body for document in documents):
        raise UserError(f"{file}:1: no job here, expected `key: value` lines")
    first = revised(Document({}, documents[0].origin), documents[0])
    jobs = [first, *(revised(first, later) for later in documents[1:] if later.body)]
    return JobFile(str(file), tuple(_complete(job, stronger, library, facts) for job in jobs), library, host)


def _override(text: str) -> Document:
    documents = parse_documents([Line(text, Origin(f"-s {text!r}", 1))], "-s")
    if len(documents) != 1 or not documents[0].body:
        raise UserError(f"-s {text!r}: expected `key: value`")
    return documents[0]


def _all_revised(base: Document, revisions: Sequence[Document]) -> Document:
    for revision in revisions:
        base = revised(base, revision)
    return base


def _complete(job: Document, stronger: Sequence[Document], library: Library, facts: Mapping[str, Any]) -> Document:
    """The job with what is taken for granted of its keys, and the overrides on top."""
    job = _all_revised(job, stronger)
    seen: set[tuple[str, str]] = set()
    while True:
        asked = [
            (key, value) for key, value in job.body.items() if (key, repr(value)) not in seen and not is_comment(key)
        ]
        if not asked:
            return _all_revised(job, stronger)
        for key, value in asked:
            seen.add((key, repr(value)))
            for file in library.defaults(key, value):
                lines = expand_includes(read_file(file), file, library)
                for document in parse_documents(render(lines, {**facts, **job.body}), str(file)):
                    job = revised(job, document, keep=True)


def _marked(document: Document) -> Document:
    body: dict[str, Any] = {}
    keeping = False
    for key, value in document.body.items():
        if is_comment(key):
            keeping = re.fullmatch(r":?#! .*\.yaml:?", key) is not None
        if keeping:
            body[key] = value
    return Document(body, document.origin, document.where)
