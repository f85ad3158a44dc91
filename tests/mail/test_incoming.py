"""What came in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail.bounces import Bounce, outbox_of, suppressed
from bisectbot.mail.incoming import Sort, read
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import compose
from bisectbot.mail.smtp import return_path
from tests.mail import arrivals
from tests.mail.letters import IDENTITY, NOW, letter

SAMPLES = [value for name, value in vars(arrivals).items() if name.isupper() and name != "REPORT_ID"]


def test_an_answer_with_commands_and_a_patch():
    mail = read(arrivals.ANSWER.encode(), IDENTITY)
    assert mail.sort is Sort.HUMAN
    assert mail.message_id == "<answer@example.org>"
    assert mail.sender == Mailbox("ada@example.org", "Ada Lövelace")
    assert (
        mail.subject == "Re: [linux-next:master] [mm/slub]  93b7d0a2c4:  will-it-scale.per_process_ops 3.2% regression"
    )
    assert mail.answers == (arrivals.REPORT_ID, "<patch@example.org>")
    assert mail.commands == ("test base=93b7d0a2c4", "status")
    assert mail.text.startswith("Thanks, that is ödd.\n\nDoes it go away with this?\n\n#bisectbot test")
    assert mail.patch.startswith("diff --git a/mm/slub.c b/mm/slub.c\n")
    assert mail.addressed
    assert not mail.wants_out
    assert [box.address for box in mail.recipients] == [
        "bot@bisectbot.example.org",
        "grace@example.net",
        "linux-mm@lists.example.net",
    ]


def test_people_on_lists_are_people():
    mail = read(arrivals.THROUGH_A_LIST.encode(), IDENTITY)
    assert (mail.sort, mail.text) == (Sort.HUMAN, "Agreed.")
    assert mail.answers == ("<answer@example.org>", arrivals.REPORT_ID)


def test_an_auto_reply_commands_nothing():
    mail = read(arrivals.VACATION.encode(), IDENTITY)
    assert (mail.sort, mail.commands, mail.text, mail.bounces) == (Sort.AUTOMATIC, (), "", ())


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied (vacation)",
        "Auto-Submitted: auto-generated",
        "Precedence: auto_reply",
        "Precedence: bulk",
        "Precedence: junk",
        "X-Autoreply: yes",
        "X-Loop: somebody@example.org",
        "X-List-Administrivia: yes",
        "X-Bisectbot-Kind: report",
        "Return-Path: <>",
        "From: Mail Delivery <MAILER-DAEMON@example.org>",
        "From: linux-mm-owner@lists.example.net",
        "From: nobody at all",
        "From: no-reply@example.org",
        "Subject: Automatic reply: regression",
        "Content-Type: multipart/report; report-type=disposition-notification; boundary=x",
    ],
)
def test_machines_are_told_from_people(header: str):
    name = header.partition(":")[0]
    lines = ["From: Ada <ada@example.org>", "Subject: x", "Message-ID: <a@example.org>"]
    human = "\n".join([*lines, "", "#bisectbot status", ""])
    assert read(human.encode(), IDENTITY).commands == ("status",)
    kept = [line for line in lines if not line.startswith(f"{name}:")]
    machine = "\n".join([*kept, header, "", "#bisectbot status", ""])
    mail = read(machine.encode(), IDENTITY)
    assert (mail.sort, mail.commands) == (Sort.AUTOMATIC, ())


def test_auto_submitted_no_is_a_person():
    assert read(b"From: a@example.org\nAuto-Submitted: no\n\nhi\n", IDENTITY).sort is Sort.HUMAN


def test_our_own_mail_never_loops():
    raw = bytes(compose(letter(), IDENTITY, NOW))
    assert read(raw, IDENTITY).sort is Sort.OWN
    listed = raw.replace(b"From: bisectbot <bot@bisectbot.example.org>", b"From: bisectbot via list <list@example.net>")
    assert read(listed, IDENTITY).sort is Sort.OWN


def test_another_installations_mail_is_a_machine():
    other = bytes(compose(letter(), IDENTITY, NOW)).replace(b"bisectbot.example.org", b"other.example.com")
    assert read(other, IDENTITY).sort is Sort.AUTOMATIC


@pytest.mark.parametrize("text", [arrivals.POSTFIX_BOUNCE, arrivals.WHOLE_LETTER_BOUNCE], ids=["headers", "letter"])
def test_a_bounce_names_letter_row_and_the_address_we_wrote_to(text: str):
    mail = read(text.encode(), IDENTITY)
    assert (mail.sort, mail.outbox) == (Sort.BOUNCE, 7)
    failed, delayed = mail.bounces
    assert failed == Bounce(
        "grace@example.net",
        "failed",
        "5.1.1",
        "550 5.1.1 <new@example.net>: Recipient address rejected: User unknown",
        arrivals.REPORT_ID,
    )
    assert failed.hard
    assert (delayed.address, delayed.action, delayed.hard) == ("ada@example.org", "delayed", False)


def test_an_old_bounce_is_known_by_the_address_it_came_to():
    mail = read(arrivals.PLAIN_BOUNCE.encode(), IDENTITY)
    assert (mail.sort, mail.outbox, mail.bounces, mail.commands) == (Sort.BOUNCE, 7, (), ())
    elsewhere = arrivals.PLAIN_BOUNCE.replace("To: bounce+7@", "To: bounce+x@")
    assert read(elsewhere.encode(), IDENTITY, delivered_to="bounce+8@bisectbot.example.org").outbox == 8
    assert read(elsewhere.encode(), IDENTITY).sort is Sort.AUTOMATIC


def test_the_return_path_is_understood_again():
    assert outbox_of([return_path(123, IDENTITY.domain)], IDENTITY) == 123
    assert outbox_of(["bounce+123@elsewhere.example.org", "bounce+@bisectbot.example.org"], IDENTITY) is None


def bounce(address: str, letter: str, action: str = "failed", status: str = "5.1.1") -> Bounce:
    return Bounce(address, action, status, letter=letter)


@pytest.mark.parametrize(
    ("history", "gone"),
    [
        ([bounce("a@x.y", "<1@x>")], set()),
        ([bounce("a@x.y", "<1@x>"), bounce("a@x.y", "<1@x>")], set()),
        ([bounce("a@x.y", "<1@x>"), bounce("A@x.y", "<2@x>")], {"a@x.y"}),
        ([bounce("a@x.y", ""), bounce("a@x.y", "")], {"a@x.y"}),
        ([bounce("a@x.y", "<1@x>", status="4.2.2"), bounce("a@x.y", "<2@x>")], set()),
        ([bounce("a@x.y", "<1@x>", action="delayed"), bounce("a@x.y", "<2@x>")], set()),
        ([bounce("a@x.y", "<1@x>"), bounce("a@x.y", "<3@x>", "delivered", "2.0.0"), bounce("a@x.y", "<2@x>")], set()),
        ([bounce("a@x.y", "<1@x>"), bounce("b@x.y", "<2@x>")], set()),
    ],
)
def test_two_hard_bounces_suppress_an_address(history: list[Bounce], gone: set[str]):
    assert suppressed(history) == gone


def test_unsubscribing_by_mail():
    assert read(b"From: a@example.org\nSubject: Unsubscribe\n\n", IDENTITY).wants_out
    assert not read(b"From: a@example.org\nSubject: Re: unsubscribe\n\n", IDENTITY).wants_out
    assert not read(b"From: a@example.org\nSubject: unsubscribe\nAuto-Submitted: auto-replied\n\n", IDENTITY).wants_out


def test_at_most_three_commands():
    text = "#bisectbot status\n" * 5 + "  #bisectbot indented\n#bisectbots\n"
    assert len(read(f"From: a@example.org\n\n{text}".encode(), IDENTITY).commands) == 3


def test_the_colon_of_other_robots_is_understood():
    assert read(b"From: a@example.org\n\n#bisectbot test: base=x\n", IDENTITY).commands == ("test base=x",)


ALTERNATIVE = """\
From: a@example.org
Content-Type: multipart/mixed; boundary=o

--o
Content-Type: multipart/alternative; boundary=i

--i
Content-Type: text/plain; charset=no-such-charset

plain
--i
Content-Type: text/html

<p>#bisectbot pause</p>
--i--
--o
Content-Type: text/x-patch
Content-Disposition: attachment; filename=a.patch

From: Ada
---
diff --git a/x b/x
--o
Content-Type: message/rfc822

From: b@example.org

#bisectbot pause
--o--
"""


def test_only_the_writers_plain_text_speaks():
    mail = read(ALTERNATIVE.encode(), IDENTITY)
    assert (mail.text, mail.commands) == ("plain", ())
    assert mail.patch.startswith("diff --git a/x b/x")


@given(st.binary(max_size=400))
def test_nothing_that_arrives_breaks_the_reader(raw: bytes):
    read(raw, IDENTITY)


@given(st.data())
def test_damaged_mails_do_not_break_it_either(data: st.DataObject):
    raw = bytearray(data.draw(st.sampled_from(SAMPLES)).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(raw)))
        raw[start : start + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=10))
    read(bytes(raw), IDENTITY)
