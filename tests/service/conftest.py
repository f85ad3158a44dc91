"""A laboratory on each of the two databases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.lab import Lab, make_lab

MakeLab = Callable[..., Lab]


@pytest.fixture
def make(tmp_path: Path, database_url: str) -> Iterator[MakeLab]:
    """Make a laboratory with changes to its configuration."""
    labs: list[Lab] = []

    def build(changes: dict[str, Any] | None = None, scale: float = 1000.0) -> Lab:
        labs.append(make_lab(tmp_path, database_url, changes, scale))
        return labs[-1]

    yield build
    for lab in labs:
        lab.context.database.dispose()


@pytest.fixture
def lab(make: MakeLab) -> Lab:
    """A laboratory with one host."""
    return make()


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """Events are not what these tests look at."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
