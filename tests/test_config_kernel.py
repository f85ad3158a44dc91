"""Kernel configurations by name: where they come from, and what is told of one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisectbot.config import load
from tests.test_config import changed, problems, write

FRAGMENTS = {"kconfigs/lab.config": "CONFIG_LAB=y\n", "kconfigs/base.config": "CONFIG_64BIT=y\n"}


def kernel(more: str) -> str:
    return changed("b: {command: make, outputs: [bench]}", f"b: {{builder: kernel{more}}}")


def test_a_target_of_the_tree_and_fragments(tmp_path: Path):
    path = write(
        tmp_path,
        {"bisectbot.yaml": kernel(", kconfig: x86_64_defconfig, fragments: [lab], compiler: gcc-12"), **FRAGMENTS},
    )
    build = load(path).builds["b"]
    recipe = build.recipe("b")
    assert (recipe.kconfig, recipe.compiler) == ("x86_64_defconfig+lab", "gcc-12")
    assert recipe.kernel is not None
    assert recipe.kernel.base == "x86_64_defconfig"
    assert recipe.kernel.fragments == (("lab", "CONFIG_LAB=y\n"),)
    before = build.recipe("b").digest()
    (tmp_path / "kconfigs/lab.config").write_text("CONFIG_LAB=n\n")
    assert load(path).builds["b"].recipe("b").digest() != before  # another text, another kernel


def test_it_may_begin_with_a_file(tmp_path: Path):
    path = write(tmp_path, {"bisectbot.yaml": kernel(", kconfig: base, fragments: [lab]"), **FRAGMENTS})
    told = load(path).builds["b"].recipe("b").kernel
    assert told is not None
    assert (told.base, [name for name, _ in told.fragments]) == ("", ["base", "lab"])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "builds.b.kconfig is missing; add it: x86_64_defconfig, for example"),
        (", kconfig: nonesuch", "builds.b.kconfig: no file nonesuch.config in kconfigs; there are: base, lab"),
        (
            ", kconfig: tinyconfig, fragments: [lap]",
            "builds.b.fragments: no file lap.config in kconfigs; there are: base, lab",
        ),
        (", kconfig: tinyconfig, fragments: [../lab]", "builds.b.fragments.0"),
        (", kconfig: tinyconfig, compiler: cc; rm", "builds.b.compiler: expected gcc, gcc-12, clang or llvm-14, found"),
    ],
)
def test_mistakes(tmp_path: Path, more: str, told: str):
    (line,) = problems(tmp_path, {"bisectbot.yaml": kernel(more), **FRAGMENTS})
    assert told in line
    assert line.startswith("bisectbot.yaml:8: ")
