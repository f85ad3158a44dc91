"""Letters through a real mail server, and what comes back from it."""

from __future__ import annotations

import email
import email.policy
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.mail import outbox
from bisectbot.mail.bounces import suppressed
from bisectbot.mail.inbox import Imap, Item, Maildir
from bisectbot.mail.incoming import Incoming, Sort, read
from bisectbot.mail.message import choose_message_id, compose
from bisectbot.mail.outbox import Row, State
from bisectbot.mail.smtp import Envelope, Recipient, Result, Settings, deliver, return_path
from tests.mail.letters import IDENTITY, NOW, letter
from tests.mail.mta import DOMAIN, ELSEWHERE, Postfix, dovecot, postfix, short_folder
from tests.mail.servers import Script, free_port, smtp_server
from tests.mail.test_smtp import certificate  # noqa: F401 - a fixture

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ADA, LIST = f"ada@{DOMAIN}", f"list@{DOMAIN}"


@pytest.fixture(scope="module")
def server() -> Iterator[Postfix]:
    with short_folder() as folder, postfix(folder) as running:
        yield running


def arrivals(drop: Maildir, count: int, seconds: float = 30.0) -> list[Item]:
    """The mails in a drop once there are ``count``; they are taken out of it."""
    end = time.monotonic() + seconds
    while len(items := drop.waiting()) < count and time.monotonic() < end:
        time.sleep(0.1)
    for item in items:
        drop.done(item)
    return items


def ids(items: list[Item]) -> list[str]:
    return [str(email.message_from_bytes(item.raw, policy=email.policy.default)["Message-ID"]) for item in items]


def written(key: str) -> bytes:
    return bytes(compose(letter(key=key), IDENTITY, NOW))


def test_what_arrives_is_what_was_written(server: Postfix):
    raw = written("a1b2c3d0")
    link = "https://bisectbot.example.org/unsubscribe/t"
    envelope = Envelope(return_path(1, DOMAIN), (Recipient(ADA, link), Recipient(LIST)))
    assert deliver(raw, envelope, server.settings).accepted == (LIST, ADA)
    (public,), (personal,) = arrivals(server.drop("list"), 1), arrivals(server.drop("ada"), 1)
    assert public.raw.endswith(raw.replace(b"\r\n", b"\n"))
    assert b"Return-Path: <bounce+1@bisectbot.example.org>" in public.raw
    message = email.message_from_bytes(personal.raw, policy=email.policy.default)
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["Message-ID"] == choose_message_id("a1b2c3d0", IDENTITY, NOW)


def test_nobody_here_by_that_name(server: Postfix):
    envelope = Envelope(return_path(2, DOMAIN), (Recipient(f"nobody-here@{DOMAIN}"), Recipient(ADA)))
    outcome = deliver(written("a1b2c3d1"), envelope, server.settings)
    assert (outcome.result, outcome.accepted) == (Result.SENT, (ADA,))
    assert [refusal.code for refusal in outcome.refused] == [550]
    assert len(arrivals(server.drop("ada"), 1)) == 1


def test_a_full_disk_defers_and_then_everybody_gets_it_once(server: Postfix):
    raw = written("a1b2c3d2")
    row = outbox.submit(Row(3, choose_message_id("a1b2c3d2", IDENTITY, NOW), "k", (ADA, LIST)))
    free = os.statvfs(server.folder)
    server.set("queue_minfree", str(free.f_bavail * free.f_frsize * 2))
    row, now = attempt(row, raw, server.settings, NOW)
    assert (row.state, row.last_error[:13]) == (State.DEFERRED, "deferred: 452")
    server.set("queue_minfree", "0")
    row, _ = attempt(row, raw, server.settings, max(now, row.not_before))
    assert row.state is State.SENT
    assert ids(arrivals(server.drop("ada"), 1)) == ids(arrivals(server.drop("list"), 1)) == [row.message_id]


def attempt(row: Row, raw: bytes, settings: Settings, now: float) -> tuple[Row, float]:
    """One claim, delivery and settlement, as a sender does it."""
    row = outbox.claim(row, now)
    envelope = Envelope(return_path(row.id, DOMAIN), tuple(Recipient(address) for address in row.waiting))
    return outbox.settle(row, row.token, deliver(raw, envelope, settings), now), now


def test_a_server_that_is_down_for_an_hour(server: Postfix):
    """By the outbox's own clock; nobody listens on the port until the hour is over."""
    letters = {f"d0e1f2{n:02}": written(f"d0e1f2{n:02}") for n in range(5)}
    rows = [
        outbox.submit(Row(n, choose_message_id(key, IDENTITY, NOW), key, (ADA,))) for n, key in enumerate(letters, 10)
    ]
    down = replace(server.settings, port=free_port())
    now = NOW
    while any(row.state is not State.SENT for row in rows):
        now = max(now, min(row.not_before for row in rows if row.state is not State.SENT))
        reached = server.settings if now >= NOW + 3600 else down
        rows = [attempt(row, letters[row.key], reached, now)[0] if outbox.is_due(row, now) else row for row in rows]
    assert NOW + 3600 <= now <= NOW + 3 * 3600
    assert sorted(ids(arrivals(server.drop("ada"), 5))) == sorted(row.message_id for row in rows)


def bounced(server: Postfix, number: int) -> Incoming:
    """Write to somebody elsewhere whose server refuses, and read what Postfix sends back."""
    envelope = Envelope(return_path(number, DOMAIN), (Recipient(f"gone@{ELSEWHERE}"),))
    assert deliver(written(f"b{number:07x}"), envelope, server.settings).result is Result.SENT
    (item,) = arrivals(server.drop("bounce"), 1)
    return read(item.raw, IDENTITY)


def test_two_real_bounces_suppress_an_address(server: Postfix):
    refusing = Script()
    refusing.rcpt[f"gone@{ELSEWHERE}"] = ["550 5.1.1 no such user"] * 2
    with smtp_server(refusing, port=server.onward):
        first, second = bounced(server, 41), bounced(server, 42)
    assert [(mail.sort, mail.outbox) for mail in (first, second)] == [(Sort.BOUNCE, 41), (Sort.BOUNCE, 42)]
    (bounce,) = first.bounces
    assert (bounce.address, bounce.action, bounce.status) == (f"gone@{ELSEWHERE}", "failed", "5.1.1")
    assert bounce.letter == choose_message_id(f"b{41:07x}", IDENTITY, NOW)
    assert suppressed(first.bounces) == frozenset()
    assert suppressed((*first.bounces, *second.bounces)) == {f"gone@{ELSEWHERE}"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


def test_imap(folder: Path, certificate: Path):  # noqa: F811
    (folder / "password").write_text("s3cret\n")
    with dovecot(folder, certificate) as (port, maildir):
        for n in range(3):
            (maildir / "new" / f"170000000{n}.M{n}P1.host").write_bytes(b"Subject: %d\n\nhello\n" % n)
        inbox = Imap("localhost", "bot", folder / "password", port=port, ca_file=certificate)
        waiting = inbox.waiting()
        assert [item.raw for item in waiting] == [b"Subject: %d\r\n\r\nhello\r\n" % n for n in range(3)]
        assert inbox.waiting() == waiting
        inbox.done(waiting[1])
        assert inbox.waiting() == [waiting[0], waiting[2]]
