"""Mail that comes in: bounces, machines, answers, commands, opt-outs; and notes on lost hosts."""

from __future__ import annotations

import base64
import smtplib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import select

from bisectbot.errors import UserError
from bisectbot.mail.lmtp import listening
from bisectbot.mail.signing import Dkim, DnsLookup
from bisectbot.mail.smtp import return_path
from bisectbot.service import commands
from bisectbot.service.context import Context
from bisectbot.service.post import inbox, notes, rules
from bisectbot.service.post.inbox import MailCommand, obey, pending, receive
from bisectbot.service.post.page import report_page
from bisectbot.store.database import now
from bisectbot.store.tables import Bounce, Host, HostState
from tests.mail.servers import free_port
from tests.service.conftest import MakeLab
from tests.support.lab import HOST
from tests.support.office import AUTHOR, LIST, OPERATOR, Office, maildir, office, reached, with_mail

BOT = "bot@example.org"


@pytest.fixture
def desk(make: MakeLab, tmp_path: Path) -> Iterator[Office]:
    folder = maildir(tmp_path / "drop")
    with office(make(scale=1.0), inbox={"maildir": folder}) as made:
        yield made


def drop(desk: Office, raw: bytes | str, name: str = "") -> None:
    folder = desk.context.config.mail.inbox.maildir
    assert folder is not None
    content = raw.encode() if isinstance(raw, str) else raw
    (folder / "new" / (name or f"{time.time_ns()}.test")).write_bytes(content)


def letter(
    *, sender: str = f"Ada <{AUTHOR}>", name: str = "answer", answers: str = "", text: str = "", **headers: str
) -> str:
    lines = {"From": sender, "To": BOT, "Subject": "Re: your report", "Message-ID": f"<{name}@example.org>", **headers}
    if answers:
        lines["In-Reply-To"] = answers
    head = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in lines.items())
    return f"{head}\n{text}\n"


def bounce(desk: Office, report: int, address: str, name: str, status: str = "5.1.1") -> bytes:
    row = desk.row(report)
    sender = return_path(row.id, "example.org")
    return f"""\
Return-Path: <>
From: MAILER-DAEMON@mx.example.net
To: {sender}
Subject: Undelivered Mail Returned to Sender
Message-ID: <{name}@mx.example.net>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

No.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; {address}
Action: failed
Status: {status}
Diagnostic-Code: smtp; 550 no such user

--b
Content-Type: text/rfc822-headers

Message-ID: {row.message_id}

--b--
""".encode()


def test_two_hard_bounces_of_different_letters_suppress_an_address(desk: Office) -> None:
    desk.context = with_mail(desk.context, hourly_cap=100)
    one, two = desk.report(), desk.report()
    desk.send()
    drop(desk, bounce(desk, one, AUTHOR, "n1"))
    drop(desk, bounce(desk, one, AUTHOR, "n1-again"))
    assert receive(desk.context) == 2
    desk.report()
    assert AUTHOR in reached(desk.send())  # both were about one letter
    drop(desk, bounce(desk, two, AUTHOR, "n2"))
    receive(desk.context)
    [note] = desk.send()
    assert reached([note]) == {OPERATOR}
    assert note.message["Subject"] == f"bisectbot: {AUTHOR} bounces"
    later = desk.report()
    assert AUTHOR not in reached(desk.send())
    assert "mail to this address bounces" in {entry["place"] for entry in desk.row(later).addressees}
    commands.allow_mail(desk.context, "ops", AUTHOR)
    desk.report()
    assert AUTHOR in reached(desk.send())


def test_a_soft_bounce_does_not_count(desk: Office) -> None:
    reports = [desk.report() for _ in range(3)]
    desk.send()
    for report in reports:
        drop(desk, bounce(desk, report, AUTHOR, f"soft{report}", status="4.2.2"))
    receive(desk.context)
    desk.context = with_mail(desk.context, hourly_cap=100)
    desk.report()
    assert AUTHOR in reached(desk.send())


def test_a_forged_notification_on_somebody_who_got_nothing_is_not_believed(desk: Office) -> None:
    for number in range(2):
        report = desk.report()
        drop(desk, bounce(desk, report, "victim@example.net", f"forged{number}"))
    receive(desk.context)
    with desk.context.database.read() as session:
        assert session.execute(select(Bounce)).all() == []


def test_a_human_answer_is_linked_to_its_report_however_deep_in_the_thread(desk: Office) -> None:
    report = desk.report()
    desk.send()
    drop(desk, letter(name="one", answers=desk.row(report).message_id, text="Thanks, that is odd.\n\n> quoted\n"))
    receive(desk.context)
    drop(desk, letter(name="two", sender="Grace <grace@example.net>", answers="<one@example.org>", text="Agreed."))
    receive(desk.context)
    page = report_page(desk.context, f"r{report}")
    assert [(reply.kind, reply.sender, reply.text) for reply in page.replies] == [
        ("human", f"Ada <{AUTHOR}>", "Thanks, that is odd."),
        ("human", "Grace <grace@example.net>", "Agreed."),
    ]


def test_a_mail_that_comes_twice_is_handled_once(desk: Office) -> None:
    for copy in range(2):
        drop(desk, letter(text="#bisectbot status"), name=f"{copy}.list-and-direct")
    assert receive(desk.context) == 2
    assert len(pending(desk.context)) == 1


def test_a_reader_that_dies_after_it_remembered_a_mail_handles_it_once(desk: Office) -> None:
    raw = letter(text="#bisectbot status").encode()
    inbox.take(desk.context, raw)
    drop(desk, raw)
    receive(desk.context)
    assert len(desk.replies()) == 1


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("automatic", {"Auto_Submitted": "auto-replied"}),
        ("automatic", {"Return_Path": "<>"}),
        ("automatic", {"Precedence": "junk"}),
        ("automatic", {"X_Bisectbot_Kind": "answer"}),
        ("own", {"sender": f"bisectbot <{BOT}>"}),
        ("own", {"name": "202611302205.00000000-bisectbot"}),
    ],
)
def test_machines_and_our_own_mail_never_loop(desk: Office, kind: str, headers: dict[str, str]) -> None:
    drop(desk, letter(text="#bisectbot status\n#bisectbot mute", **headers))
    receive(desk.context)
    assert [reply.kind for reply in desk.replies()] == [kind]
    assert pending(desk.context) == []
    with desk.context.database.read() as session:
        assert rules.policy(desk.context, session).opted_out == frozenset()
    assert desk.rows("answer") == []


def test_mail_that_is_no_mail_is_put_aside(desk: Office) -> None:
    for raw in (
        b"",
        b"\0\xff\xfe",
        b"From: \xff\xfe <a\0@b>\nSubject: \0\n\n\0",
        b"Content-Type: multipart/report\n\n",
    ):
        drop(desk, raw)
        receive(desk.context)
    assert len(desk.replies()) == 4
    assert pending(desk.context) == []


@pytest.mark.parametrize(
    "words", [{"Subject": "unsubscribe"}, {"text": "#bisectbot mute"}, {"text": "#bisectbot unsubscribe"}]
)
def test_whoever_asks_by_mail_gets_no_more(desk: Office, words: dict[str, str]) -> None:
    drop(desk, letter(**words))
    receive(desk.context)
    desk.report()
    assert reached(desk.send()) == {OPERATOR}
    assert pending(desk.context) == []


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def signed(raw: str, key: rsa.RSAPrivateKey, folder: Path) -> bytes:
    pem = folder / "key.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return Dkim("example.org", "s", pem).sign(raw.replace("\n", "\r\n").encode())


def dns_of(key: rsa.RSAPrivateKey) -> DnsLookup:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    def dns(name: bytes, timeout: int = 5) -> bytes | None:
        return b"v=DKIM1; p=" + base64.b64encode(public) if name == b"s._domainkey.example.org." else None

    return dns


def test_commands_are_handed_over_with_who_asks_and_answered_once(
    desk: Office, key: rsa.RSAPrivateKey, tmp_path: Path
) -> None:
    report = desk.report()
    desk.send()
    text = "#bisectbot retry B1\n#bisectbot status\n"
    raw = letter(answers=desk.row(report).message_id, text=text, Date="Tue, 01 Dec 2026 00:00:00 +0000")
    drop(desk, signed(raw, key, tmp_path))
    receive(desk.context, dns_of(key))
    asked: list[MailCommand] = []

    def handler(context: Context, command: MailCommand) -> str:
        asked.append(command)
        return "B1 goes on\nnothing runs"

    assert obey(desk.context, handler) == 1
    assert obey(desk.context, handler) == 0
    [command] = asked
    assert command.lines == ("retry B1", "status")
    assert (command.sender.address, command.vouched, command.report) == (AUTHOR, True, report)
    [answer] = [one for one in desk.send() if one.message["X-Bisectbot-Kind"] == "answer"]
    assert reached([answer]) == {AUTHOR}
    assert answer.message["In-Reply-To"] == "<answer@example.org>"
    assert answer.message["Auto-Submitted"] == "auto-replied"
    assert "B1 goes on" in answer.message.get_content()


def test_a_command_that_cannot_be_obeyed_is_answered_in_one_line(desk: Office) -> None:
    drop(desk, letter(text="#bisectbot frobnicate"))
    receive(desk.context)

    def handler(context: Context, command: MailCommand) -> str:
        assert not command.vouched
        raise UserError("there is no command 'frobnicate'; see `help`")

    obey(desk.context, handler)
    [answer] = desk.send()
    assert answer.message.get_content().startswith("there is no command 'frobnicate'")


def test_commands_that_do_not_speak_to_us_are_left_alone(desk: Office) -> None:
    drop(desk, letter(text="#bisectbot status", To=LIST))
    receive(desk.context)
    assert pending(desk.context) == []


def test_on_the_lowest_rungs_only_operators_are_answered(make: MakeLab, tmp_path: Path) -> None:
    with office(make(scale=1.0), policy="operators", inbox={"maildir": maildir(tmp_path / "drop")}) as desk:
        drop(desk, letter(name="a", text="#bisectbot status"))
        drop(desk, letter(name="b", sender=OPERATOR, text="#bisectbot status"))
        receive(desk.context)
        assert obey(desk.context, lambda *_: "fine") == 2
        assert reached(desk.send()) == {OPERATOR}


def test_a_flood_of_commands_is_not_answered(desk: Office) -> None:
    for number in range(inbox.MOST_A_DAY + 5):
        inbox.take(desk.context, letter(name=f"flood{number}", text="#bisectbot status").encode())
    assert len(pending(desk.context)) == inbox.MOST_A_DAY


def test_a_mail_server_hands_mail_over_by_lmtp(make: MakeLab) -> None:
    port = free_port()
    with office(make(scale=1.0), inbox={"lmtp": f"127.0.0.1:{port}"}) as desk:
        report = desk.report()
        [got] = desk.send()
        ours = listening(f"127.0.0.1:{port}", inbox.drop(desk.context), rules.identity(desk.context))
        with ours, smtplib.LMTP("127.0.0.1", port) as server:
            text = letter(answers=str(got.message["Message-ID"]), text="Thanks.")
            server.sendmail(AUTHOR, [BOT], text)
            server.sendmail("", [got.sender], bounce(desk, report, AUTHOR, "n1"))
            with pytest.raises(smtplib.SMTPRecipientsRefused):
                server.sendmail(AUTHOR, ["somebody@example.net"], text)
        assert receive(desk.context) == 2
        assert [(reply.kind, reply.report_id) for reply in desk.replies()] == [("human", report), ("bounce", None)]
        with desk.context.database.read() as session:
            assert session.execute(select(Bounce.address)).scalars().all() == [AUTHOR]


def test_a_port_that_is_taken_is_told_in_one_line(make: MakeLab) -> None:
    with office(make(scale=1.0)) as desk:
        taken = desk.context.config.mail.smtp.port
        here = f"127.0.0.1:{taken}"
        ours = listening(here, inbox.drop(desk.context), rules.identity(desk.context))
        with pytest.raises(UserError, match=r"mail.inbox.lmtp: cannot listen at .*; choose another port"), ours:
            pass


def test_operators_are_told_once_of_a_host_that_is_lost(desk: Office) -> None:
    with desk.context.database.write() as session:
        host = session.execute(select(Host).filter_by(name=HOST)).scalar_one_or_none() or Host(name=HOST)
        host.state, host.reason, host.since = HostState.SUSPECT, "3 failures in a row", now(session)
    assert notes.hosts(desk.context) == 1
    assert notes.hosts(desk.context) == 0
    [note] = desk.send()
    assert reached([note]) == {OPERATOR}
    assert note.message["Subject"] == f"bisectbot: host {HOST} is suspect"
    assert "3 failures in a row" in note.message.get_content()


def test_a_host_that_ignores_its_work_for_an_hour_is_lost(make: MakeLab) -> None:
    lab = make(scale=3600.0)  # an hour lasts a second
    with office(lab) as desk:
        for sha in lab.upstream.line([100.0, 100.0]):
            lab.upstream.push(sha)
            lab.tick()
        assert lab.build()
        assert lab.run()
        time.sleep(1.1)
        assert notes.hosts(desk.context) == 1
        assert desk.row(kind="note").dedup_key.startswith(f"note/host/{HOST}/silent/")
        assert lab.run()
        assert notes.hosts(desk.context) == 0
