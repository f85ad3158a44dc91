"""`chat`: the transports that hold a connection, and whoever waits for an answer; or a terminal."""

from __future__ import annotations

from pathlib import Path

import click

from bisectbot.cli.options import config_option, set_up_logging
from bisectbot.config import load
from bisectbot.errors import InfraError


@click.command()
@click.option("--console", is_flag=True, help="The same commands in this terminal, as an operator.")
@config_option
def chat(console: bool, config_path: Path) -> None:
    """IRC and Matrix, and the progress of what people asked for on any transport.

    With --console: a terminal with history and completion; commands may also be piped in, a line each.
    """
    from bisectbot.chat import console as terminal
    from bisectbot.chat.commands import Desk, open_desk
    from bisectbot.chat.safety import fetching
    from bisectbot.cli.serve import on_termination
    from bisectbot.service.context import open_context

    config = load(config_path)
    context = open_context(config)
    click.get_current_context().call_on_close(context.database.dispose)
    if not context.database.current():
        raise InfraError("the database schema is not this version's; run `bisectbot db upgrade`")
    fetch = fetching(config.chat.archives)
    if console:
        people, said = terminal.operator()
        terminal.converse(Desk(context, people, fetch), said, config.state)
        return
    from bisectbot.chat.process import Process

    set_up_logging()
    process = Process(open_desk(context, fetch))
    on_termination(process.stop)
    process.run()
