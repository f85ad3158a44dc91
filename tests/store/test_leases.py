"""Leases: one holder, tokens that only grow, the same on both databases."""

from __future__ import annotations

import threading
import time

from bisectbot.store import leases
from bisectbot.store.database import Database


def test_only_one_of_many_gets_it(database: Database) -> None:
    granted: list[int] = []

    def claim(number: int) -> None:
        with database.write() as session:
            if grant := leases.acquire(session, "run:1", f"worker-{number}", ttl=60):
                granted.append(grant.token)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted == [1]


def test_an_ended_lease_passes_on_with_a_larger_token_and_says_so(database: Database) -> None:
    with database.write() as session:
        first = leases.acquire(session, "host:icl", "a", ttl=0.05)
    time.sleep(0.1)
    with database.write() as session:
        second = leases.acquire(session, "host:icl", "b", ttl=60)
        assert first is not None
        assert second is not None
        assert second.token > first.token
        assert second.taken_over
        assert not leases.renew(session, "host:icl", first.token, ttl=60)
        assert leases.holder(session, "host:icl") == "b"


def test_nobody_came_so_the_late_holder_goes_on(database: Database) -> None:
    with database.write() as session:
        grant = leases.acquire(session, "run:1", "a", ttl=0.0)
        assert grant is not None
    time.sleep(0.05)
    with database.write() as session:
        assert leases.expired(session, "run:") == ["run:1"]
        assert leases.renew(session, "run:1", grant.token, ttl=60)
        assert leases.expired(session, "run:") == []


def test_tokens_grow_even_after_release_and_after_being_forgotten(database: Database) -> None:
    with database.write() as session:
        grant = leases.acquire(session, "run:1", "a", ttl=60)
        assert grant is not None
        leases.release(session, "run:1", grant.token)
        again = leases.acquire(session, "run:1", "b", ttl=60)
        assert again is not None
        assert again.token > grant.token
        assert not again.taken_over
        leases.forget(session, "run:1")
        third = leases.acquire(session, "run:1", "c", ttl=60, floor=again.token)
        assert third is not None
        assert third.token > again.token


def test_the_holder_may_ask_again(database: Database) -> None:
    with database.write() as session:
        first = leases.acquire(session, "leader", "a", ttl=60)
        second = leases.acquire(session, "leader", "a", ttl=60)
        assert first is not None
        assert second is not None
        assert first.token == second.token
        assert leases.acquire(session, "leader", "b", ttl=60) is None
