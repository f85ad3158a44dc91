"""`demo`: the whole pipeline on an example history."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from bisectbot.cli.options import set_up_logging
from bisectbot.errors import UserError


@click.command()
@click.option("--seed", type=int, default=7, show_default=True, help="Moves the culprit, its effect, everything.")
@click.option("--kernel", is_flag=True, help="Real kernels, built and booted in QEMU; takes many minutes.")
@click.option("--serve", is_flag=True, help="Keep the service up afterwards.")
@click.option("--json", "as_json", is_flag=True, help="End with one line of JSON; all else goes to stderr.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Where to put everything (new or empty).")
def demo(seed: int, kernel: bool, serve: bool, as_json: bool, folder: Path | None) -> None:
    """The whole pipeline on an example history, from push to mail, in under three minutes.

    Exit status 1 if the right commit was not named.
    """
    if kernel:
        from bisectbot.demo.kernel.run import demo as play
    else:
        from bisectbot.demo.run import demo as play

    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="bisectbot-demo-"))
    elif folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; give a new folder, or none")
    logs = folder / "state" / "logs"
    logs.mkdir(parents=True)
    set_up_logging((logs / "serve.log").open("w", encoding="utf-8"))
    ending = play(folder.absolute(), seed, serve=serve, as_json=as_json)
    if not ending.right:
        raise SystemExit(1)
