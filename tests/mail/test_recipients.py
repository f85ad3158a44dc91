"""Who is concerned by a commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisectbot.mail import maintainers
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.recipients import Commit, Recipients, TreeRules, recipients, trailer_people
from tests.mail.test_maintainers import TEXT

ADA = Mailbox("ada@example.org", "Ada")
COMMITTER = Mailbox("akpm@example.org", "Andrew")
MESSAGE = """\
almanac: keep days in order

Text that mentions
Reviewed-by: Nobody <nobody@example.org>
in its middle.

Reported-by: kernel test robot <lkp@robots.example>
Reported-by: syzbot+0123456789@syzkaller.example
Cc: stable@vger.kernel.org # v6.1+
Cc: fsdevel@lists.example.net
Tested-by: Tess <tess@example.org>
Reviewed-by: Rev <rev@example.org> # as far as I understand it
Signed-off-by: Ada <ada@example.org>
Signed-off-by: Andrew <akpm@example.org>
"""
COMMIT = Commit(ADA, COMMITTER, MESSAGE, ("fs/almanac/inode.c", "fs/inode.c"))
KERNEL = maintainers.parse(TEXT)


def addresses(boxes: tuple[Mailbox, ...]) -> list[str]:
    return [box.address for box in boxes]


def test_author_then_people_of_the_commit_then_its_maintainers_and_lists():
    found = recipients(COMMIT, KERNEL)
    assert found.to == (ADA,)
    assert addresses(found.people) == [
        "akpm@example.org",
        "rev@example.org",
        "tess@example.org",
        "ada@old.example",
        "grace@example.net",
        "alan@example.org",
        "vfs@example.org",
    ]
    assert addresses(found.lists) == [
        "almanac@lists.example.net",
        "fsdevel@lists.example.net",
        "everything@lists.example.net",
    ]


def test_the_cap_cuts_the_least_concerned():
    found = recipients(COMMIT, KERNEL, TreeRules(most=5, most_lists=2))
    assert addresses(found.people) == ["akpm@example.org", "rev@example.org"]
    assert len(found.to) + len(found.people) + len(found.lists) == 5


def test_an_operators_additions_come_first():
    rules = TreeRules((Mailbox("perf@example.org"),), (Mailbox("regressions@lists.example.net"),), most=4, most_lists=2)
    found = recipients(COMMIT, KERNEL, rules)
    assert addresses(found.people) == ["perf@example.org"]
    assert addresses(found.lists) == ["regressions@lists.example.net", "almanac@lists.example.net"]


def test_without_a_usable_author_the_committer_is_asked():
    assert recipients(replace(COMMIT, author=None), KERNEL).to == (COMMITTER,)
    robot = Mailbox("lkp@robots.example", "kernel test robot")
    assert recipients(replace(COMMIT, author=robot), KERNEL).to == (COMMITTER,)


def test_no_one_at_all():
    assert recipients(Commit(None, None, "x", ()), maintainers.parse("")) == Recipients(())


def test_a_maintainer_who_is_the_author_is_named_once():
    text = "X\nM:\tAda L. <ADA@example.org>\nF:\tx/\n"
    assert recipients(Commit(ADA, ADA, "x", ("x/y",)), maintainers.parse(text)) == Recipients((ADA,))


def test_keywords_count_in_the_message_and_in_changed_lines_only():
    diff = "--- a/mm/almanac_x\n+++ b/mm/almanac_x\n@@ -1 +1 @@ almanac_y\n almanac_z();\n"
    commit = Commit(ADA, ADA, "mm: x", ("mm/slub.c",), diff)
    assert addresses(recipients(commit, KERNEL).people) == []
    for touched in (replace(commit, diff=f"{diff}-almanac_open();\n"), replace(commit, message="mm: almanac_open")):
        assert addresses(recipients(touched, KERNEL).people) == ["ada@old.example", "grace@example.net"]


def test_who_ignores_such_mail_gets_it_only_as_author_or_maintainer():
    kernel = maintainers.parse(TEXT, ignored="Rev <rev@example.org>\nTess <tess@example.org>\nalan@example.org\n")
    assert addresses(recipients(COMMIT, kernel).people) == [
        "akpm@example.org",
        "ada@old.example",
        "grace@example.net",
        "alan@example.org",
        "vfs@example.org",
    ]


@pytest.mark.parametrize("message", ["subject only", "Signed-off-by: A <a@example.org>", "", "x\n\nno trailers here\n"])
def test_messages_without_trailers(message: str):
    assert trailer_people(message) == ()


def test_trailers_with_several_and_broken_addresses():
    message = (
        "s\n\nCc: A <a@example.org>, b@example.org\nCc: nobody\nAcked-by: <c@example.org>\nLink: https://example.org\n"
    )
    assert addresses(trailer_people(message)) == ["c@example.org", "a@example.org", "b@example.org"]


def test_each_recipient_comes_with_the_reason():
    rules = TreeRules((Mailbox("perf@example.org"),))
    found = recipients(COMMIT, KERNEL, rules)
    everybody = (*found.to, *found.people, *found.lists)
    assert {box.address for box in everybody} == {box.address for box in everybody if found.why.get(box.key)}
    assert found.why["ada@example.org"] == "author"
    assert found.why["rev@example.org"] == "Reviewed-by of the commit"
    assert found.why["grace@example.net"].startswith("MAINTAINERS: ")
    assert found.why["perf@example.org"] == "by configuration"


def test_everybody_is_named_as_mailmap_has_them():
    kernel = maintainers.parse(TEXT, mailmap="Ada Lovelace <ada@new.example> <ada@example.org>")
    assert recipients(COMMIT, kernel).to == (Mailbox("ada@new.example", "Ada Lovelace"),)
