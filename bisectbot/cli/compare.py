"""``bisectbot compare``: LKP's comparison table."""

from __future__ import annotations

import click

from bisectbot.errors import UserError


@click.command()
@click.option(
    "--matrix",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    required=True,
    metavar="FILE.json",
    help="Run matrices as JSON, - for stdin.",
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
def compare(matrix: str, exact: bool, order: str, as_json: bool) -> None:
    """Show every stat that changed between the commits of run matrices.

    All columns are compared with the first. Nothing is printed when nothing changed.
    """
    from bisectbot.report.twin import table_to_json
    from bisectbot.results.compare import Order
    from bisectbot.results.compare import compare as compare_matrices
    from bisectbot.results.matrix import MatrixSet
    from bisectbot.results.table import layout

    with click.open_file(matrix, "rb") as file:
        matrices = MatrixSet.loads(file.read(), matrix)
    if len(matrices.matrices) < 2:
        raise UserError(f"compare: {len(matrices.matrices)} column: nothing to compare it with")
    table = compare_matrices(matrices, exact=exact, order=Order(order))
    if as_json:
        click.echo(table_to_json(table))
    elif text := layout(table):
        click.echo(text)
