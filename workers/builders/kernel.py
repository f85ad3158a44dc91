"""Linux, built by tuxmake: out of the tree, incrementally, through ccache, and so that equal code gives equal bytes."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bisectbot.errors import InfraError, Untestable
from bisectbot.jobs.assignment import BuildRecipe, KernelRecipe
from bisectbot.source.git import Git
from workers import kernel
from workers.archive import pack
from workers.builders import elf
from workers.builders.base import Built, Workshop
from workers.builders.command import OUTPUT_LIMIT, make
from workers.builders.compiled import compiled
from workers.builders.imprint import imprint
from workers.process import Command, clean_environment

KEPT = 3  # output folders of a slot, one per recipe
TAG_DIGITS = 12  # of the commit in the kernel's release: always as many, so that it moves nothing

# What else would make each build another one. From the first build of an output folder on: make does not build again
# what only these would change.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1980",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "bisectbot",
    "KBUILD_BUILD_HOST": "bisectbot",
}
_VARIANTS = {"": "", "aligned": "-falign-functions=64 -falign-loops=32 -falign-jumps=32"}
_TOOLS = ("make", "ld", "flex", "bison", "bc", "perl")
_SCRIPT = Path(__file__).with_name("tuxmake_order.py")


class KernelBuilder:
    """The archive holds the boot image, ``config``, ``System.map``, ``modules.tar`` if there are modules, and what
    `workers.kernel.Kernel` says of them."""

    def build(self, recipe: BuildRecipe, shop: Workshop, log: Path) -> Built:
        told = recipe.kernel
        if told is None or told.variant not in _VARIANTS:
            raise InfraError(f"build {recipe.name}: this builder knows no such kernel; is it older than the server?")
        compiler = _compiler(recipe.compiler or "gcc")
        out = _output_folder(shop.keep, recipe)
        try:
            unfinished = out / ".unfinished"
            if unfinished.exists():  # whoever was killed here may have left half an object that looks whole
                shutil.rmtree(out)
                out.mkdir()
            unfinished.touch()
            artifacts = self._make(recipe, told, shop, out, log)
            (out / ".unfinished").unlink()
            return _pack(told, shop, out, artifacts, compiler, log)
        except Untestable:
            (out / ".unfinished").unlink(missing_ok=True)  # make itself ended: all that it left is whole
            raise
        except OSError as error:
            raise InfraError(f"the kernel cannot be built in {out}: {error}") from error

    def _make(self, recipe: BuildRecipe, told: KernelRecipe, shop: Workshop, out: Path, log: Path) -> Path:
        artifacts, home, tools = (shop.folder / name for name in ("artifacts", "home", "tools"))
        for folder in (artifacts, home, tools):
            folder.mkdir()
        (out / ".config").unlink(missing_ok=True)  # tuxmake keeps one that is there, whatever the commit's Kconfig says
        order = shop.folder / "order.json"
        order.write_text(json.dumps(_order(recipe, told, shop, out, artifacts)), encoding="utf-8")
        if re.fullmatch(r"gcc-\d+", recipe.compiler):
            (tools / "gcc").symlink_to(str(shutil.which(recipe.compiler)))
        environment = clean_environment(home, {"CCACHE_DIR": str(shop.cache / "ccache"), **_own(recipe)})
        environment["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
        command = Command(
            (sys.executable, str(_SCRIPT), str(order)),
            cwd=shop.tree,
            environment=environment,
            timeout_s=shop.clock.real(recipe.timeout_s),
            output_limit=OUTPUT_LIMIT,
        )
        make(command, log, owner=shop.owner, stop=shop.stop, hold=shop.hold)
        return artifacts


def _compiler(name: str) -> str:
    """What the compiler says of itself. Raises InfraError for tools that this machine lacks."""
    program = name.replace("llvm", "clang")
    missing = [tool for tool in (program, *_TOOLS) if not shutil.which(tool)]
    if missing:
        raise InfraError(f"this builder lacks {', '.join(missing)}; install them")
    said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=60)
    return said.stdout.partition("\n")[0].strip()


def _output_folder(keep: Path, recipe: BuildRecipe) -> Path:
    """Where this slot builds this recipe; those that were not used for longest make room."""
    out = keep / recipe.digest()
    out.mkdir(parents=True, exist_ok=True)
    os.utime(out)
    for old in sorted(keep.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return out


def _order(recipe: BuildRecipe, told: KernelRecipe, shop: Workshop, out: Path, artifacts: Path) -> dict[str, object]:
    """The arguments of ``tuxmake.build.Build``."""
    configs = []
    for number, (name, text) in enumerate(told.fragments):
        file = shop.folder / f"{number}-{name}.config"
        file.write_text(text, encoding="utf-8")
        configs.append(str(file))
    base = told.base or configs.pop(0)
    own = dict(recipe.environment)
    paths = [f"-ffile-prefix-map={folder}/=" for folder in (out, shop.tree)]
    flags = " ".join([*paths, _VARIANTS[told.variant], own.pop("KCFLAGS", "")]).strip()
    return {
        "tree": str(shop.tree),
        "output_dir": str(artifacts),
        "build_dir": str(out),
        "target_arch": None if told.arch == platform.machine() else told.arch,
        "toolchain": None if recipe.compiler.startswith("gcc") else recipe.compiler or None,
        "wrapper": "ccache" if shutil.which("ccache") else "none",
        "environment": {**_REPRODUCIBLE, "KCFLAGS": flags},
        "kconfig": base,
        "kconfig_add": configs,
        "make_variables": {"LOCALVERSION": f"-g{_head(shop.tree)[:TAG_DIGITS]}"},
        "targets": ["config", "kernel", "modules"],
        "compression_type": "none",
        "jobs": shop.jobs,
        "fail_fast": True,
    }


def _own(recipe: BuildRecipe) -> dict[str, str]:
    return {name: value for name, value in recipe.environment if name != "KCFLAGS"}


def _head(tree: Path) -> str:
    return Git(tree).run("rev-parse", "HEAD")


def _pack(told: KernelRecipe, shop: Workshop, out: Path, artifacts: Path, compiler: str, log: Path) -> Built:
    """The archive and what is known of it. Raises Untestable when the build left no kernel, InfraError."""
    release = (out / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    images = [name for name in _images(artifacts) if (artifacts / name).is_file()]
    if not images or not (out / "vmlinux").is_file():
        raise Untestable("the build left no kernel image")
    _tell_refused(told, out / ".config", log)
    shutil.copy(out / "System.map", artifacts / kernel.SYMBOLS)
    modules = kernel.MODULES if (artifacts / kernel.MODULES).is_file() else ""
    try:
        identity = elf.build_id(out / "vmlinux").hex()
    except ValueError as error:
        raise InfraError(f"{error}; is the disk damaged?") from None
    made = kernel.Kernel(release, identity, images[0], told.arch, compiler, modules)
    made.write(artifacts)
    names = [name for name in (*images, kernel.CONFIG, kernel.SYMBOLS, modules, kernel.DESCRIPTION) if name]
    archive = shop.folder / "archive"
    pack(artifacts, names, archive)
    return Built(archive, imprint(shop.tree, out, release), compiled(shop.tree, out))


def _images(artifacts: Path) -> list[str]:
    said = json.loads((artifacts / "metadata.json").read_text(encoding="utf-8"))
    return [str(name) for name in said["results"]["artifacts"].get("kernel", [])]


def _tell_refused(told: KernelRecipe, config: Path, log: Path) -> None:
    """Write into the log which lines of the fragments this commit's Kconfig did not take."""
    lines = config.read_text(encoding="utf-8").splitlines()
    taken, known = (
        set(lines),
        {re.sub(r"^# (CONFIG_\w+) is not set$", r"\1=n", line).partition("=")[0] for line in lines},
    )
    with log.open("a", encoding="utf-8") as text:
        for name, fragment in told.fragments:
            for line in fragment.splitlines():
                off = re.fullmatch(r"# (CONFIG_\w+) is not set", line.strip())
                wanted = line.strip() if line.startswith("CONFIG_") or off else ""
                if wanted and wanted not in taken and not (off and off[1] not in known):
                    text.write(f"kconfig: {name}: {wanted} was not taken\n")
