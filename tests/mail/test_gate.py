"""The last look at a letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.mail.gate import Contents, Sample, reasons_to_hold
from bisectbot.mail.mailbox import Mailbox
from tests.mail.letters import BODY, letter

GOLDEN_REPORTS = sorted((Path(__file__).parents[1] / "golden" / "report").glob("*.txt"))


def test_a_sound_letter_may_leave():
    assert reasons_to_hold(letter(), Contents((2,), (Sample("parent", 4, 4),))) == ()


@pytest.mark.parametrize("file", GOLDEN_REPORTS, ids=lambda file: file.stem)
def test_what_the_report_room_writes_may_leave(file: Path):
    subject, _, text = file.read_text(encoding="utf-8").partition("\n")
    assert reasons_to_hold(letter(subject=subject.removeprefix("Subject: "), body=text)) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bisectbot noticed a {{ change }}", "unresolved template mark '{{' in the body"),
        ("| Closes: https://{archive}/${message_id}", "unresolved template mark '${message_id}' in the body"),
        ("{% endif %}", "unresolved template mark '{%' in the body"),
        ("a %(change)s of", "unresolved template mark '%(change)s' in the body"),
        ("a nan% regression", "'nan%' where a number belongs, in the body"),
        ("      12.3          +inf%      0.0        x.y", "'+inf%' where a number belongs, in the body"),
        ("", "empty body"),
        ("x" * 64001, "body of 64002 octets, more than 64000"),
        ("| Reported-by: kernel test robot <x@example.org>", "names another robot: 'kernel test robot'"),
        ("0-DAY CI Kernel Test Service", "names another robot: '0-DAY'"),
        ("https://download.01.org/archive", "names another robot: '01.org'"),
        ("Results are based on internal Intel analysis", "names Intel in its own words, line 1 of the body"),
    ],
)
def test_what_is_held(text: str, reason: str):
    assert reasons_to_hold(letter(body=text)) == (reason,)


@pytest.mark.parametrize(
    "text",
    [
        'commit: 93b7d0a2c4 ("drm: fix Intel {{0}} macros\n        and nan handling")',
        "test machine: 64 threads Intel(R) Xeon(R) Gold",
        "  smpboot: CPU0: Intel(R) Xeon(R)",
        "  intel_pstate: Intel P-state driver initializing",
        "      12.3          +2.0%      12.5        turbostat.nan.x",
        "banana, info, 30days",
    ],
)
def test_what_is_only_quoted(text: str):
    assert reasons_to_hold(letter(body=text)) == ()


def test_a_table_without_rows_is_seen_in_the_text():
    head, _, _ = BODY.partition("     53965")
    (reason,) = reasons_to_hold(letter(body=f"{head}\n\n-- \nfooter\n"))
    assert reason == "the table at line 12 of the body has no rows"
    (reason,) = reasons_to_hold(letter(body=head))
    assert reason == "the table at line 12 of the body has no rows"


def test_the_line_is_named():
    text = 'commit: 93b7d0a2c4 ("x86: Intel\n        quirks")\ntest machine: Intel(R)\n\nBy Intel.\n'
    assert reasons_to_hold(letter(body=text)) == ("names Intel in its own words, line 5 of the body",)


def test_public_mails_of_another_robot_are_all_held():
    """Those beside the checkout, where they are."""
    for file in (Path(__file__).parents[2].parent / "shared" / "lkp" / "reports").glob("*.txt"):
        text = file.read_text(encoding="utf-8", errors="replace").partition("\n\n")[2]
        reasons = " ".join(reasons_to_hold(letter(body=text)))
        assert "names another robot" in reasons, file
        assert "no rows" not in reasons, file


def test_promises_are_kept():
    contents = Contents((3, 0), (Sample("parent", 4, 4), Sample("culprit", 4, 3)))
    assert reasons_to_hold(letter(), contents) == (
        "table 2 of 2 is empty",
        "culprit: 3 samples where 4 were promised",
    )


def test_subject_and_recipients():
    many = tuple(Mailbox(f"p{n}@example.org") for n in range(12))
    assert reasons_to_hold(letter(subject=" \n ", cc=many)) == ("empty subject", "13 recipients, more than 12")
    assert reasons_to_hold(letter(cc=(Mailbox("oe-lkp@lists.example.org"),))) == (
        "another robot's address among the recipients: oe-lkp@lists.example.org",
    )
    assert reasons_to_hold(letter(to=())) == ("nobody in To",)


def test_developers_at_any_company_are_no_robots():
    assert reasons_to_hold(letter(to=(Mailbox("jane@intel.com", "Jane"),))) == ()
