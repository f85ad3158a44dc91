"""`config check`, `db upgrade`, `doctor`, `backup`, `restore`: keep an installation healthy."""

from __future__ import annotations

from pathlib import Path

import click

from bisectbot.cli.options import config_option
from bisectbot.config import Config, load
from bisectbot.yamlfile import ConfigError, Problem, read


@click.group()
def config() -> None:
    """The configuration."""


@config.command("check")
@config_option
def config_check(config_path: Path) -> None:
    """Everything that is wrong, one line each with file:line and what to do; exit status 2 if anything is."""
    from bisectbot.chat.people import load_people

    try:
        loaded = load(config_path)
        problems = _unknown_benchmarks(config_path, loaded)
        load_people(loaded.chat.people)
    except ConfigError as error:
        problems = error.problems
    if problems:
        for problem in problems:
            click.echo(str(problem), err=True)
        raise SystemExit(2)
    branches = sum(len(tree.branches) for tree in loaded.trees.values())
    jobs = sum(len(loaded.jobs_of(branch)) for tree in loaded.trees.values() for branch in tree.branches.values())
    click.echo(f"{config_path}: good: {branches} branches, {jobs} unit jobs, {len(loaded.hosts)} hosts")


def _unknown_benchmarks(path: Path, loaded: Config) -> list[Problem]:
    """Benchmarks that no worker of this version has."""
    from workers.benchmarks import BENCHMARKS

    document = read(path)
    problems = []
    for name in loaded.jobs:
        for adapter in sorted({job.benchmark for job in loaded.units(name)} - set(BENCHMARKS)):
            text = f"jobs.{name}.benchmark: no benchmark {adapter!r}; there are: {', '.join(BENCHMARKS)}"
            problems.append(document.problem(("jobs", name, "benchmark"), text))
    return problems


@click.group()
def db() -> None:
    """The database's schema."""


@db.command("upgrade")
@config_option
def db_upgrade(config_path: Path) -> None:
    """Bring the schema to this version's; nothing is lost. Back up first."""
    from bisectbot.store.database import Database

    database = Database(load(config_path).database_url)
    try:
        database.upgrade()
    finally:
        database.dispose()
    click.echo(f"{database.url.render_as_string(hide_password=True)}: up to date")


@click.command()
@config_option
def doctor(config_path: Path) -> None:
    """Check this installation from end to end; exit status 1 if something needs mending."""
    from bisectbot.service.care.doctor import examine

    bad = 0
    for finding in examine(load(config_path)):
        click.echo(f"{'ok  ' if finding.good else 'BAD '} {finding.what}: {finding.detail}")
        bad += not finding.good
    if bad:
        raise SystemExit(1)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@config_option
def backup(file: Path, config_path: Path) -> None:
    """Write database, artifacts and mirror into one FILE (.tar.zst), while the service runs."""
    from bisectbot.service.care.backup import backup as write

    click.echo(write(load(config_path), file))


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@config_option
def restore(file: Path, config_path: Path) -> None:
    """Put the backup FILE back into an empty installation."""
    from bisectbot.service.care.backup import restore as read

    click.echo(read(load(config_path), file))
