"""DKIM."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bisectbot.errors import UserError
from bisectbot.mail.message import compose
from bisectbot.mail.signing import Dkim, DnsLookup, vouched_for
from bisectbot.mail.smtp import Envelope, Recipient, Result, deliver
from bisectbot.mail.unsubscribe import personal_copy
from tests.mail.letters import IDENTITY, NOW, letter
from tests.mail.servers import Script, smtp_server

RAW = bytes(compose(letter(), IDENTITY, NOW))


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def signer(key: rsa.RSAPrivateKey, tmp_path: Path) -> Dkim:
    file = tmp_path / "dkim.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return Dkim("bisectbot.example.org", "s1", file)


def verified(raw: bytes, key: rsa.RSAPrivateKey) -> bool:
    """Whether a receiver that finds the public key in DNS takes the signature."""
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    def dns(name: bytes, timeout: int = 5) -> bytes | None:
        record = b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)
        return record if name == b"s1._domainkey.bisectbot.example.org." else None

    return bool(dkim.verify(raw, dnsfunc=dns))


def test_receivers_can_verify(signer: Dkim, key: rsa.RSAPrivateKey):
    assert verified(signer.sign(RAW), key)


def test_a_personal_copy_is_signed_with_its_link(signer: Dkim, key: rsa.RSAPrivateKey):
    copy = signer.sign(personal_copy(RAW, "https://bisectbot.example.org/unsubscribe/t"))
    assert verified(copy, key)
    covered = re.sub(rb"\s", b"", re.search(rb"h=([^;]*)", copy)[1].lower()).split(b":")  # type: ignore[index]
    assert {b"list-unsubscribe", b"list-unsubscribe-post", b"message-id"} <= set(covered)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"3.2% regression of", b"9.9% regression of"),
        (b"Subject: [", b"Subject: x["),
        (b"Auto-Submitted: auto-generated", b"Auto-Submitted: no"),
        (b"\r\nTo: ", b"\r\nFrom: forged@example.org\r\nTo: "),
    ],
)
def test_changes_are_seen(signer: Dkim, key: rsa.RSAPrivateKey, old: bytes, new: bytes):
    signed = signer.sign(RAW)
    assert old in signed
    assert not verified(signed.replace(old, new), key)


@pytest.mark.parametrize("hidden", ["", "8BITMIME"])
def test_what_arrives_verifies(signer: Dkim, key: rsa.RSAPrivateKey, hidden: str):
    script = Script(hidden=hidden)
    people = (Recipient("ada@example.org", "https://bisectbot.example.org/unsubscribe/t"), Recipient("l@example.net"))
    with smtp_server(script) as settings:
        outcome = deliver(RAW, Envelope("bounce+1@example.org", people), replace(settings, dkim=signer))
    assert outcome.result is Result.SENT
    assert len(script.received) == 2
    assert all(verified(received.raw, key) for received in script.received)


@pytest.mark.parametrize("content", [None, "no key\n"])
def test_an_unusable_key_stops_before_anything_is_sent(tmp_path: Path, content: str | None):
    file = tmp_path / "dkim.pem"
    if content is not None:
        file.write_text(content)
    script = Script()
    with smtp_server(script) as settings, pytest.raises(UserError, match=r"DKIM key .*dkim\.pem"):
        deliver(
            RAW,
            Envelope("b@example.org", (Recipient("a@example.org"),)),
            replace(settings, dkim=Dkim("example.org", "s1", file)),
        )
    assert script.received == []


def dns_of(key: rsa.RSAPrivateKey) -> DnsLookup:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return lambda *_, **__: b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)


@pytest.mark.parametrize(
    ("domain", "address", "vouched"),
    [
        ("example.org", "ada@example.org", True),
        ("example.org", "ada@mail.example.org", True),
        ("example.org", "ada@notexample.org", False),
        ("mail.example.org", "ada@example.org", False),
        ("org", "ada@example.org", False),
        ("list.example.net", "ada@example.org", False),
    ],
)
def test_whose_domain_vouches_for_a_command(
    signer: Dkim, key: rsa.RSAPrivateKey, domain: str, address: str, vouched: bool
):
    raw = b"From: %s\r\nSubject: x\r\n\r\n#bisectbot status\r\n" % address.encode()
    signed = replace(signer, domain=domain).sign(raw)
    assert vouched_for(signed, address, dns_of(key)) is vouched
    assert not vouched_for(signed.replace(b"status", b"pause!"), address, dns_of(key))
    assert not vouched_for(b"From: operator@example.org\r\n" + signed, address, dns_of(key))


def test_half_a_signature_vouches_for_nothing(signer: Dkim, key: rsa.RSAPrivateKey):
    raw = b"From: ada@example.org\r\n\r\nhello\r\n"
    header = dkim.sign(raw, b"s1", b"example.org", signer.key_file.read_bytes(), length=True)
    assert not vouched_for(header + raw + b"#bisectbot pause\r\n", "ada@example.org", dns_of(key))
    assert not vouched_for(raw, "ada@example.org", dns_of(key))
