"""``bisectbot report``: kernel test robot mails into our record and back."""

from __future__ import annotations

import click


@click.group()
def report() -> None:
    """Read report mails, word reports."""


@report.command()
@click.argument("mail", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def parse(mail: str) -> None:
    """Read a kernel test robot's MAIL (.eml, mbox or pasted text, - for stdin) into JSON."""
    from bisectbot.report.lkp import parse_report
    from bisectbot.report.twin import to_json

    with click.open_file(mail, "rb") as file:
        click.echo(to_json(parse_report(file.read(), mail)))


@report.command()
@click.argument("file", metavar="FILE.json", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--tables", "only_tables", is_flag=True, help="The comparison tables alone, whole.")
def render(file: str, only_tables: bool) -> None:
    """Word a report's JSON as a mail: its subject, an empty line, its body."""
    from bisectbot.report.render import render_mail, tables_text
    from bisectbot.report.twin import from_json

    with click.open_file(file, "rb") as stream:
        read = from_json(stream.read(), file)
    if only_tables:
        click.echo(tables_text(read), nl=False)
        return
    mail = render_mail(read)
    click.echo(f"Subject: {mail.subject}\n\n{mail.body}", nl=False)
