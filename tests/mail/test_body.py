"""The text of a mail."""

from __future__ import annotations

import quopri

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail import body

PATCH = """\
diff --git a/mm/slub.c b/mm/slub.c
index 0123456789ab..ba9876543210 100644
--- a/mm/slub.c
+++ b/mm/slub.c
@@ -1,3 +1,3 @@ static void flush(void)
 keep
-out

+in
"""


def test_a_diff_is_quoted_and_nothing_else():
    text = f"The commit:\n\n{PATCH}\n-- \nregards\n"
    quoted = "".join(f"| {line}" for line in PATCH.splitlines(keepends=True))
    assert body.clean(text) == f"The commit:\n\n{quoted}\n-- \nregards\n"


@pytest.mark.parametrize(
    "text",
    [
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        "Index: f\n--- f\n+++ f\n",
        "@@ -1,2 +3,4 @@\n a\n",
        PATCH * 2,
        PATCH.replace("\n", "\r\n"),
    ],
)
def test_no_line_of_a_diff_is_left_at_column_0(text: str):
    cleaned = body.clean(text)
    assert all(line.startswith("| ") for line in cleaned.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "---------------- ---------------------------\n         %stddev     %change         %stddev\n",
        "--- a line of dashes and no diff\n",
        "-------------------------------------------------------------------------------------------------->\n",
        "  diff --git a/f b/f\n",
        "-- \nfooter\n",
        "@@ nonsense @@\n",
    ],
)
def test_what_is_no_diff_stays(text: str):
    assert body.clean(text) == text


@given(st.text(st.characters(), max_size=300))
def test_cleaning_twice_changes_nothing_more(text: str):
    once = body.clean(text)
    assert body.clean(once) == once
    assert once.endswith("\n")
    once.encode()


def test_control_characters_and_line_ends():
    assert body.clean("a\x00b\x1b[31mc\td\r\ne\rf\ud800\n\n\n") == "a\ufffdb\ufffd[31mc\td\ne\nf\ufffd\n"


def test_transfer_encodings():
    assert body.encode("plain\n")[0] == "7bit"
    assert body.encode("3481 ±  9%\n") == ("8bit", "3481 ±  9%\n".encode())
    encoding, octets = body.encode("x" * 999 + "\n")
    assert encoding == "quoted-printable"
    assert quopri.decodestring(octets).decode() == "x" * 999 + "\n"
    assert max(map(len, octets.split(b"\n"))) <= 76
