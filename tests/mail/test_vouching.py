"""Authentication-Results: believed of our own server, in one header, about the sender's domain; nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail.vouching import vouched_by

SERVER, ADA = "mx.example.org", "Ada@Example.org"
GOOD = f"{SERVER}; dkim=pass header.d=example.org"


def mail(*results: str, sender: str = f"From: Ada <{ADA}>\n") -> bytes:
    lines = "".join(f"Authentication-Results: {result}\n" for result in results)
    return f"{lines}{sender}Subject: hello\n\n#bisectbot status\n".encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    "result",
    [
        GOOD,
        f"{SERVER} 1; DKIM=Pass header.D=EXAMPLE.org",
        "MX.example.ORG;\n\tspf=fail smtp.mailfrom=evil.net;\n\tdkim=pass (2048-bit key; ok)\n\theader.d=example.org",
        f"{SERVER}; dkim=fail header.d=evil.example; dkim=pass header.i=@example.org header.b=abc",
        f"{SERVER}; dmarc=pass (p=reject) header.from=example.org",
        f'{SERVER}; dkim = pass reason="good; (really)" header.d = example.org',
    ],
)
def test_our_own_server_is_believed(result: str) -> None:
    assert vouched_by(mail(result), ADA, SERVER)
    assert vouched_by(mail("other.example; dkim=fail header.d=example.org", result), ADA, SERVER)


@pytest.mark.parametrize(
    "result",
    [
        "evil.example; dkim=pass header.d=example.org",  # anybody's
        f"{SERVER}.evil.example; dkim=pass header.d=example.org",
        f"evil.example ({SERVER}); dkim=pass header.d=example.org",
        f"evil.example; {SERVER}; dkim=pass header.d=example.org",
        f"{SERVER}; none",
        f"{SERVER}",
        "",
        f"{SERVER}; dkim=fail header.d=example.org",
        f"{SERVER}; dkim=passed header.d=example.org",
        f"{SERVER}; dkim=none (dkim=pass header.d=example.org)",
        f"{SERVER}; spf=pass smtp.mailfrom=ada@example.org",  # the envelope is not who writes
        f"{SERVER}; dkim=pass header.d=evil.example",
        f"{SERVER}; dkim=pass header.d=org",
        f"{SERVER}; dkim=pass header.d=notexample.org",
        f"{SERVER}; dkim=pass header.d=evil.example header.d=example.org",
        f"{SERVER}; dkim=pass header.d=evil.example header.i=@example.org",
        f"{SERVER}; dmarc=pass header.from=evil.example",
        f"{SERVER}; dkim=pass; header.d=example.org",
        f'{SERVER}; spf=pass smtp.mailfrom="x; dkim=pass header.d=example.org "@evil.example',
        f'{SERVER}; spf=pass smtp.mailfrom="x\\"; dkim=pass header.d=example.org "@evil.example',
        f"{SERVER}; spf=pass (x; dkim=pass header.d=example.org; (y) z)",
        f"{SERVER}; spf=pass (x \\) ; dkim=pass header.d=example.org ; y)",
        f'{SERVER}; dkim=pass header.d=example.org; spf=pass smtp.mailfrom="never ends',
        f"{SERVER}; dkim=pass header.d=example.org (never ends",
    ],
)
def test_nothing_else_is_believed(result: str) -> None:
    assert not vouched_by(mail(result), ADA, SERVER)


def test_a_second_header_in_our_server_s_name_is_a_forgery_and_neither_counts() -> None:
    assert not vouched_by(mail(f"{SERVER}; dkim=fail header.d=example.org", GOOD), ADA, SERVER)
    assert not vouched_by(mail(GOOD, f"{SERVER}; none"), ADA, SERVER)
    assert vouched_by(mail("evil.example; none", GOOD), ADA, SERVER)


def test_a_mail_with_two_senders_has_none() -> None:
    assert not vouched_by(mail(GOOD, sender=f"From: {ADA}\nFrom: eve@evil.example\n"), ADA, SERVER)


@given(st.text(max_size=200))
def test_no_text_in_quotes_or_comments_vouches_for_anybody(text: str) -> None:
    inner = text.replace("\\", "").replace('"', "").replace("(", "").replace(")", "").replace("\n", " ")
    inner = "".join(inner.split("\r")) + "; dkim=pass header.d=example.org"
    assert not vouched_by(mail(f'{SERVER}; spf=pass smtp.mailfrom="{inner}"@evil.example'), ADA, SERVER)
    assert not vouched_by(mail(f"{SERVER}; spf=pass ({inner})"), ADA, SERVER)


@given(st.binary(max_size=300))
def test_no_octets_make_it_fail(octets: bytes) -> None:
    assert vouched_by(b"Authentication-Results: " + octets, ADA, SERVER) in {True, False}
