"""``bisectbot compare``: LKP's comparison table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bisectbot.cli.options import config_option, json_option
from bisectbot.errors import UserError

if TYPE_CHECKING:
    from bisectbot.results.matrix import MatrixSet


@click.command()
@click.argument("sides", nargs=-1, metavar="[A B]...")
@click.option(
    "--matrix",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE.json",
    help="Run matrices as JSON, - for stdin, in place of A and B.",
)
@click.option("--lkp-exact", "exact", is_flag=True, help="Print to the byte what LKP prints, oddities included.")
@click.option(
    "--order",
    type=click.Choice(["tests", "groups"]),
    default="tests",
    show_default=True,
    help="Rows: benchmarks first, or all groups by size.",
)
@config_option
@json_option
def compare(
    sides: tuple[str, ...], matrix: str | None, exact: bool, order: str, config_path: Path, as_json: bool
) -> None:
    """Show every stat that changed between A and B.

    A and B are result roots (a directory of runs 0/, 1/, … as LKP leaves it, or its matrix.json), or commits that the
    service has runs of: then there is a table per job that ran on all of them. A path that exists wins. All columns
    are compared with the first. Nothing is printed when nothing changed.
    """
    from bisectbot.results.compare import Order
    from bisectbot.results.compare import compare as compare_matrices
    from bisectbot.results.table import layout

    if matrix and sides:
        raise UserError("compare: either A and B or --matrix, not both")
    if not matrix and len(sides) < 2:
        raise UserError("compare: two result roots or commits are needed: `bisectbot compare A B`, or --matrix FILE")
    sets = [_from_file(matrix)] if matrix else _from_sides(sides, exact, config_path)
    if any(len(matrices.matrices) < 2 for matrices in sets):
        raise UserError("compare: 1 column: nothing to compare it with")
    tables = [compare_matrices(matrices, exact=exact, order=Order(order)) for matrices in sets]
    if as_json:
        from bisectbot.report.twin import table_to_json

        click.echo("\n".join(map(table_to_json, tables)))
        return
    for text in filter(None, map(layout, tables)):
        click.echo(text)


def _from_file(matrix: str) -> MatrixSet:
    from bisectbot.results.matrix import MatrixSet

    with click.open_file(matrix, "rb") as file:
        return MatrixSet.loads(file.read(), matrix)


def _from_sides(sides: tuple[str, ...], exact: bool, config_path: Path) -> list[MatrixSet]:
    missing = [side for side in sides if not Path(side).exists()]
    if not missing:
        return [_from_roots(sides, exact)]
    if len(missing) < len(sides):
        raise UserError(f"compare: {missing[0]}: no such file or directory")
    return _from_service(sides, config_path)


def _from_roots(roots: tuple[str, ...], exact: bool) -> MatrixSet:
    from bisectbot.results.resultroot import read_set

    matrices, warnings = read_set([Path(root) for root in roots], exact=exact)
    for warning in warnings:
        click.echo(f"bisectbot: {warning}", err=True)
    return matrices


def _from_service(revisions: tuple[str, ...], config_path: Path) -> list[MatrixSet]:
    from bisectbot.config import load
    from bisectbot.service.comparison import comparisons
    from bisectbot.service.context import open_context

    if not config_path.is_file():
        raise UserError(
            f"compare: no such directory: {revisions[0]}, nor a configuration at {config_path} to ask for it"
        )
    context = open_context(load(config_path))
    with context.database.read() as session:
        return comparisons(context, session, revisions)
