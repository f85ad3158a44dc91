"""``bisectbot mail``: the state of mail, and the operators' hands on it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from bisectbot.cli.operate import open_service, who
from bisectbot.cli.options import config_option, json_option, print_json


@click.group()
def mail() -> None:
    """What mail waits and why; stop it all, at once; people who get none."""


@mail.command()
@json_option
@config_option
def status(as_json: bool, config_path: Path) -> None:
    """How far mail goes, what stops it, what waits, who gets none."""
    from bisectbot.cli import letters
    from bisectbot.service.post.overview import mail_overview

    seen = mail_overview(open_service(config_path))
    print_json(dataclasses.asdict(seen)) if as_json else letters.mail_overview(seen)


@mail.command()
@click.option("--why", required=True, help="Why nothing may leave; shown to everybody.")
@config_option
def stop(why: str, config_path: Path) -> None:
    """Hold all mail from now on. The service writes on; nothing is lost."""
    from bisectbot.service import commands

    click.echo(commands.stop_mail(open_service(config_path), who(), why))


@mail.command()
@config_option
def resume(config_path: Path) -> None:
    """Let mail leave again."""
    from bisectbot.service import commands

    click.echo(commands.resume_mail(open_service(config_path), who()))


@mail.command()
@click.argument("letter")
@config_option
def retry(letter: str, config_path: Path) -> None:
    """Send the failed LETTER (M7, see `status`) again, to those who have not got it."""
    from bisectbot.service import commands

    click.echo(commands.retry_mail(open_service(config_path), who(), letter))


@mail.command()
@click.argument("address")
@config_option
def allow(address: str, config_path: Path) -> None:
    """Mail to ADDRESS again, which had opted out or bounced."""
    from bisectbot.service import commands

    click.echo(commands.allow_mail(open_service(config_path), who(), address))


@mail.command()
@click.argument("address")
@config_option
def refuse(address: str, config_path: Path) -> None:
    """No more mail to ADDRESS, for somebody who asked for that."""
    from bisectbot.service import commands

    click.echo(commands.refuse_mail(open_service(config_path), who(), address))
