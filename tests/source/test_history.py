from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.source.git import Git
from bisectbot.source.history import changes, commits, facts, first_parents, patch_ids
from tests.source.fastimport import FastImport


def _ancestors(parents: tuple[tuple[int, ...], ...], start: int) -> set[int]:
    seen, todo = set(), [start]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += parents[node]
    return seen


def _check(git: Git, good: str, bad: str) -> None:
    """What CommitGraph is told agrees with what git says of the same history."""
    history = commits(git, good, bad)
    expected = set(git.run("rev-list", f"{good}..{bad}").split())
    assert {history.shas[number] for number in history.candidates()} == expected
    below = _ancestors(history.parents, history.bad) - _ancestors(history.parents, history.good)
    assert sorted(below) == history.candidates()
    assert all(parent < number for number, row in enumerate(history.parents) for parent in row)
    assert {history.shas[base] for base in history.bases} == set(git.run("merge-base", "--all", good, bad).split())
    for number in history.candidates():
        within = {history.shas[other] for other in _ancestors(history.parents, number)} & expected
        assert within == set(git.run("rev-list", history.shas[number], f"^{good}").split())


def test_a_line(upstream: FastImport) -> None:
    tip = 0
    for number in range(10):
        tip = upstream.commit(f"c{number}", [tip] if tip else [], {"a": f"{number}\n"})
    upstream.write()
    git = Git(upstream.path)
    history = commits(git, upstream.sha(3), upstream.sha(8))
    assert history.shas == tuple(upstream.sha(number) for number in range(3, 9))
    assert history.parents == ((), (0,), (1,), (2,), (3,), (4,))
    assert history.straight
    assert (history.good, history.bad, history.boundary) == (0, 5, 1)
    assert upstream.sha(5) in history
    assert upstream.sha(2) not in history


def test_criss_cross_merges_an_octopus_and_a_second_root(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"r": "0"})
    a1 = upstream.commit("a1", [root], {"a": "1"})
    b1 = upstream.commit("b1", [root], {"b": "1"})
    a2 = upstream.commit("a2", [a1, b1], {"b": "1"})
    b2 = upstream.commit("b2", [b1, a1], {"a": "1"})
    other = upstream.commit("another project", files={"o": "1"}, date=100)
    c1 = upstream.commit("c1", [root], {"c": "1"}, date=5)  # a clock that went back
    octopus = upstream.commit("octopus", [a2, b2, c1, other], {"o": "1", "c": "1"})
    end = upstream.commit("end", [octopus], {"a": "2"})
    upstream.write()
    git = Git(upstream.path)
    for good in (root, a1, a2, b2, c1, other):
        _check(git, upstream.sha(good), upstream.sha(end))
    _check(git, upstream.sha(a2), upstream.sha(b2))
    assert not commits(git, upstream.sha(a2), upstream.sha(b2)).straight
    assert len(commits(git, upstream.sha(a2), upstream.sha(b2)).bases) == 2


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_graph(upstream: FastImport, data: st.DataObject) -> None:
    size = data.draw(st.integers(3, 14))
    numbers: list[int] = []
    for place in range(size):
        choices = st.sampled_from(numbers) if numbers else st.nothing()
        parents = data.draw(st.lists(choices, min_size=1, max_size=3, unique=True)) if numbers else []
        date = data.draw(st.integers(1, 2_000_000_000))
        numbers.append(upstream.commit(f"c{place}", parents, {f"f{place}": "x"}, date=date))
    upstream.write()
    git = Git(upstream.path)
    good, bad = data.draw(st.lists(st.sampled_from(numbers), min_size=2, max_size=2, unique=True))
    if git.ok("merge-base", "--is-ancestor", upstream.sha(bad), upstream.sha(good)):
        good, bad = bad, good
    _check(git, upstream.sha(good), upstream.sha(bad))


def test_ends_that_cannot_be_searched_are_one_line(upstream: FastImport) -> None:
    root = upstream.commit("root", files={"r": "0"})
    end = upstream.commit("end", [root], {"r": "1"})
    other = upstream.commit("another project", files={"o": "1"})
    upstream.write()
    git = Git(upstream.path)
    with pytest.raises(UserError, match="same commit"):
        commits(git, upstream.sha(end), upstream.sha(end))
    with pytest.raises(UserError, match="older commit first"):
        commits(git, upstream.sha(end), upstream.sha(root))
    with pytest.raises(UserError, match="no history"):
        commits(git, upstream.sha(other), upstream.sha(end))


def test_a_shallow_clone_is_refused_only_where_it_is_too_short(upstream: FastImport) -> None:
    tip = 0
    for number in range(8):
        tip = upstream.commit(f"c{number}", [tip] if tip else [], {"a": f"{number}\n"})
    side = upstream.commit("side", [2], {"b": "b"})
    upstream.ref("refs/heads/master", upstream.commit("merge", [tip, side], {"b": "b"}))
    upstream.write()
    clone = upstream.path.parent / "clone"
    url = upstream.path.as_uri()
    subprocess.run(["git", "clone", "-q", "--depth", "4", url, str(clone)], check=True)
    git = Git(clone)
    assert commits(git, "master~2", "master~1").straight
    with pytest.raises(UserError, match="--unshallow"):
        commits(git, "master~2", "master")


def test_grafts_and_replacements_do_not_bend_the_history(upstream: FastImport) -> None:
    first = upstream.commit("first", files={"a": "1"})
    second = upstream.commit("second", [first], {"a": "2"})
    third = upstream.commit("third", [second], {"a": "3"})
    upstream.write()
    git = Git(upstream.path)
    (git.path / "info").mkdir(exist_ok=True)
    (git.path / "info" / "grafts").write_text(f"{upstream.sha(third)} {upstream.sha(first)}\n")
    git.run("update-ref", f"refs/replace/{upstream.sha(second)}", upstream.sha(first))
    assert len(commits(git, upstream.sha(first), upstream.sha(third)).candidates()) == 2


def test_heads_along_a_branch(upstream: FastImport) -> None:
    root = upstream.commit("root")
    side = upstream.commit("side", [root])
    merge = upstream.commit("merge", [root, side])
    end = upstream.commit("end", [merge])
    upstream.write()
    git = Git(upstream.path)
    shas = upstream.sha
    assert first_parents(git, shas(root), shas(end)) == [shas(merge), shas(end)]
    assert first_parents(git, None, shas(end)) == [shas(root), shas(merge), shas(end)]


def test_facts_of_commits_in_any_order_in_one_call(upstream: FastImport) -> None:
    first = upstream.commit(
        'mm: do less\n\nBecause.\n\nMore.\n\nFixes: 123456789012 ("mm: do more")\nCc: A B <a@b.example>\n'
        "Cc: stable@vger.kernel.org\n",
        files={"a": "1"},
        author="Zoë Müller <zoe@example.org>",
        date=1_000_000_000,
        committed=1_100_000_000,
    )
    merge = upstream.commit("Merge x", [first, upstream.commit("x", [first])])
    upstream.write()
    git = Git(upstream.path)
    got_merge, got = facts(git, [upstream.sha(merge), upstream.sha(first)])
    assert (got_merge.subject, got_merge.is_merge, got_merge.body) == ("Merge x", True, "")
    assert (got.author_name, got.author_mail, got.author_date) == ("Zoë Müller", "zoe@example.org", 1_000_000_000)
    assert (got.commit_date, got.committer_name) == (1_100_000_000, "C O Mitter")
    assert got.subject == "mm: do less"
    assert got.body.startswith("Because.\n\nMore.")
    assert got.trailers == (
        ("Fixes", '123456789012 ("mm: do more")'),
        ("Cc", "A B <a@b.example>"),
        ("Cc", "stable@vger.kernel.org"),
    )
    assert got.short == f'{upstream.sha(first)[:12]} ("mm: do less")'
    assert facts(git, []) == []


def test_a_message_of_any_bytes_is_read(upstream: FastImport) -> None:
    nasty = b"sub\x1b[31mject \xff\xfe\x1e\x1f x\r\n\nbody \x07 \xc3\x28\n\nSigned-off-by: \xe9 <e@x>\n"
    first = upstream.commit(nasty, files={"a": "1"})
    second = upstream.commit(b"", [first], {"a": "2"})
    third = upstream.commit(b"\n" + b"x" * 3_000_000, [second], {"a": "3"})
    upstream.write()
    infos = facts(Git(upstream.path), [upstream.sha(number) for number in (first, second, third)])
    assert infos[1].subject == ""
    assert len(infos[2].subject) == 3_000_000
    for info in infos:
        text = info.subject + info.body + repr(info.trailers)
        text.encode("utf-8")
        assert not set(text) & set(map(chr, [7, 27, 30, 31, 13]))
    assert len({change.key for change in changes(Git(upstream.path), infos)}) == 3


def test_a_rebased_commit_is_the_same_change_and_nothing_else_is(upstream: FastImport) -> None:
    body = "".join(f"line {number}\n" for number in range(40))
    root = upstream.commit("root", files={"a": body, "z": "z\n"})
    moved = upstream.commit("unrelated", [root], {"z": "zz\n"})

    def change(
        parent: int, subject: str = "a: edit", new: str = "edited", date: int = 77, author: str = "A <a@b>"
    ) -> int:
        return upstream.commit(subject, [parent], {"a": body.replace("line 20", new)}, author=author, date=date)

    one, again = change(root), change(moved)
    others = [
        change(root, subject="b: edit"),
        change(root, new="edited otherwise"),
        change(root, date=78),
        change(root, author="B <a@b>"),
        upstream.commit("a: edit", [root], {}, author="A <a@b>", date=77),
        upstream.commit("a: edit", [root, moved], {"a": body.replace("line 20", "edited")}, author="A <a@b>", date=77),
    ]
    upstream.write()
    git = Git(upstream.path)
    keys = [item.key for item in changes(git, facts(git, [upstream.sha(number) for number in (one, again, *others)]))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(others) + 1


def test_patch_ids_of_many_commits_are_one_pipe(upstream: FastImport) -> None:
    tip = upstream.commit("c", files={"a": "0\n", "bin": b"\0\1"})
    numbers = [tip]
    for number in range(300):
        tip = upstream.commit(f"c{number}", [tip], {"a": f"{number}\n" * 50, "bin": b"\0" + bytes([number % 251])})
        numbers.append(tip)
    upstream.write()
    ids = patch_ids(Git(upstream.path), [upstream.sha(number) for number in numbers])
    assert len(ids) == 301
    assert len(set(ids.values())) == 301
    assert patch_ids(Git(upstream.path), []) == {}
