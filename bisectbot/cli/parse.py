"""`bisectbot parse`: a monitor's raw log on stdin, `key: value` lines on stdout, warnings on stderr."""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

import click

from bisectbot.errors import UserError


@click.command()
@click.argument("name", required=False)
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--list", "listing", is_flag=True, help="List the parsers and what each reads.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: pairs and warnings.")
@click.option("--mended", is_flag=True, help="Without LKP's quirks, as the service itself reads logs.")
def parse(name: str | None, file: BinaryIO, listing: bool, as_json: bool, mended: bool) -> None:
    """Print the raw log FILE (default: stdin) of the monitor or benchmark NAME as LKP's parser prints it.

    What could not be read is said on stderr, line by line. NAME is also `aim9.time` and the like.
    """
    from bisectbot.results.parsers import PARSERS, RawLog, as_line, names
    from bisectbot.results.parsers import parse as parse_log

    if listing:
        _list([(known, PARSERS[known][1]) for known in names()], as_json)
        return
    if name is None:
        raise UserError("parse: which parser? `bisectbot parse --list` names them")
    log = RawLog(file, exact=not mended)
    pairs = parse_log(name, log)
    if as_json:
        rows = [pair for pair in pairs if pair[0] not in {"", "#"}]
        warnings = [{"line": warning.line, "what": warning.what} for warning in log.warnings]
        click.echo(json.dumps({"pairs": rows, "warnings": warnings, "unread": log.unread}))
        return
    write = sys.stdout.write
    for key, value in pairs:
        write(as_line(key, value) + "\n")
    sys.stdout.flush()
    for warning in log.warnings:
        click.echo(f"bisectbot: {name}: {warning}", err=True)
    if log.unread > len(log.warnings):
        click.echo(f"bisectbot: {name}: {log.unread - len(log.warnings)} more warnings", err=True)


def _list(parsers: list[tuple[str, str]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(dict(parsers)))
        return
    width = max(len(known) for known, _ in parsers)
    for known, what in parsers:
        click.echo(f"{known:{width}}  {what}")
