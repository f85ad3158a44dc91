"""The database: transactions that read, transactions that write, and its clock.

SQLite (WAL) on a local file system or PostgreSQL, the same code on both. A writing transaction on SQLite begins
IMMEDIATE, so that two writers queue instead of failing half-way. Writers of one process queue at a lock of ours:
SQLite's own waiting is by sleeping and trying again, and starves some of many.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Float, cast, create_engine, event, func, inspect, literal, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.sql import ColumnElement

from bisectbot.errors import InfraError, UserError
from bisectbot.store.tables import Base

_WRITE = "bisectbot_write"
_BUSY_TIMEOUT_MS = 30_000
_CONNECTIONS = 40
"""As many as a web process has threads: none waits for a connection."""
_UNIX_EPOCH_JULIAN_DAY = 2440587.5


class Database:
    """One database. Cheap to make; connections are opened when needed and kept in a pool."""

    def __init__(self, url: str) -> None:
        try:
            self.url = make_url(url)
        except ArgumentError:
            raise UserError(f"{url!r} is no database address; see config/README.md") from None
        if self.url.drivername == "postgresql":
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if self.sqlite and self.url.database:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        self.engine: Engine = create_engine(
            self.url, pool_pre_ping=not self.sqlite, pool_size=5, max_overflow=_CONNECTIONS - 5
        )
        self._turn: AbstractContextManager[object] = threading.Lock() if self.sqlite else nullcontext()
        if self.sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writer = self.engine.execution_options(**{_WRITE: True})

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads: what is changed in its rows is never written."""
        with _outages(), Session(self.engine, expire_on_commit=False, autoflush=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that writes: committed at the end, rolled back on any exception.

        No network, git or SMTP call belongs inside.
        """
        with _outages(), self._turn, Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def upgrade(self) -> None:
        """Bring the schema to this version's."""
        with _outages(), self.engine.connect() as connection:
            config = _alembic()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()

    def current(self) -> bool:
        """Whether the schema is the one that this version wants."""
        with _outages(), self.engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() == _newest_revision()

    def tables(self) -> list[str]:
        """The names of the tables that are there, whatever made them."""
        with _outages(), self.engine.connect() as connection:
            return inspect(connection).get_table_names()

    def differences(self) -> list[Any]:
        """What distinguishes the schema from the tables in code, as Alembic tells it; empty if nothing."""
        with self.engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            return list(compare_metadata(context, Base.metadata))

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def now_clause(session: Session) -> ColumnElement[float]:
    """The database's time as an SQL expression: seconds since 1970 UTC."""
    assert session.bind is not None
    if session.bind.dialect.name == "sqlite":
        return (func.julianday("now") - literal(_UNIX_EPOCH_JULIAN_DAY)) * literal(86400.0)
    return cast(func.extract("epoch", func.clock_timestamp()), Float(53))


def now(session: Session) -> float:
    """The database's time, seconds since 1970 UTC: the only time that is stored."""
    return float(session.execute(select(now_clause(session))).scalar_one())


@contextmanager
def _outages() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise InfraError(f"the database does not answer: {str(error.orig).strip()}") from error
    except PoolTimeoutError as error:
        raise InfraError("the database does not answer: all connections are busy") from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we begin transactions ourselves, below
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _alembic() -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def _newest_revision() -> str | None:
    return ScriptDirectory.from_config(_alembic()).get_current_head()
