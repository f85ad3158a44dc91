"""Options and habits that many commands share."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    """``--config``: the service's configuration; the environment variable BISECTBOT_CONFIG does as well."""
    decorate: Callable[[F], F] = click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path),
        default=Path("config/bisectbot.yaml"),
        show_default=True,
        envvar="BISECTBOT_CONFIG",
        help="The service's configuration file.",
    )
    return decorate(command)


def json_option(command: F) -> F:
    """``--json``: the same answer for programs."""
    decorate: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    return decorate(command)


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def set_up_logging(file: TextIO | None = None) -> None:
    """Events as lines in ``file`` (stderr if none): time, level, event, facts."""
    import structlog

    output = file or sys.stderr
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S", utc=True),
            structlog.dev.ConsoleRenderer(colors=output.isatty(), pad_event_to=0),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=True,
    )
