"""A desk on SQLite; what differs between the databases is tested in tests/service."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from bisectbot.chat.commands import Desk
from tests.support.chat import make_desk
from tests.support.lab import Lab

MakeDesk = Callable[..., tuple[Lab, Desk]]


@pytest.fixture
def make(tmp_path: Path, sqlite_template: Path) -> Iterator[MakeDesk]:
    """Make a laboratory with a desk; ``chat`` is the section of the configuration."""
    labs: list[Lab] = []

    def build(chat: dict[str, Any] | None = None, **desk: Any) -> tuple[Lab, Desk]:
        path = tmp_path / f"{len(labs)}.db"
        shutil.copy(sqlite_template, path)
        made = make_desk(tmp_path, f"sqlite:///{path}", chat, **desk)
        labs.append(made[0])
        return made

    yield build
    for lab in labs:
        lab.context.database.dispose()


@pytest.fixture
def lab_and_desk(make: MakeDesk) -> tuple[Lab, Desk]:
    return make()


@pytest.fixture
def lab(lab_and_desk: tuple[Lab, Desk]) -> Lab:
    return lab_and_desk[0]


@pytest.fixture
def desk(lab_and_desk: tuple[Lab, Desk]) -> Desk:
    return lab_and_desk[1]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """Events are not what these tests look at."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
