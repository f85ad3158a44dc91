"""Schema, transactions and time, on SQLite and PostgreSQL."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import func, select

from bisectbot.errors import InfraError, UserError
from bisectbot.store.database import Database, now
from bisectbot.store.tables import HostGroup, Tree


def test_migrations_make_exactly_the_tables_of_the_code(database: Database) -> None:
    assert database.current()
    assert database.differences() == []


def test_an_exception_rolls_everything_back(database: Database) -> None:
    def insert_and_fail() -> None:
        with database.write() as session:
            session.add(HostGroup(name="lkp-icl-2sp2"))
            session.flush()
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - our own, from above
        insert_and_fail()
    with database.read() as session:
        assert session.execute(select(func.count()).select_from(HostGroup)).scalar_one() == 0


def test_time_is_the_database_s_and_close_to_ours(database: Database) -> None:
    with database.read() as session:
        assert abs(now(session) - time.time()) < 5


def test_writers_queue_instead_of_failing(database: Database) -> None:
    with database.write() as session:
        session.add(Tree(name="linux", url="/x", fetched=0.0))

    def count_up() -> None:
        for _ in range(10):
            with database.write() as session:
                tree = session.execute(select(Tree).with_for_update()).scalar_one()
                tree.fetched += 1

    threads = [threading.Thread(target=count_up) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        assert session.execute(select(Tree.fetched)).scalar_one() == 80


def test_a_database_that_is_away_is_the_machinery_s_fault() -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(InfraError, match="does not answer"), away.read() as session:
        now(session)


def test_nonsense_is_refused_with_one_line() -> None:
    with pytest.raises(UserError, match="no database address"):
        Database("not an address")
