"""``bisectbot compare``: LKP's comparison table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bisectbot.errors import UserError

if TYPE_CHECKING:
    from bisectbot.results.matrix import MatrixSet


@click.command()
@click.argument("roots", nargs=-1, metavar="[A B]...")
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
@click.option("--json", "as_json", is_flag=True, help="The table as JSON.")
def compare(roots: tuple[str, ...], matrix: str | None, exact: bool, order: str, as_json: bool) -> None:
    """Show every stat that changed between the result roots A and B.

    A result root is a directory of runs (0/, 1/, …) as LKP leaves it, or its matrix.json. All columns are compared
    with the first. Nothing is printed when nothing changed.
    """
    from bisectbot.results.compare import Order
    from bisectbot.results.compare import compare as compare_matrices
    from bisectbot.results.table import layout

    if matrix and roots:
        raise UserError("compare: either result roots or --matrix, not both")
    matrices = _from_file(matrix) if matrix else _from_roots(roots, exact)
    if len(matrices.matrices) < 2:
        raise UserError(f"compare: {len(matrices.matrices)} column: nothing to compare it with")
    table = compare_matrices(matrices, exact=exact, order=Order(order))
    if as_json:
        from bisectbot.report.twin import table_to_json

        click.echo(table_to_json(table))
    elif text := layout(table):
        click.echo(text)


def _from_file(matrix: str) -> MatrixSet:
    from bisectbot.results.matrix import MatrixSet

    with click.open_file(matrix, "rb") as file:
        return MatrixSet.loads(file.read(), matrix)


def _from_roots(roots: tuple[str, ...], exact: bool) -> MatrixSet:
    from bisectbot.results.resultroot import read_set

    if len(roots) < 2:
        raise UserError("compare: two result roots are needed: `bisectbot compare A B`, or --matrix FILE.json")
    matrices, warnings = read_set([Path(root) for root in roots], exact=exact)
    for warning in warnings:
        click.echo(f"bisectbot: {warning}", err=True)
    return matrices
