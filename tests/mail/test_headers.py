"""Header lines."""

from __future__ import annotations

import email
import email.policy
import re
from email.header import decode_header, make_header
from email.utils import getaddresses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail import headers
from bisectbot.mail.mailbox import Mailbox

TITLES = st.text(st.characters() | st.sampled_from(' =?_ü€😀"\\,()<>@\t\n\r\u2028:;'), max_size=500)


def parsed(block: str, name: str) -> str:
    """What another mail program makes of a header."""
    return str(email.message_from_bytes(block.encode("ascii") + b"\r\n", policy=email.policy.default)[name])


@given(TITLES)
def test_any_title_survives_in_seven_bits(title: str):
    block = headers.unstructured("Subject", title)
    assert block.isascii()
    assert parsed(block, "Subject") == headers.one_line(title)


@given(TITLES)
def test_lines_are_short_and_cannot_start_a_header_of_their_own(title: str):
    lines = headers.unstructured("Subject", title).split("\r\n")
    assert lines.pop() == ""
    assert max(map(len, lines)) <= 85
    assert all(line.startswith(" ") and line.strip() for line in lines[1:])
    assert not any(re.search(r"[\x00-\x1f\x7f-\x9f]", line) for line in lines)


def test_people_can_read_what_needs_no_encoding():
    block = headers.unstructured("Subject", "[mm]  0123456789:  größer 3.2% regression")
    assert block == "Subject: [mm]  0123456789: =?utf-8?q?_gr=C3=B6=C3=9Fer?= 3.2% regression\r\n"


def test_two_blanks_stay_two_when_a_line_is_folded():
    title = "[linux-next:master] [x86/acpi]  ec9aedb2aa:  aim9.exec_test.ops_per_sec_and_more 2.4% improvement"
    block = headers.unstructured("Subject", title)
    assert block.count("\r\n") == 2
    assert block.replace("\r\n", "") == f"Subject: {title}"


def test_a_title_that_looks_encoded_is_taken_literally():
    title = "fix =?utf-8?q?spoof?= in subjects"
    assert parsed(headers.unstructured("Subject", title), "Subject") == title


def test_five_hundred_characters_without_a_blank():
    title = "x" * 500
    assert parsed(headers.unstructured("Subject", title), "Subject") == title


@given(st.text(st.characters(), max_size=120))
def test_any_name_survives(name: str):
    block = headers.mailboxes("To", [Mailbox("a@example.org", name), Mailbox("b@example.org")])
    assert block.isascii()
    # The older parser: the newer one, up to Python 3.12, keeps blanks between the encoded words of a name.
    (first, address), second = getaddresses([block.removeprefix("To:").replace("\r\n", "")])
    assert (address, second) == ("a@example.org", ("", "b@example.org"))
    assert str(make_header(decode_header(first))) == re.sub(" +", " ", headers.one_line(name))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Ada Lovelace", "Ada Lovelace <a@example.org>"),
        ("Lovelace, Ada", '"Lovelace, Ada" <a@example.org>'),
        ('Ada "Countess" L.', '"Ada \\"Countess\\" L." <a@example.org>'),
        ("Adå", "=?utf-8?q?Ad=C3=A5?= <a@example.org>"),
        ("", "a@example.org"),
    ],
)
def test_names(name: str, written: str):
    assert headers.mailboxes("To", [Mailbox("a@example.org", name)]) == f"To: {written}\r\n"


def test_many_recipients_are_folded_between_them():
    block = headers.mailboxes("Cc", [Mailbox(f"person{n}@example.org", f"Person Number{n}") for n in range(12)])
    lines = block.rstrip().split("\r\n")
    assert len(lines) > 5
    assert max(map(len, lines)) <= 78
    assert all(line.endswith(",") for line in lines[:-1])
