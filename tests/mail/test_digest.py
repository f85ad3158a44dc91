"""The weekly digest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bisectbot.mail import digest, gate
from bisectbot.mail.digest import Entry
from bisectbot.mail.message import Kind
from bisectbot.mail.policy import DAY
from tests.mail.letters import NOW, letter

GOLDEN = Path(__file__).parents[1] / "golden" / "mail" / "digest.txt"
ENTRIES = [
    Entry(
        "93b7d0a2c4" * 4,
        "mm/slub: keep partial slabs",
        "linux-next:master",
        "wis.ops",
        "icl-2sp2",
        -0.6,
        0.91,
        "https://b.example.org/S1",
    ),
    Entry("1" * 40, "x" * 70, "linux-next:master", "aim9.exec_test", "ivb-2ep2", 1.2, 0.97),
    Entry("2" * 40, "net: shorter path", "linus:master", "netperf.tps", "icl-2sp2"),
]


def test_golden():
    written = digest.write(ENTRIES, NOW)
    assert written is not None
    assert (written.key, written.subject) == (
        "digest/2023-46",
        "bisectbot digest of week 46 of 2023: 3 changes below the bar",
    )
    assert written.body == GOLDEN.read_text(encoding="utf-8")
    assert gate.reasons_to_hold(letter(kind=Kind.DIGEST, subject=written.subject, body=written.body)) == ()


def test_nothing_to_tell_is_no_mail():
    assert digest.write([], NOW) is None


def test_a_busy_week_stays_readable():
    many = [replace(ENTRIES[0], commit=f"{n:040x}", tree=f"tree{n % 3}:x") for n in range(1000)]
    written = digest.write(many, NOW)
    assert written is not None
    assert len(written.body.splitlines()) < 3 * digest.MOST_LINES + 20
    assert "and 134 more" in written.body
    assert gate.reasons_to_hold(letter(subject=written.subject, body=written.body)) == ()


def test_weekly():
    assert digest.is_due(None, NOW)
    assert not digest.is_due(NOW - 6.9 * DAY, NOW)
    assert digest.is_due(NOW - 7 * DAY, NOW)
