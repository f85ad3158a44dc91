"""Leaving with one click."""

from __future__ import annotations

import email
import email.policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail import unsubscribe
from bisectbot.mail.message import compose
from tests.mail.letters import IDENTITY, NOW, letter

SECRET = b"0123456789abcdef"


def test_a_token_names_one_address():
    token = unsubscribe.token("Ada@Example.org", SECRET)
    assert unsubscribe.address_of(token, SECRET) == "ada@example.org"
    assert "/" not in token
    assert "=" not in token


@given(st.text(max_size=60))
def test_made_up_tokens_name_nobody(text: str):
    assert unsubscribe.address_of(text, SECRET) is None


@pytest.mark.parametrize("position", [0, 5, 30])
def test_changed_tokens_name_nobody(position: int):
    token = unsubscribe.token("ada@example.org", SECRET)
    changed = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
    assert unsubscribe.address_of(changed, SECRET) is None
    assert unsubscribe.address_of(token, b"another secret") is None


def test_only_the_unsubscribe_headers_of_a_personal_copy_differ():
    raw = bytes(compose(letter(), IDENTITY, NOW))
    copy = unsubscribe.personal_copy(raw, "https://bisectbot.example.org/unsubscribe/" + "t" * 90)
    before, after = (email.message_from_bytes(octets, policy=email.policy.default) for octets in (raw, copy))
    assert raw.partition(b"\r\n\r\n")[2] == copy.partition(b"\r\n\r\n")[2]
    kept = [name for name in after if not name.startswith("List-Unsubscribe")]
    assert kept == [name for name in before if not name.startswith("List-Unsubscribe")]
    assert all(before[name] == after[name] for name in kept)
    assert after["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "mailto:" in after["List-Unsubscribe"]
