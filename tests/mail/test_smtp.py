"""Handing messages to a real server that fails as told."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword

from bisectbot.errors import UserError
from bisectbot.mail.message import compose, seven_bit
from bisectbot.mail.smtp import Envelope, Outcome, Recipient, Refusal, Result, Security, Settings, deliver, return_path
from tests.mail.letters import IDENTITY, NOW, letter
from tests.mail.servers import CUT, TAKE_AND_CUT, Script, free_port, smtp_server
from tests.support.certificate import self_signed

RAW = bytes(compose(letter(), IDENTITY, NOW))
ENVELOPE = Envelope(
    return_path(7, "bisectbot.example.org"), (Recipient("ada@example.org"), Recipient("linux-mm@lists.example.net"))
)
ADA, LIST = (recipient.address for recipient in ENVELOPE.recipients)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script) -> Iterator[Settings]:
    with smtp_server(script) as settings:
        yield settings


def test_everybody_gets_it(script: Script, server: Settings):
    assert deliver(RAW, ENVELOPE, server) == Outcome(Result.SENT, accepted=(ADA, LIST))
    (received,) = script.received
    assert received.sender == "bounce+7@bisectbot.example.org"
    assert received.recipients == (ADA, LIST)
    assert received.raw == RAW


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [
        ({"mail": ["451 4.3.0 later"]}, Outcome(Result.DEFERRED, 451, "4.3.0 later", waiting=(ADA, LIST))),
        (
            {"mail": ["553 5.1.8 not you"]},
            Outcome(
                Result.FAILED,
                553,
                "5.1.8 not you",
                refused=(Refusal(ADA, 553, "5.1.8 not you"), Refusal(LIST, 553, "5.1.8 not you")),
            ),
        ),
        (
            {"rcpt": {ADA: ["450 4.7.1 greylisted"]}},
            Outcome(Result.DEFERRED, 450, "4.7.1 greylisted", accepted=(LIST,), waiting=(ADA,)),
        ),
        (
            {"rcpt": {ADA: ["550 5.1.1 unknown"]}},
            Outcome(Result.SENT, accepted=(LIST,), refused=(Refusal(ADA, 550, "5.1.1 unknown"),)),
        ),
        (
            {"rcpt": {ADA: ["550 5.1.1 unknown"], LIST: ["450 4.7.1 greylisted"]}},
            Outcome(
                Result.DEFERRED,
                450,
                "4.7.1 greylisted",
                waiting=(LIST,),
                refused=(Refusal(ADA, 550, "5.1.1 unknown"),),
            ),
        ),
        ({"data": ["452 4.3.1 disk full"]}, Outcome(Result.DEFERRED, 452, "4.3.1 disk full", waiting=(ADA, LIST))),
        (
            {"data": ["554 5.7.1 spam"]},
            Outcome(
                Result.FAILED,
                554,
                "5.7.1 spam",
                refused=(Refusal(ADA, 554, "5.7.1 spam"), Refusal(LIST, 554, "5.7.1 spam")),
            ),
        ),
    ],
)
def test_refusals(script: Script, server: Settings, faults: dict[str, object], outcome: Outcome):
    for name, replies in faults.items():
        setattr(script, name, replies)
    assert deliver(RAW, ENVELOPE, server) == outcome
    assert {address for received in script.received for address in received.recipients} == set(outcome.accepted)


@pytest.mark.parametrize("stage", ["mail", "rcpt"])
def test_lost_before_the_text_is_only_deferred(script: Script, server: Settings, stage: str):
    if stage == "mail":
        script.mail = [CUT]
    else:
        script.rcpt[LIST] = [CUT]
    outcome = deliver(RAW, ENVELOPE, server)
    assert (outcome.result, outcome.code, outcome.waiting) == (Result.DEFERRED, None, (ADA, LIST))
    assert outcome.reason
    assert script.received == []


def test_lost_after_the_text_is_unknown_whether_it_arrived_or_not(script: Script, server: Settings):
    script.data = [TAKE_AND_CUT, CUT]
    first, second = deliver(RAW, ENVELOPE, server), deliver(RAW, ENVELOPE, server)
    assert first == second
    assert (first.result, first.waiting) == (Result.UNKNOWN, (ADA, LIST))
    assert len(script.received) == 1


def test_nobody_listens():
    outcome = deliver(RAW, ENVELOPE, Settings("127.0.0.1", free_port(), timeout=5.0))
    assert (outcome.result, outcome.waiting) == (Result.DEFERRED, (ADA, LIST))
    assert "refused" in outcome.reason


def test_a_server_that_says_nothing_is_given_up():
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as silent:
        settings = Settings("127.0.0.1", silent.getsockname()[1], timeout=0.3)
        outcome = deliver(RAW, ENVELOPE, settings)
    assert (outcome.result, outcome.reason) == (Result.DEFERRED, "Connection unexpectedly closed: timed out")


def test_a_slow_server_is_left_before_the_lease_ends(script: Script, server: Settings):
    script.delay = 0.2
    outcome = deliver(RAW, ENVELOPE, replace(server, patience=0.3))
    assert (outcome.result, outcome.waiting) == (Result.DEFERRED, (ADA, LIST))
    assert outcome.reason.startswith("the server is too slow")
    assert script.received == []


def test_people_get_their_own_link_and_the_list_does_not(script: Script, server: Settings):
    link = "https://bisectbot.example.org/unsubscribe/token"
    envelope = replace(ENVELOPE, recipients=(Recipient(ADA, link), Recipient(LIST)))
    assert deliver(RAW, envelope, server).accepted == (LIST, ADA)
    public, personal = (received.message for received in script.received)
    assert [received.recipients for received in script.received] == [(LIST,), (ADA,)]
    assert public["Message-ID"] == personal["Message-ID"]
    assert link not in str(public["List-Unsubscribe"])
    assert public["List-Unsubscribe-Post"] is None
    assert personal["List-Unsubscribe"] == f"<mailto:bot@bisectbot.example.org?subject=unsubscribe>, <{link}>"
    assert personal["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert public.get_content() == personal.get_content()


def test_the_second_copy_is_lost(script: Script, server: Settings):
    script.data = ["250 fine", TAKE_AND_CUT]
    envelope = replace(ENVELOPE, recipients=(Recipient(ADA, "https://x.example.org/t"), Recipient(LIST)))
    outcome = deliver(RAW, envelope, server)
    assert (outcome.result, outcome.accepted, outcome.waiting) == (Result.UNKNOWN, (LIST,), (ADA,))


def test_a_server_without_8bitmime_gets_seven_bits(script: Script, server: Settings):
    script.hidden = "8BITMIME"
    assert deliver(RAW, ENVELOPE, server).result is Result.SENT
    (received,) = script.received
    assert received.raw == seven_bit(RAW) != RAW


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost in one PEM file."""
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    path.write_bytes(self_signed("localhost").pem)
    return path


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_starttls_and_a_password_from_a_file(script: Script, certificate: Path, tmp_path: Path):
    def check(server: object, session: object, envelope: object, mechanism: str, data: LoginPassword) -> AuthResult:
        return AuthResult(success=data == LoginPassword(b"bot", b"s3cret"), handled=False)

    (tmp_path / "password").write_text("s3cret\n")
    (tmp_path / "wrong").write_text("guess\n")
    with smtp_server(
        script, tls_context=tls(certificate), require_starttls=True, auth_required=True, authenticator=check
    ) as settings:
        secure = replace(
            settings,
            host="localhost",
            security=Security.STARTTLS,
            ca_file=certificate,
            user="bot",
            password_file=tmp_path / "password",
        )
        assert deliver(RAW, ENVELOPE, secure).result is Result.SENT
        refused = deliver(RAW, ENVELOPE, replace(secure, password_file=tmp_path / "wrong"))
        assert (refused.result, refused.code, refused.waiting) == (Result.DEFERRED, 535, (ADA, LIST))
        untrusted = deliver(RAW, ENVELOPE, replace(secure, ca_file=None))
        assert untrusted.result is Result.DEFERRED
        assert "certificate" in untrusted.reason.lower()
    assert len(script.received) == 1


def test_starttls_is_not_given_up_when_a_server_does_not_offer_it(script: Script, server: Settings):
    outcome = deliver(RAW, ENVELOPE, replace(server, security=Security.STARTTLS))
    assert outcome.result is Result.DEFERRED
    assert script.received == []


def test_settings_that_can_never_work(server: Settings, tmp_path: Path):
    with pytest.raises(UserError, match=r"SMTP password .*nothing.*password_file"):
        deliver(RAW, ENVELOPE, replace(server, user="bot", password_file=tmp_path / "nothing"))


def test_an_envelope_needs_recipients():
    with pytest.raises(UserError, match="without recipients"):
        Envelope("a@example.org", ())


def test_no_thread_is_left_behind(server: Settings):
    before = threading.active_count()
    deliver(RAW, ENVELOPE, server)
    assert threading.active_count() == before
