"""Where mail comes in. IMAP is tried on a real server in test_servers_real.py."""

from __future__ import annotations

import mailbox
import os
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, UserError
from bisectbot.mail.inbox import Imap, Item, Maildir
from tests.mail.servers import free_port


@pytest.fixture
def drop(tmp_path: Path) -> mailbox.Maildir:
    return mailbox.Maildir(tmp_path / "drop")


def test_oldest_first_until_done(drop: mailbox.Maildir, tmp_path: Path):
    names = [drop.add(f"Subject: {n}\n\n") for n in range(3)]
    for age, name in enumerate(reversed(names)):
        os.utime(tmp_path / "drop" / "new" / name, (1e9 + age, 1e9 + age))
    inbox = Maildir(tmp_path / "drop")
    waiting = inbox.waiting()
    assert [item.raw for item in waiting] == [b"Subject: 2\n\n", b"Subject: 1\n\n", b"Subject: 0\n\n"]
    assert inbox.waiting() == waiting
    inbox.done(waiting[0])
    inbox.done(waiting[0])
    assert inbox.waiting() == waiting[1:]
    assert drop.get_message(names[2]).get_flags() == "S"


def test_a_maildir_that_is_not_there(tmp_path: Path):
    with pytest.raises(InfraError, match=r"maildir .*missing: No such file"):
        Maildir(tmp_path / "missing").waiting()


def test_imap_that_cannot_be_reached(tmp_path: Path):
    password = tmp_path / "password"
    with pytest.raises(UserError, match=r"IMAP password .*correct inbox.password_file"):
        Imap("127.0.0.1", "bot", password).waiting()
    password.write_text("x")
    with pytest.raises(InfraError, match=r"IMAP bot at 127\.0\.0\.1:"):
        Imap("127.0.0.1", "bot", password, port=free_port()).done(Item("1", b""))
