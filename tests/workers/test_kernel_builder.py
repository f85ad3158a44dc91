"""The kernel builder on a tree that builds like Linux in a second; `test_real_kernel.py` has the real thing."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisectbot.clock import Clock
from bisectbot.errors import InfraError, Untestable
from bisectbot.jobs.assignment import BuildRecipe, KernelRecipe
from tests.workers.small_linux import FILES, SmallLinux
from workers import kernel
from workers.archive import unpack
from workers.builders import Built, Workshop, elf
from workers.builders.kernel import KEPT, KernelBuilder
from workers.process import Stop

TOLD = KernelRecipe("tinyconfig", (("lab", "CONFIG_LAB=y\nCONFIG_NONE=y\n"),))
RECIPE = BuildRecipe("k", "kernel", kernel=TOLD)
Build = Callable[..., Built]


@pytest.fixture
def linux(tmp_path: Path) -> SmallLinux:
    return SmallLinux(tmp_path / "linux")


@pytest.fixture
def build(tmp_path: Path, linux: SmallLinux) -> Build:
    count = iter(range(1000))

    def built(recipe: BuildRecipe = RECIPE, slot: str = "slot0", tree: Path = linux.path) -> Built:
        folder = tmp_path / f"desk{next(count)}"
        folder.mkdir()
        shop = Workshop(tree, folder, tmp_path / "out" / slot, tmp_path, "test", Clock(), Stop())
        return KernelBuilder().build(recipe, shop, folder / "build.log")

    return built


def opened(built: Built) -> tuple[Path, kernel.Kernel]:
    folder = built.archive.parent / "unpacked"
    unpack(built.archive, folder)
    return folder, kernel.read(folder)


def test_what_is_in_the_archive(build: Build, linux: SmallLinux):
    folder, made = opened(build())
    assert made.release == f"6.1.0-g{linux.first[:12]}"
    assert made.build_id == elf.build_id(folder / made.image).hex()
    assert (made.image, made.arch, made.compiler[:3]) == ("bzImage", "x86_64", "gcc")
    assert (folder / "config").read_text() == "CONFIG_MODULES=y\nCONFIG_LAB=y\n"
    assert "do_open" in (folder / "System.map").read_text()
    with tarfile.open(folder / made.modules) as modules:
        assert f"lib/modules/{made.release}/m.ko" in modules.getnames()


def test_compiled_are_the_files_that_went_into_it(build: Build):
    assert build().compiled == (
        "arch/x86/boot/version.c",
        "fs/open.c",
        "include/open.h",
        "init/main.c",
        "init/version.c",
        "mod/m.c",
    )


def test_equal_code_has_an_equal_signature(build: Build, linux: SmallLinux, tmp_path: Path):
    first = build().signature
    linux.commit({"README": "other words\n", "include/open.h": "/* other words */\nint do_open(int x);\n"})
    assert build().signature == first  # another commit, another release, other debug information
    elsewhere = SmallLinux(tmp_path / "a" / "longer" / "path")
    assert build(slot="slot1", tree=elsewhere.path).signature == first  # another path


@pytest.mark.parametrize("file", ["fs/open.c", "mod/m.c", "arch/x86/boot/version.c"])
def test_other_code_has_another_signature(build: Build, linux: SmallLinux, file: str):
    first = build().signature
    linux.commit({file: FILES[file] + "int more(int x) { return x * 7; }\n"})
    assert build().signature != first


def test_only_what_changed_is_compiled_again(build: Build, linux: SmallLinux, tmp_path: Path):
    build()
    (out,) = (tmp_path / "out" / "slot0").iterdir()
    before = (out / "fs/open.o").stat().st_mtime_ns
    linux.commit({"init/main.c": FILES["init/main.c"] + "int more;\n"})
    linux.git("checkout", "-q", "--detach", linux.first)
    linux.git("checkout", "-q", "--detach", "-")
    built = build()
    main = (out / "init/main.o").stat().st_mtime_ns
    assert main > before
    assert built.signature


@pytest.mark.parametrize(
    "other",
    [replace(RECIPE, kernel=replace(TOLD, variant="aligned")), replace(RECIPE, environment=(("KCFLAGS", "-O1"),))],
    ids=["aligned", "flags"],
)
def test_a_variant_is_another_build_of_the_same_code(build: Build, other: BuildRecipe):
    assert other.digest() != RECIPE.digest()
    assert build(other).signature != build().signature


def test_a_variant_that_this_builder_does_not_know(build: Build):
    with pytest.raises(InfraError, match="older than the server"):
        build(replace(RECIPE, kernel=replace(TOLD, variant="upside-down")))


def test_a_commit_that_does_not_build_is_untestable(build: Build, linux: SmallLinux):
    good = build().signature
    linux.commit({"fs/open.c": "int do_open(int x) { return y; }\n"})
    with pytest.raises(Untestable, match=r"fs/open\.c:1:\d+: error: .y. undeclared"):
        build()
    linux.commit({"fs/open.c": FILES["fs/open.c"]})
    assert build().signature == good
    linux.git("rm", "-q", "Kconfig")
    with pytest.raises(Untestable, match="holds no Linux"):
        build()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("echo 'cc1: fatal error: Killed signal terminated program cc1'; exit 1", "Killed signal"),
        ("kill -9 $PPID", "something killed it"),
        ("echo 'write: No space left on device'; exit 1", "No space left"),
        ("echo 'gelf.h: No such file or directory'; exit 1", "gelf.h"),
    ],
)
def test_the_machine_s_faults_are_not_the_commit_s(build: Build, linux: SmallLinux, fault: str, said: str):
    broken = FILES["Makefile"].replace("bzImage: ", f"bzImage:\n\t+{fault.replace('$', '$$')}\nunused: ")
    linux.commit({"Makefile": broken})
    with pytest.raises(InfraError, match=said):
        build()


def test_what_a_killed_build_left_is_not_trusted(build: Build, tmp_path: Path):
    good = build().signature
    (out,) = (tmp_path / "out" / "slot0").iterdir()
    (out / ".unfinished").touch()
    (out / "fs/open.o").write_bytes(b"half an obj")  # newer than its source: make would take it
    assert build().signature == good


def test_tools_that_are_not_there(build: Build):
    with pytest.raises(InfraError, match="this builder lacks gcc-99; install them"):
        build(replace(RECIPE, compiler="gcc-99"))


def test_a_slot_keeps_a_few_output_folders(build: Build, tmp_path: Path):
    for number in range(KEPT + 2):
        fragments = (("lab", f"CONFIG_LAB={number}\n"),)
        build(replace(RECIPE, kernel=replace(TOLD, fragments=fragments)))
    assert len(list((tmp_path / "out" / "slot0").iterdir())) == KEPT


def test_what_the_commit_s_kconfig_did_not_take_is_in_the_log(build: Build):
    built = build()
    assert "kconfig: lab: CONFIG_NONE=y was not taken\n" in (built.archive.parent / "build.log").read_text()


def test_a_damaged_or_other_file_is_no_elf(tmp_path: Path):
    for name, content in {"text": b"words", "cut": b"\x7fELF\x02\x01" + bytes(30)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="ELF file"):
            list(elf.sections(tmp_path / name))
