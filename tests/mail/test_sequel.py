"""What is written later in a report's thread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.mail import gate, sequel
from bisectbot.report import Direction, Machine, MailText
from tests.mail.letters import letter
from tests.report import samples

GOLDEN = Path(__file__).parents[1] / "golden" / "mail"
REPORT = samples.report()
FOUND = (
    replace(samples.finding(12.0, Direction.IMPROVEMENT), machine=Machine("8 threads 1 socket", "skl")),
    replace(samples.finding(-4.1), testcase="fsmark", stat="fsmark.files_per_sec", parameters=(("fs", "xfs"),)),
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("addendum", sequel.addendum(REPORT, FOUND)),
        (
            "correction",
            sequel.correction(REPORT, "A host ran with its fan blocked\nwhile the second side was measured."),
        ),
    ],
)
def test_golden(name: str, text: MailText):
    assert f"Subject: {text.subject}\n{text.body}" == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert gate.reasons_to_hold(letter(subject=text.subject, body=text.body)) == ()
