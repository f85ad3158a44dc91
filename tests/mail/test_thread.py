"""Where a letter belongs."""

from __future__ import annotations

import pytest

from bisectbot.mail.message import choose_message_id, compose
from bisectbot.mail.thread import Thread, follow_up, patch_thread
from tests.mail.letters import IDENTITY, NOW, letter


@pytest.mark.parametrize(
    ("trailers", "found"),
    [
        ("Link: https://lore.kernel.org/r/20231101.1-ada@example.org", "<20231101.1-ada@example.org>"),
        ("Link: https://lore.kernel.org/all/20231101.1-ada@example.org/", "<20231101.1-ada@example.org>"),
        ("Link: https://lore.kernel.org/linux-mm/20231101.1-ada@example.org/", "<20231101.1-ada@example.org>"),
        ("Link: https://lkml.kernel.org/r/20231101.1-ada@example.org", "<20231101.1-ada@example.org>"),
        ("Link: https://patch.msgid.link/20231101.1-ada@example.org", "<20231101.1-ada@example.org>"),
        ("Link: https://lore.kernel.org/r/a%2Bb%3D1@example.org", "<a+b=1@example.org>"),
        ("Message-ID: <20231101.1-ada@example.org>", "<20231101.1-ada@example.org>"),
        ("Message-Id: 20231101.1-ada@example.org", "<20231101.1-ada@example.org>"),
        ("Link: https://lore.kernel.org/r/cover@x.y\nLink: https://lore.kernel.org/r/patch@x.y", "<patch@x.y>"),
        ("Link: https://patch.msgid.link/patch@x.y\nLink: https://lore.kernel.org/r/talk@x.y", "<patch@x.y>"),
        ("Reported-by: B <b@x.y>\nLink: https://lore.kernel.org/r/bug@x.y", None),
        ("Closes: https://lore.kernel.org/r/bug@x.y", None),
        (
            "Reported-by: B <b@x.y>\nLink: https://lore.kernel.org/r/bug@x.y\nLink: https://lore.kernel.org/r/p@x.y",
            "<p@x.y>",
        ),
        ("Link: https://lore.kernel.org/r/talk@x.y [1]", None),
        ("Link: https://lore.kernel.org/r/talk@x.y/T/#u", None),
        ("Link: https://bugzilla.example.org/1", None),
        ("Link: https://evil.example/r/a@b", None),
        ("", None),
    ],
)
def test_the_mail_that_a_commit_came_in(trailers: str, found: str | None):
    thread = patch_thread(f"subject\n\ntext\n\n{trailers}\nSigned-off-by: Ada <ada@example.org>\n")
    assert thread == (Thread(found) if found else None)


def test_what_follows_a_letter_is_in_its_thread():
    patch = Thread("<patch@x.y>")
    report = bytes(compose(letter(in_reply_to=patch.in_reply_to), IDENTITY, NOW))
    thread = follow_up(report)
    own = choose_message_id(letter().key, IDENTITY, NOW)
    assert thread == Thread(own, ("<patch@x.y>",))
    second = compose(letter(key="x", in_reply_to=thread.in_reply_to, references=thread.references), IDENTITY, NOW)
    assert second["In-Reply-To"] == own
    assert second["References"] == f"<patch@x.y> {own}"
