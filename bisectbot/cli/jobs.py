"""``bisectbot jobs``: what a job file comes to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bisectbot.jobs.jobfile import UnitJob


@click.group()
def jobs() -> None:
    """Job files: expand them into unit jobs."""


@jobs.command()
@click.argument("file")
@click.option("--host", metavar="GROUP", help="Host or host group: its facts, and what the parameters come to there.")
@click.option(
    "-s", "--set", "overrides", metavar="KEY: VALUE", multiple=True, help="Stronger than the file; repeatable."
)
@click.option(
    "--compatible", is_flag=True, help="FILE is an expanded job.yaml from a report: expand what it came from."
)
@click.option("-o", "--output", metavar="DIR", help="Write each unit job as a file into this directory.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list for programs.")
def expand(
    file: str, *, host: str | None, overrides: tuple[str, ...], compatible: bool, output: str | None, as_json: bool
) -> None:
    """The unit jobs of FILE (- reads standard input).

    Includes, programs and hosts are looked up around FILE, in $LKP_SRC, and in the configuration that comes along.
    """
    from bisectbot.config import job_folders
    from bisectbot.jobs.document import read_lines
    from bisectbot.jobs.jobfile import read_job
    from bisectbot.jobs.library import Library

    path = Path("stdin") if file == "-" else Path(file)
    lines = read_lines(sys.stdin.buffer.read(), "stdin") if file == "-" else None
    library = Library.around(path, *job_folders())
    target = library.host(host) if host else None
    job = read_job(path, library, host=target, overrides=overrides, lines=lines, compatible=compatible)
    units = list(job.units())
    if output is not None:
        _write(units, Path(output))
    if as_json:
        click.echo(json.dumps([_facts(unit) for unit in units], indent=1, ensure_ascii=False))
    else:
        _print(units)


def _facts(unit: UnitJob) -> dict[str, Any]:
    from bisectbot.errors import UserError

    keys, values = unit.axes_line()
    try:
        result_root = unit.result_root()
    except UserError:  # rootfs, kconfig, compiler or commit are not said: a unit job need not know them
        result_root = None
    return {
        "name": unit.name,
        "testcase": unit.testcase,
        "parameters": unit.parameters,
        "params": unit.params,
        "unfit": unit.unfit,
        "path_params": unit.path_params,
        "result_root": result_root,
        "axes": {"keys": keys, "values": values},
        "job": {key: value for key, value in unit.job.items() if not key.startswith(("#", ":#"))},
        "from": str(unit.origin),
    }


def _print(units: list[UnitJob]) -> None:
    width = max((len(unit.name) for unit in units), default=0)
    for unit in units:
        said = [f"{key}={_shown(unit, key, text)}" for key, text in unit.parameters.items()]
        unfit = f"  (cannot run: {unit.unfit})" if unit.unfit else ""
        click.echo(f"{unit.name:<{width}}  {' '.join(said)}{unfit}".rstrip())


def _shown(unit: UnitJob, key: str, text: str) -> str:
    """A parameter as written, and what it comes to where that says more: ``50%→64``."""
    value = unit.params.get(key)
    return f"{text}→{value}" if text.endswith("%") and value is not None and str(value) != text else text


def _write(units: list[UnitJob], folder: Path) -> None:
    from bisectbot.errors import UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for unit in units:
            (folder / unit.name).write_text(unit.to_yaml())
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror or error}") from None
