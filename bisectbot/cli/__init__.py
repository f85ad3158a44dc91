"""The command line, the composition root: it may import anything, nothing imports it.

One file per family of commands; a family is imported only when one of its commands is called, so that
``bisectbot --help`` answers at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from bisectbot import __version__
from bisectbot.errors import BisectbotError, InfraError, Untestable, UserError

# command → (module below bisectbot.cli, one line for --help). The attribute has the command's name, - as _.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "The whole pipeline on an example history, from push to mail."),
    "serve": ("serve", "Scheduler, web, broker and local workers in one process tree."),
    "scheduler": ("serve", "The scheduler alone."),
    "web": ("serve", "JSON API, metrics and the workers' endpoint alone."),
    "chat": ("chat", "IRC, Matrix and answers that take long; --console: the commands of chat in a terminal."),
    "worker": ("serve", "A worker for one host, or for the build queue."),
    "bisect": ("bisect", "Find the commit that changed a benchmark in the repository you stand in."),
    "steps": ("steps", "The steps in a CSV or JSON series."),
    "compare": ("compare", "LKP's comparison table of two result roots or commits."),
    "parse": ("parse", "A monitor's raw log as `key: value` lines."),
    "jobs": ("jobs", "Job files: expand them into unit jobs."),
    "report": ("report", "Reports: look at them, judge them; LKP's mails to JSON and back."),
    "mail": ("mail", "Mail: what waits, stop it all, who gets none."),
    "submit": ("operate", "Ask the service for a bisection."),
    "status": ("operate", "What the service is doing, or one bisection or request."),
    "hosts": ("operate", "Host groups and hosts, what they do and how they are."),
    "approve": ("report", "Release a held report."),
    "reject": ("report", "Refuse a held report."),
    "cancel": ("operate", "Stop a bisection, a request or a run."),
    "retry": ("operate", "Run a failed run, build or bisection again."),
    "replay": ("operate", "Recompute a bisection from its records, step by step."),
    "backup": ("admin", "Write database and artifacts of a service into one file."),
    "restore": ("admin", "Put a backup back."),
    "config": ("admin", "Check the configuration: everything wrong, with file:line and what to do."),
    "db": ("admin", "Database schema: upgrade."),
    "doctor": ("admin", "Check this installation from end to end."),
}


class _Lazy(click.Group):
    """A group that imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"bisectbot.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bisectbot")
def group() -> None:
    """Watches trees, benchmarks what is new, and names the commit that changed performance.

    Exit status: 0 done, 1 a finding that you asked to be told of, 2 usage or bad input.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; errors that are somebody's to mend end in one line each and exit status 2."""
    try:
        group.main(args=argv, prog_name="bisectbot")
    except UserError as error:
        _end(error, 2)
    except (InfraError, Untestable) as error:
        _end(error, 3)


def _end(error: BisectbotError, status: int) -> None:
    for line in error.lines:
        sys.stderr.write(f"bisectbot: {line}\n")
    sys.exit(status)
