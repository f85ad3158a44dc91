from __future__ import annotations

import pytest

from bisectbot.source.git import Git
from bisectbot.source.history import changes, facts
from bisectbot.source.sightings import Sighting, find, lineage, originals, undone
from tests.source.fastimport import NOON, FastImport

BODY = "".join(f"line {number}\n" for number in range(40))


@pytest.mark.parametrize(
    ("subject", "edit", "author", "seen"),
    [
        ("mm: do [less] (v2)", "edited", "A <a@b>", "exact"),
        ("mm: do [less] (v2)", "adapted", "A <a@b>", "adapted"),
        ("backport\n\ncommit {sha} upstream.\n", "adapted", "S <s@b>", "adapted"),
        ("backport\n\n[ Upstream commit {sha} ]\n", "edited", "S <s@b>", "adapted"),
        ("picked\n\n(cherry picked from commit {sha})\n", "edited", "S <s@b>", "adapted"),
        ("revert\n\nThis reverts commit {sha}.\n", "edited", "S <s@b>", None),
        ("a fix\n\nSlower since\ncommit {sha} (less).\n", "edited", "S <s@b>", None),
        ("mm: do [less] (v2) and more", "edited", "A <a@b>", None),
        ("another", "edited", "A <a@b>", None),
    ],
)
def test_a_change_is_found_again(upstream: FastImport, subject: str, edit: str, author: str, seen: str | None) -> None:
    root = upstream.commit("root", files={"a": BODY, "b": "0\n"})
    made = upstream.commit("mm: do [less] (v2)", [root], {"a": BODY.replace("line 20", "edited")},
                           author="A <a@b>", date=NOON + 9)  # fmt: skip
    upstream.write()
    aside = upstream.commit("aside", [root], {"b": "1\n"})
    there = upstream.commit(subject.format(sha=upstream.sha(made)), [aside], {"a": BODY.replace("line 20", edit)},
                            author=author, date=NOON + 9, committed=NOON + 99)  # fmt: skip
    upstream.ref("refs/heads/stable", upstream.commit("tip", [there], {"b": "2\n"}))
    upstream.write()
    git = Git(upstream.path)
    info = facts(git, [upstream.sha(made)])[0]
    change = changes(git, [info])[0]
    expected = None if seen is None else Sighting(upstream.sha(there), exact=seen == "exact")
    assert find(git, info, change, "stable") == expected
    assert find(git, info, change, "stable", since=upstream.sha(there)) is None
    assert find(git, info, change, upstream.sha(made)) == Sighting(upstream.sha(made), exact=True)


def test_what_a_backport_names_is_found_where_the_original_is(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"a": BODY})
    made = upstream.commit("mm: do less", [root], {"a": BODY.replace("line 20", "edited")})
    upstream.write()
    text = f"6.1: do less\n\ncommit {upstream.sha(made)} upstream.\n\n(cherry picked from commit {'0' * 40})\n"
    ported = upstream.commit(text, [root], {"a": BODY.replace("line 20", "adapted")}, author="S <s@b>")
    upstream.ref("refs/heads/mainline", made)
    upstream.write()
    git = Git(upstream.path)
    [info] = facts(git, [upstream.sha(ported)])
    [change] = changes(git, [info])
    assert originals(info) == (upstream.sha(made), "0" * 40)
    assert [one.sha for one, _ in lineage(git, info, change)] == [upstream.sha(ported), upstream.sha(made)]
    assert find(git, info, change, "mainline") == Sighting(upstream.sha(made), exact=False)
    assert find(git, info, change, upstream.sha(root)) is None


@pytest.mark.parametrize(
    ("subject", "content", "seen"),
    [
        ("mm: do it otherwise", "line 20", "exact"),
        ('Revert "mm: edit"\n\nThis reverts commit {sha}.\n', "nearly as before", "said"),
        ("mm: edit again", "edited again", None),
        ('mm: not so\n\nFixes: {sha} ("mm: edit")\n', "edited better", None),
    ],
)
def test_what_a_later_commit_takes_back(upstream: FastImport, subject: str, content: str, seen: str | None) -> None:
    root = upstream.commit("root", files={"a [x]": BODY, "b": "0\n"})
    made = upstream.commit("mm: edit", [root], {"a [x]": BODY.replace("line 20", "edited")})
    upstream.write()
    between = upstream.commit("between", [made], {"b": "1\n"})
    top = f"first\n{BODY}".replace("line 20", "edited")
    moved = upstream.commit("lines move", [between], {"a [x]": top})
    later = upstream.commit(subject.format(sha=upstream.sha(made)), [moved], {"a [x]": top.replace("edited", content)})
    upstream.write()
    git = Git(upstream.path)
    info = facts(git, [upstream.sha(made)])[0]
    expected = None if seen is None else Sighting(upstream.sha(later), exact=seen == "exact")
    assert undone(git, info, upstream.sha(later)) == expected
    assert undone(git, info, upstream.sha(moved)) is None
    assert undone(git, info, upstream.sha(root)) is None
