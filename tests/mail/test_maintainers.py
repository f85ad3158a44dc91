"""MAINTAINERS, on a file made up for these tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.mail import maintainers
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.maintainers import _Regex

TEXT = """\
List of maintainers
===================

	M: *Mail* patches to: FullName <address@domain>
	F: *Files* and directories wildcard patterns.

Maintainers List
----------------

ALMANAC FILE SYSTEM
M:	Ada Lovelace <ada@old.example>
R:	Grace Hopper <grace@example.net>
L:	almanac@lists.example.net (moderated for non-subscribers)
L:	almanac-core@lists.example.net (subscribers-only)
L:	The Almanac Team <team@example.com>
S:	Maintained
F:	fs/almanac/
F:	include/linux/almanac*
X:	fs/almanac/vendor/
K:	\\balmanac_[a-z]+\\b

FILE SYSTEMS
M:	"Turing, Alan" <alan@example.org>
M:	vfs@example.org
L:	fsdevel@lists.example.net
S:	Supported
F:	fs/*
F:	include/linux/fs
F:	Documentation/*/fs?.rst

PARTS OF EVERYTHING
M:	Alan Turing <turing@work.example>
M:	Alan Turing <alan@example.org>
S:	Odd Fixes
N:	part[0-9]   # a comment, as in the file's Perl regular expressions
N:	(unclosed

THE REST
M:	Linus Torvalds <torvalds@linux-foundation.org>
L:	everything@lists.example.net
S:	Buried alive in reporters
F:	*
F:	*/
"""
MAILMAP = "Ada King <ada@example.org> <ada@old.example>\n# a comment\nAlan M. Turing <turing@work.example>\n"


@pytest.fixture(scope="module")
def kernel() -> maintainers.Maintainers:
    return maintainers.parse(TEXT, mailmap=MAILMAP)


@pytest.mark.parametrize(
    ("file", "sections"),
    [
        ("fs/almanac/inode.c", ["ALMANAC FILE SYSTEM", "THE REST"]),
        ("fs/almanac/deep/inode.c", ["ALMANAC FILE SYSTEM", "THE REST"]),
        ("fs/almanac/vendor/x.c", ["THE REST"]),
        ("fs/inode.c", ["FILE SYSTEMS", "THE REST"]),
        ("fs/other/inode.c", ["THE REST"]),
        ("include/linux/almanac_fs.h", ["ALMANAC FILE SYSTEM", "THE REST"]),
        ("include/linux/almanac/x.h", ["THE REST"]),
        ("include/linux/fs.h", ["FILE SYSTEMS", "THE REST"]),
        ("include/linux/fs/x.h", ["FILE SYSTEMS", "THE REST"]),
        ("include/linux/fsnotify/x.h", ["THE REST"]),
        ("Documentation/admin/fs1.rst", ["FILE SYSTEMS", "THE REST"]),
        ("Documentation/admin/fs12.rst", ["THE REST"]),
        ("lib/part7.c", ["PARTS OF EVERYTHING", "THE REST"]),
        ("fs/part7.c", ["FILE SYSTEMS", "PARTS OF EVERYTHING", "THE REST"]),
        ("Makefile", ["THE REST"]),
    ],
)
def test_sections_of_a_file_most_specific_first(kernel: maintainers.Maintainers, file: str, sections: list[str]):
    assert list(kernel.concerned([file]).sections) == sections


def test_people_and_lists(kernel: maintainers.Maintainers):
    found = kernel.concerned(["fs/almanac/inode.c", "fs/inode.c"])
    assert found.people == (
        Mailbox("ada@example.org", "Ada King"),
        Mailbox("grace@example.net", "Grace Hopper"),
        Mailbox("alan@example.org", "Turing, Alan"),
        Mailbox("vfs@example.org"),
    )
    assert [box.address for box in found.lists] == [
        "almanac@lists.example.net",
        "fsdevel@lists.example.net",
        "everything@lists.example.net",
    ]


def test_nobody_is_named_twice(kernel: maintainers.Maintainers):
    people = kernel.concerned(["lib/part7.c"]).people
    assert people == (Mailbox("turing@work.example", "Alan M. Turing"), Mailbox("alan@example.org", "Alan Turing"))
    both = maintainers.parse("X\nM:\tA B <a@example.org>\nM:\tA B <b@example.org>\nF:\tx/\n").concerned(["x/y"]).people
    assert both == (Mailbox("a@example.org", "A B"),)


def test_keywords_of_a_patch(kernel: maintainers.Maintainers):
    text = "mm: call the right hook\n\n+\talmanac_open(inode);\n"
    assert kernel.concerned(["mm/slub.c"], text).sections == ("ALMANAC FILE SYSTEM", "THE REST")
    assert kernel.concerned(["mm/slub.c"], "almanacs").sections == ("THE REST",)


def test_the_section_of_more_files_comes_first_among_equals():
    text = "A\nM:\ta@example.org\nF:\ta/\n\nB\nM:\tb@example.org\nF:\tb/\n"
    assert maintainers.parse(text).concerned(["a/1", "b/1", "b/2"]).sections == ("B", "A")


def test_what_cannot_be_read_is_told(kernel: maintainers.Maintainers):
    (problem,) = kernel.problems
    assert problem.startswith("MAINTAINERS, PARTS OF EVERYTHING: pattern '(unclosed'")


PATTERNS = [
    r"(?:\b|_)bpf(?:\b|_)", r"\b(?i:clang|llvm)\b", r"[gG]oogle.?[tT]ensor", r"(devm_)?gpio_(un)?register",
    r"bcm[9]?47622", r"bcm283*", r"(?i)pidfd", r"a|bc", r"x{2,3}yz", r"\x41bc", r"ab?c", r"((a|b)c)+d",
    r"w(x(y|z)?)*v", r"fu[57]40", r"^.*/vdso/[^/]*getrandom[^/]+$", r"so\.h|struct\s+so", r"a b c", r"[]a]b",
    r"a\ b", r"\d\d{3}end",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.data())
def test_no_match_is_lost_by_looking_for_a_literal_first(pattern: str, data: st.DataObject):
    regex = _Regex.parse(pattern)
    text = data.draw(st.from_regex(regex.regex))
    assert regex.found_in(text)


def test_bindings_name_people_of_their_own(kernel: maintainers.Maintainers):
    file = "Documentation/devicetree/bindings/clock/engine.yaml"
    text = "title: x\n\nmaintainers:\n  - Charles Babbage <charles@example.org>\n  - ada@old.example\n\nproperties:\n"
    people = kernel.concerned([file], contents={file: text}).people
    assert people == (Mailbox("charles@example.org", "Charles Babbage"), Mailbox("ada@example.org", "Ada King"))
    assert kernel.concerned(["other.yaml"], contents={"other.yaml": text}).people == ()


@pytest.mark.parametrize("text", ["", "no sections\nat all\n", "F:\tno/title/\n"])
def test_files_without_sections(text: str):
    assert maintainers.parse(text).concerned(["no/title/x"]).people == ()
