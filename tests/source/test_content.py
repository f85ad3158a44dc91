"""What a commit builds from: equal under other ids, and without what a rebuilt branch tells of itself."""

from __future__ import annotations

from pathlib import Path

from bisectbot.source.content import contents
from bisectbot.source.git import Git
from bisectbot.source.history import facts
from tests.source.fastimport import FastImport


def test_the_same_content_under_another_id_is_the_same(tmp_path: Path) -> None:
    repo = FastImport(tmp_path / "r.git")
    root = repo.commit("root", [], {"a": "1\n", "sub/b": "2\n"})
    plain = repo.commit("plain", [root], {"a": "3\n"})
    rebuilt = repo.commit("rebuilt", [root], {"a": "3\n", "Next/SHA1s": "x\n", "localversion-next": "-next-1\n"})
    other_day = repo.commit("other day", [root], {"a": "3\n", "Next/SHA1s": "y\n", "localversion-next": "-next-2\n"})
    deeper = repo.commit("deeper", [root], {"a": "3\n", "sub/Next": "not the rebuild's\n"})
    repo.write()
    git = Git(repo.path)
    shas = [repo.sha(number) for number in (plain, rebuilt, other_day, deeper)]
    told = contents(git, facts(git, shas))
    assert told[shas[1]] == told[shas[2]]
    assert told[shas[0]] == git.run("rev-parse", f"{shas[0]}^{{tree}}")
    assert told[shas[3]] != told[shas[0]]
    assert contents(git, []) == {}
