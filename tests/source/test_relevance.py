from __future__ import annotations

import pytest

from bisectbot.source.git import Git
from bisectbot.source.relevance import RAISED, UNCOMPILED, files_of_functions, prior, touched_files
from tests.source.fastimport import FastImport

CODE = """
#include "open.h"

static int do_open(int flags)
{
\treturn helper(flags);
}

struct file *filp_open(const char *name)
{
\treturn do_open(0);
}

SYSCALL_DEFINE3(open, const char *, name, int, flags)
{
\treturn do_open(flags);
}
"""


@pytest.fixture
def history(upstream: FastImport) -> list[str]:
    root = upstream.commit("root", files={"fs/open.c": CODE, "fs/open.h": "int do_open(int flags);\n", "doc": "d\n"})
    numbers = [
        upstream.commit("doc", [root], {"doc": "e\n"}),
        upstream.commit("open", [root], {"fs/open.c": CODE + "\n", "doc": "f\n"}),
        upstream.commit("other", [root], {"arch/other.c": "int x;\n"}),
        upstream.commit("kconfig", [root], {"fs/Kconfig.debug": "config X\n"}),
        upstream.commit("script", [root], {"scripts/gen.py": "x\n"}),
        upstream.commit("header", [root], {"fs/open.h": "int do_open(int f);\n"}),
        upstream.commit("weird name", [root], {"fs/a\nb \xe9": "x\n"}),
        upstream.commit("empty", [root]),
    ]
    numbers.append(upstream.commit("merge", [numbers[0], numbers[1]], {"doc": "f\n"}))
    upstream.ref("refs/heads/master", root)
    upstream.write()
    return [upstream.sha(number) for number in [*numbers, root]]


def test_what_was_not_compiled_comes_last_and_is_never_dropped(upstream: FastImport, history: list[str]) -> None:
    git = Git(upstream.path)
    weights = prior(git, history, {"fs/open.c", "fs/open.h"}, steering=["scripts/"])
    low = UNCOMPILED
    assert weights == [low, 1.0, low, 1.0, 1.0, 1.0, low, 1.0, 1.0, 1.0]
    assert prior(git, history, []) == [1.0] * 10
    assert min(weights) > 0


def test_files_of_functions_that_moved_are_raised(upstream: FastImport, history: list[str]) -> None:
    git = Git(upstream.path)
    moved = files_of_functions(git, "master", ["do_open.isra.0", "no_such", "not a name"])
    assert moved == {"fs/open.c"}
    assert prior(git, history[:2], {"fs/open.c"}, moved=moved) == [UNCOMPILED, RAISED]


@pytest.mark.parametrize(
    ("function", "found"),
    [("filp_open", True), ("__x64_sys_open", True), ("__se_sys_open", True), ("helper", False), ("open", False),
     ("do_open.constprop.0.cold", True), ("_open", False)],
)  # fmt: skip
@pytest.mark.usefixtures("history")
def test_a_definition_is_told_from_a_call(upstream: FastImport, function: str, found: bool) -> None:
    assert bool(files_of_functions(Git(upstream.path), "master", [function])) is found


def test_touched_files_of_nothing(upstream: FastImport, history: list[str]) -> None:
    git = Git(upstream.path)
    assert touched_files(git, []) == {}
    assert touched_files(git, history)[history[6]] == {"fs/a\nb \xe9"}
    assert files_of_functions(git, "master", []) == frozenset()
