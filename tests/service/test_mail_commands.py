"""Commands by mail, all the way: in by LMTP, obeyed if the sender is vouched for, answered by SMTP in the thread."""

from __future__ import annotations

import smtplib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import select

from bisectbot.chat.commands import Desk
from bisectbot.chat.mail import MailSpeaker, handler
from bisectbot.chat.people import load_people
from bisectbot.chat.transport import Speaker, tell
from bisectbot.mail.lmtp import listening
from bisectbot.service.post import inbox, rules
from bisectbot.service.post.inbox import obey, receive
from bisectbot.store.tables import CommandLog, Request
from tests.mail.servers import Received, free_port
from tests.service.conftest import MakeLab
from tests.support.chat import write_people
from tests.support.lab import BRANCH, GROUP, KPI
from tests.support.office import AUTHOR, Office, office, reached

BOT, SERVER, ASKED = "bot@example.org", "mx.example.org", "<question@example.org>"
GOOD = f"{SERVER}; dkim=pass header.d=example.org"
Exchange = Callable[..., list[Received]]


@pytest.fixture
def desk(make: MakeLab) -> Iterator[Office]:
    inbox_spec = {"lmtp": f"127.0.0.1:{free_port()}", "authserv": SERVER}
    with office(make(), policy="author", inbox=inbox_spec) as made:
        yield made


@pytest.fixture
def exchange(desk: Office, tmp_path: Path) -> Iterator[Exchange]:
    """Hand a mail with these lines over, as the mail server before us does; what we answer."""
    write_people(tmp_path / "people")
    front = Desk(desk.context, load_people(tmp_path / "people" / "people.yaml"))
    address = desk.context.config.mail.inbox.lmtp
    with ExitStack() as stack:
        stack.enter_context(listening(address, inbox.drop(desk.context), rules.identity(desk.context)))
        server = stack.enter_context(smtplib.LMTP("127.0.0.1", int(address.rpartition(":")[2])))

        def hand_over(text: str, *results: str, sender: str = f"Ada <{AUTHOR}>", name: str = ASKED) -> list[Received]:
            head = "".join(f"Authentication-Results: {result}\n" for result in results)
            head += f"From: {sender}\nTo: {BOT}\nSubject: a question\nMessage-ID: {name}\n"
            server.sendmail(AUTHOR, [BOT], f"{head}\n{text}\n")
            assert receive(desk.context) == 1
            obey(desk.context, handler(front))
            return desk.send()

        yield hand_over


def requests(desk: Office) -> int:
    with desk.context.database.read() as session:
        return len(session.execute(select(Request)).all())


def test_a_bisection_is_asked_for_and_told_to_the_end_in_the_thread(desk: Office, exchange: Exchange) -> None:
    lab = desk.lab
    shas = lab.upstream.line([100.0] * 4 + [90.0] * 4)
    lab.upstream.push(shas[-1])
    lab.tick()
    [answer] = exchange(f"#bisectbot bisect {KPI} good={shas[0][:12]} bad={BRANCH} host=icl\n#bisectbot status\n", GOOD)
    text = answer.message.get_content()
    assert reached([answer]) == {AUTHOR}
    assert (answer.message["Subject"], answer.message["In-Reply-To"]) == ("Re: a question", ASKED)
    assert f"> #bisectbot bisect {KPI}" in text
    assert "\nB1: " in text
    assert f"host hours of {GROUP}" in text
    assert "> #bisectbot status" in text
    with desk.context.database.read() as session:
        log = session.execute(select(CommandLog).order_by(CommandLog.id)).scalars().all()
        assert [(row.who, row.origin) for row in log] == [("ada", f"mail:{AUTHOR} {ASKED}")] * 2
    lab.work()
    speakers: dict[str, Speaker] = {"mail": MailSpeaker(desk.context)}
    while tell(desk.context, speakers):
        pass
    told = [one for one in desk.send() if one.message["In-Reply-To"] == ASKED]
    assert shas[4][:10] in told[-1].message.get_content()
    assert {one.recipients for one in told} == {(AUTHOR,)}
    assert desk.send() == []


def test_the_same_mail_once_more_is_neither_obeyed_nor_answered(desk: Office, exchange: Exchange) -> None:
    assert len(exchange("#bisectbot status", GOOD)) == 1
    assert exchange("#bisectbot status", GOOD) == []


@pytest.mark.parametrize(
    "results",
    [
        (),
        ("evil.example; dkim=pass header.d=example.org",),
        (f"{SERVER}; dkim=fail header.d=example.org", GOOD),  # ours, and below it one that came with the mail
        (f"{SERVER}; dkim=pass header.d=evil.example",),
        (f'{SERVER}; spf=pass smtp.mailfrom="; dkim=pass header.d=example.org "@evil.example',),
    ],
)
def test_whom_our_own_server_does_not_vouch_for_is_nobody(
    desk: Office, exchange: Exchange, results: tuple[str, ...]
) -> None:
    lab = desk.lab
    shas = lab.upstream.line([100.0, 90.0])
    lab.upstream.push(shas[-1])
    lab.tick()
    [answer] = exchange(f"#bisectbot bisect {KPI} good={shas[0]} bad={shas[1]}", *results)
    text = answer.message.get_content()
    assert f"Nothing vouches for {AUTHOR}" in text
    assert "B1" not in text
    assert requests(desk) == 0


def test_without_a_server_to_believe_no_header_counts(make: MakeLab, tmp_path: Path) -> None:
    with office(make(), policy="author") as desk:
        raw = f"Authentication-Results: {GOOD}\nFrom: {AUTHOR}\nTo: {BOT}\nMessage-ID: {ASKED}\n\n#bisectbot status\n"
        inbox.take(desk.context, raw.encode())
        assert [command.vouched for command in inbox.pending(desk.context)] == [False]
