"""``bisectbot report``: kernel test robot mails into our record and back; a service's reports, to look at and judge."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from bisectbot.cli.options import config_option, json_option, print_json


@click.group()
def report() -> None:
    """Look at reports and judge them; read report mails, word reports."""


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


@report.command()
@click.argument("report")
@click.option(
    "--as-mail", is_flag=True, help="The mail alone, byte for byte as it leaves (a DKIM signature comes on top)."
)
@json_option
@config_option
def show(report: str, as_mail: bool, as_json: bool, config_path: Path) -> None:
    """REPORT (R12): its state, who gets it and why, what the gate said, its thread and what came back."""
    from bisectbot.cli import letters
    from bisectbot.cli.operate import open_service
    from bisectbot.service.post.page import report_mail, report_page

    context = open_service(config_path)
    if as_mail:
        click.echo(report_mail(context, report), nl=False)
        return
    page = report_page(context, report)
    print_json(dataclasses.asdict(page)) if as_json else letters.report_page(page)


@report.command()
@click.argument("report")
@config_option
def approve(report: str, config_path: Path) -> None:
    """Release the held REPORT (R12): its mail is queued."""
    from bisectbot.cli.operate import open_service, who
    from bisectbot.service import commands

    click.echo(commands.approve(open_service(config_path), who(), report))


@report.command()
@click.argument("report")
@click.option("--why", required=True, help="Why it must not be sent.")
@config_option
def reject(report: str, why: str, config_path: Path) -> None:
    """Refuse the held REPORT (R12): its mail is never sent."""
    from bisectbot.cli.operate import open_service, who
    from bisectbot.service import commands

    click.echo(commands.reject(open_service(config_path), who(), report, why))


@report.command()
@click.argument("report")
@click.argument("opinion", type=click.Choice(["wrong", "accepted", "fixed", "duplicate"]))
@click.option("--why", default="", help="Of a wrong one it stands in the correction that everybody gets.")
@config_option
def judge(report: str, opinion: str, why: str, config_path: Path) -> None:
    """Say whether REPORT (R12) was right.

    A wrong one is corrected, by mail to everybody who got it. What has been judged decides whether reports to lists
    need approval.
    """
    from bisectbot.cli.operate import open_service, who
    from bisectbot.service import commands
    from bisectbot.store.tables import Judged

    click.echo(commands.judge(open_service(config_path), who(), report, Judged(opinion), why))
