"""`submit`, `status`, `hosts`, `cancel`, `retry`, `replay`: operate a running service."""

from __future__ import annotations

import dataclasses
import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bisectbot.cli.options import config_option, json_option, print_json
from bisectbot.config import load
from bisectbot.errors import UserError

if TYPE_CHECKING:
    from bisectbot.service.context import Context


def open_service(config_path: Path) -> Context:
    """The service's context; its database must be there. Closed at the end of the command."""
    from bisectbot.service.context import open_context

    context = open_context(load(config_path))
    click.get_current_context().call_on_close(context.database.dispose)
    if not context.database.current():
        raise UserError(f"{context.config.database_url}: no database of this version there; run `bisectbot db upgrade`")
    return context


def who() -> str:
    """Who sits at this terminal."""
    return getpass.getuser()


@click.group()
def submit() -> None:
    """Ask the service for a bisection."""


@submit.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.option("--tree", required=True, help="A tree of the configuration.")
@click.option("--branch", required=True, help="One of its branches.")
@click.option("--job", default="", help="The job, where the branch has several.")
@click.option("--kpi", default="", help="The KPI, where the job has several.")
@config_option
def submit_bisect(good: str, bad: str, tree: str, branch: str, job: str, kpi: str, config_path: Path) -> None:
    """Find the commit between GOOD and BAD that changed a KPI."""
    from bisectbot.service.commands import submit_bisection
    from bisectbot.service.people.requests import BisectArguments

    request = submit_bisection(open_service(config_path), who(), BisectArguments(tree, branch, good, bad, job, kpi))
    click.echo(f"{request} submitted; follow it with `bisectbot status {request}`")


@click.command()
@click.argument("id", required=False)
@json_option
@config_option
def status(id: str | None, as_json: bool, config_path: Path) -> None:  # noqa: A002 - the argument's name in --help
    """What the service is doing, or one bisection (B7) or request (Q3)."""
    from bisectbot.cli import screens
    from bisectbot.service.commands import request_answer
    from bisectbot.service.people import status as state

    context = open_service(config_path)
    if id is None:
        overview = state.overview(context)
        print_json(dataclasses.asdict(overview)) if as_json else screens.overview(overview)
        return
    if id[:1].upper() == "Q":
        id, answer = request_answer(context, id)  # noqa: A001
        if not id:
            print_json({"answer": answer}) if as_json else click.echo(answer)
            return
    bisection = state.bisection_status(context, id)
    print_json(dataclasses.asdict(bisection)) if as_json else screens.bisection(bisection)


@click.command()
@click.argument("host", required=False)
@click.option("--set", "state", type=click.Choice(["good", "unknown", "suspect", "bad", "maintenance", "retired"]))
@click.option("--why", default="", help="Why the state is changed; shown to everybody.")
@json_option
@config_option
def hosts(host: str | None, state: str | None, why: str, as_json: bool, config_path: Path) -> None:
    """Host groups and hosts, what they do and how they are; with HOST --set STATE, change one."""
    from bisectbot.cli import screens
    from bisectbot.service.commands import set_host
    from bisectbot.service.people import status as states
    from bisectbot.store.tables import HostState

    context = open_service(config_path)
    if state is not None:
        if host is None:
            raise UserError("--set wants a HOST; see `bisectbot hosts`")
        click.echo(set_host(context, who(), host, HostState(state), why))
        return
    found = [line for line in states.hosts(context) if host in {None, line.name, line.group}]
    if host is not None and not found:
        raise UserError(f"there is no host {host!r}; see `bisectbot hosts`")
    print_json([dataclasses.asdict(line) for line in found]) if as_json else screens.hosts(found)


@click.command()
@click.argument("id")
@click.argument("why", default="no reason given")
@config_option
def cancel(id: str, why: str, config_path: Path) -> None:  # noqa: A002
    """Stop a bisection (B7), a request (Q3) or a run (N51)."""
    from bisectbot.service import commands

    click.echo(commands.cancel(open_service(config_path), who(), id, why))


@click.command()
@click.argument("id")
@click.option("--runs", type=click.IntRange(1), help="More runs for the undecided commits of a bisection.")
@config_option
def retry(id: str, runs: int | None, config_path: Path) -> None:  # noqa: A002
    """Run a failed run (N51), build (U8) or bisection (B7) again."""
    from bisectbot.service import commands
    from bisectbot.service.people import asks

    context = open_service(config_path)
    if runs is None:
        click.echo(commands.retry(context, who(), id))
        return
    more = asks.quote_more(context, id, runs)
    request, _ = asks.order_more(context, commands.Asker(who()), more, limits=None)
    hours = f"up to {more.host_s / 3600:.1f} host hours of {more.group}"
    click.echo(f"B{more.bisection}: {runs} runs more for {more.undecided} undecided commits, {hours} ({request})")


@click.command()
@click.argument("bisection")
@json_option
@config_option
def replay(bisection: str, as_json: bool, config_path: Path) -> None:
    """Recompute BISECTION (B7) from its records, step by step, and say whether the verdict still stands.

    Exit status 1 if it does not.
    """
    from bisectbot.cli import screens
    from bisectbot.service.search.replay import replay as recompute

    steps = recompute(open_service(config_path), bisection)
    print_json(dataclasses.asdict(steps)) if as_json else screens.replay(steps)
    if not steps.agrees:
        raise SystemExit(1)
