"""Fixtures for every room: the two databases."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy.engine import make_url

from bisectbot.store.database import Database
from tests.support.postgres import Cluster

settings.register_profile("untimed", deadline=None)  # a busy machine makes no test fail
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A private PostgreSQL, one per test process."""
    server = Cluster()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_template(cluster: Cluster) -> str:
    """The name of a PostgreSQL database with our schema, to be copied."""
    url = cluster.create()
    database = Database(url)
    database.upgrade()
    database.dispose()
    return str(make_url(url).database)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with our schema, to be copied."""
    path = tmp_path_factory.mktemp("template") / "bisectbot.db"
    database = Database(f"sqlite:///{path}")
    database.upgrade()
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.dispose()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database with our schema, once on each of the two."""
    if request.param == "sqlite":
        path = tmp_path / "bisectbot.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    template = request.getfixturevalue("postgres_template")
    server: Cluster = request.getfixturevalue("cluster")
    return server.create(template)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database with our schema, once on each of the two."""
    opened = Database(database_url)
    yield opened
    opened.dispose()
