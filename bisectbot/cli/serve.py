"""`serve`, `scheduler`, `web`, `worker`: the service, whole or one process at a time."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bisectbot.cli.options import config_option, set_up_logging
from bisectbot.config import Config, load
from bisectbot.errors import InfraError

if TYPE_CHECKING:
    from bisectbot.service.context import Context


@click.command()
@config_option
def serve(config_path: Path) -> None:
    """Scheduler, web, embedded broker and local workers in one process tree.

    Runs until SIGTERM or Ctrl-C. The database's schema is brought up to date first.
    """
    from bisectbot.serve import Tree
    from bisectbot.service.context import open_context

    set_up_logging()
    config = load(config_path)
    open_context(config).database.upgrade()
    tree = Tree(config, config_path)
    on_termination(tree.stop)
    try:
        tree.start()
        tree.watch()
    finally:
        tree.end()


@click.command()
@config_option
def scheduler(config_path: Path) -> None:
    """Watch, plan, detect, bisect, report. Several may run: one leads, the others wait."""
    from bisectbot.service.context import open_context
    from bisectbot.service.scheduler import Scheduler, new_instance

    set_up_logging()
    context = open_context(load(config_path))
    _want_schema(context.database.current())
    process = Scheduler(context, new_instance())
    on_termination(process.stop)
    process.run()


@click.command()
@config_option
def web(config_path: Path) -> None:
    """JSON API, metrics and the workers' endpoint."""
    import uvicorn

    from bisectbot.chat.commands import open_desk
    from bisectbot.chat.safety import fetching
    from bisectbot.chat.webhooks import create_app as create_chat
    from bisectbot.service.context import open_context
    from bisectbot.web.app import create_app

    set_up_logging()
    config: Config = load(config_path)
    context = open_context(config)
    _want_schema(context.database.current())
    host, _, port = config.server.listen.rpartition(":")
    app = create_app(context)
    app.mount("/chat", create_chat(open_desk(context, fetching(config.chat.archives))))
    with _mail_comes_in(context):
        uvicorn.run(app, host=host.strip("[]"), port=int(port), access_log=False, log_level="warning")


def _mail_comes_in(context: Context) -> AbstractContextManager[None]:
    """The LMTP server, where one is configured."""
    from bisectbot.mail.lmtp import listening
    from bisectbot.service.post import inbox, rules

    listen = context.config.mail.inbox.lmtp
    return listening(listen, inbox.drop(context), rules.identity(context)) if listen else nullcontext()


@click.command()
@click.argument("host")
@config_option
def worker(host: str, config_path: Path) -> None:
    """A worker for HOST, or for the builds: `worker build`."""
    from workers.main import serve as work

    set_up_logging()
    sys.exit(work(load(config_path), host))


def _want_schema(current: bool) -> None:
    if not current:
        raise InfraError("the database schema is not this version's; run `bisectbot db upgrade`")


def on_termination(stop: Callable[[], None]) -> None:
    """Call ``stop`` at SIGTERM and Ctrl-C."""

    def handler(*_: object) -> None:
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)
