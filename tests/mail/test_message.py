"""Whole messages."""

from __future__ import annotations

import email
import email.policy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import (
    Kind,
    archive_key,
    choose_message_id,
    compose,
    reply_subject,
    seven_bit,
)
from tests.mail.letters import BODY, IDENTITY, NOW, letter

GOLDEN = Path(__file__).parents[1] / "golden" / "mail"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("report", {}),
        (
            "followup",
            {
                "key": "93b7d0a2c4e6f809/addendum/2",
                "kind": Kind.FOLLOWUP,
                "subject": "Re: [PATCH v3 2/7] mm/slub: größere Scheiben für alle Knoten, auch für die ohne Speicher",
                "body": "Two more hosts.\n\ndiff --git a/mm/slub.c b/mm/slub.c\n--- a/mm/slub.c\n+++ b/mm/slub.c\n",
                "in_reply_to": "<202311142213.93b7d0a2-bisectbot@bisectbot.example.org>",
                "references": (
                    "<20231101.patch@example.org>",
                    "<202311142213.93b7d0a2-bisectbot@bisectbot.example.org>",
                ),
            },
        ),
        ("digest", {"kind": Kind.DIGEST, "subject": "bisectbot: week 46 of 2023", "body": "Nothing.\n", "cc": ()}),
    ],
)
def test_golden(name: str, changes: dict[str, object]):
    raw = bytes(compose(letter(**changes), IDENTITY, NOW))
    assert raw == (GOLDEN / f"{name}.eml").read_bytes()


def test_the_message_id_is_lkps_form_and_can_be_chosen_first():
    chosen = choose_message_id("93B7D0A2c4e6f809", IDENTITY, NOW)
    assert chosen == "<202311142213.93b7d0a2-bisectbot@bisectbot.example.org>"
    assert archive_key(chosen) == "202311142213.93b7d0a2-bisectbot@bisectbot.example.org"
    later = compose(letter(message_id=chosen), IDENTITY, NOW + 86400)
    assert later["Message-ID"] == chosen


def test_letters_of_one_report_have_message_ids_of_their_own():
    keys = ["93b7d0a2c4e6f809", "93b7d0a2c4e6f809/addendum/1", "93b7d0a2c4e6f809/correction/1", "digest/2023-46"]
    assert len({choose_message_id(key, IDENTITY, NOW) for key in keys}) == 4


@given(st.text(st.characters(), max_size=500), st.text(st.characters(), max_size=2000))
def test_any_letter_is_the_same_bytes_after_parsing(subject: str, text: str):
    message = compose(letter(subject=subject, body=text), IDENTITY, NOW)
    raw = bytes(message)
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert head.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    again = email.message_from_bytes(raw, policy=email.policy.default)
    assert len(again.keys()) == len(set(again.keys())) == 19
    assert again.get_content_type() == "text/plain"
    assert rest


def test_body_arrives_as_written():
    message = email.message_from_bytes(bytes(compose(letter(), IDENTITY, NOW)), policy=email.policy.default)
    assert message["Content-Transfer-Encoding"] == "8bit"
    assert message.get_content().replace("\r\n", "\n") == BODY


def test_seven_bit_copy_says_the_same():
    raw = bytes(compose(letter(), IDENTITY, NOW))
    copy = seven_bit(raw)
    assert copy.isascii()
    message = email.message_from_bytes(copy, policy=email.policy.default)
    assert message.get_content().replace("\r\n", "\n") == BODY
    assert copy.partition(b"Content-Transfer")[0] == raw.partition(b"Content-Transfer")[0]


@pytest.mark.parametrize(
    ("kind", "submitted", "precedence"),
    [
        (Kind.REPORT, "auto-generated", None),
        (Kind.CORRECTION, "auto-generated", None),
        (Kind.TEST, "auto-replied", None),
        (Kind.ANSWER, "auto-replied", None),
        (Kind.DIGEST, "auto-generated", "bulk"),
    ],
)
def test_what_filters_look_at(kind: Kind, submitted: str, precedence: str | None):
    message = compose(letter(kind=kind), IDENTITY, NOW)
    assert message["Auto-Submitted"] == submitted
    assert message["Precedence"] == precedence
    assert message["X-Bisectbot-Kind"] == kind


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"to": ()}, "no recipient in To"),
        ({"message_id": "no brackets@x"}, "Message-ID 'no brackets@x'"),
        ({"in_reply_to": "<a b@c>"}, "Message-ID '<a b@c>'"),
        ({"in_reply_to": "<a@b>", "references": ("<x@y>\r\nBcc: all@example.org",)}, "Message-ID"),
    ],
)
def test_refusals(changes: dict[str, object], says: str):
    with pytest.raises(UserError, match=says):
        compose(letter(**changes), IDENTITY, NOW)


@pytest.mark.parametrize("address", ["", "a", "a@", "a b@c.d", "a@b\r\nBcc: c@d", "ä@b.c", "<a@b>", "a@b,c@d"])
def test_addresses_that_could_break_a_dialogue(address: str):
    with pytest.raises(UserError, match="not a plain local@domain"):
        Mailbox(address)


def test_reply_subject():
    assert reply_subject("[PATCH] x") == "Re: [PATCH] x"
    assert reply_subject("RE: [PATCH] x") == "RE: [PATCH] x"
