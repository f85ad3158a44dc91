from __future__ import annotations

import pytest

from bisectbot.source.git import Git
from bisectbot.source.history import changes, facts
from bisectbot.source.sightings import Sighting, find
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
