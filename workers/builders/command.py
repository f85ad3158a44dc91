"""Anything that a shell command builds in its work tree."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from bisectbot.errors import InfraError, Untestable
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.source.git import Git
from workers import process
from workers.archive import matching, pack
from workers.builders.base import Built, Workshop
from workers.process import Command, Cut, Ended, Stop, clean_environment

EPOCH = "315532800"  # 1980: what tools that print the time of the build are to print
OUTPUT_LIMIT = 200 * 2**20

_ERROR = re.compile(r"\berror\b|\bError \d|undefined reference|No such file|not found|^FAILED", re.IGNORECASE)
_MACHINE = re.compile(
    rb"No space left on device|Disk quota exceeded|Cannot allocate memory|virtual memory exhausted"
    rb"|Killed signal terminated|\*\*\* \[.*\] Killed|Error 137\b"
    rb"|(?:gelf|libelf|openssl/\w+)\.h: No such file"  # what a kernel's build needs of the system
    rb"|\ntuxmake cannot: [^\n]*"
)


class CommandBuilder:
    """Runs ``recipe.command`` at the root of the tree and keeps ``recipe.outputs``.

    Its environment is the same everywhere, times are fixed: equal sources give equal bytes as far as the tools let
    them.
    """

    def build(self, recipe: BuildRecipe, shop: Workshop, log: Path) -> Built:
        home = shop.folder / "home"
        home.mkdir()
        command = Command(
            ("/bin/sh", "-c", recipe.command),
            cwd=shop.tree,
            environment=clean_environment(home, {"SOURCE_DATE_EPOCH": EPOCH, **dict(recipe.environment)}),
            timeout_s=shop.clock.real(recipe.timeout_s),
            output_limit=OUTPUT_LIMIT,
        )
        make(command, log, owner=shop.owner, stop=shop.stop, hold=shop.hold)
        names = _outputs(recipe, shop.tree)
        archive = shop.folder / "archive"
        try:
            return Built(archive, pack(shop.tree, names, archive))
        except OSError as error:
            raise InfraError(f"the outputs cannot be packed: {error}") from error


def make(command: Command, log: Path, *, owner: str = "", stop: Stop | None = None, hold: Sequence[int] = ()) -> Ended:
    """Run a build; all that it prints goes to ``log``.

    Raises Untestable, with the first errors, when the commit is to blame for its failure, InfraError when it was
    stopped or the machine is to blame.
    """
    oom_kills = _oom_kills()
    ended = process.run(command, log, owner=owner, stop=stop, hold=hold)
    match ended.cut:
        case Cut.STOPPED:
            raise InfraError("stopped")
        case Cut.TIMEOUT:
            raise Untestable(f"does not build: no end after {command.timeout_s:g} s")
        case Cut.OUTPUT:
            raise Untestable(f"does not build: more than {command.output_limit} bytes of output")
    if ended.status == 0:
        return ended
    machine = _MACHINE.search(_tail(log))
    if machine:
        raise InfraError(f"the build failed on this machine: {machine[0].decode()}")
    if ended.status == 137 or _oom_kills() > oom_kills:
        raise InfraError("the build was killed, probably for want of memory")
    if shutil.disk_usage(log.parent).free < 2**20:
        raise InfraError(f"the build failed on a full disk ({log.parent})")
    raise Untestable(f"does not build (exit status {ended.status}): {_first_errors(log)}")


def _outputs(recipe: BuildRecipe, tree: Path) -> list[str]:
    """What to keep. Raises Untestable when a build that says it succeeded left nothing of what the recipe names."""
    if not recipe.outputs:
        git = Git(tree)
        new = git.run("ls-files", "-z", "--others")
        changed = git.run("diff", "-z", "--name-only", "--diff-filter=d", "HEAD")
        return [name for name in (new + changed).split("\0") if name]
    names = [name for name in matching(tree, recipe.outputs) if not name.startswith(".git/")]
    if not names:
        raise Untestable(f"the build left none of its outputs: {', '.join(recipe.outputs)}")
    return names


def _first_errors(log: Path, count: int = 3) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        found = [line.strip()[:200] for line in lines if _ERROR.search(line)][:count]
    last = _tail(log).decode("utf-8", "replace").strip().splitlines()[-1:]
    return " | ".join(found or [line[:200] for line in last]) or "it printed nothing"


def _tail(log: Path, size: int = 65536) -> bytes:
    with log.open("rb") as content:
        content.seek(max(0, log.stat().st_size - size))
        return content.read()


def _oom_kills() -> int:
    """How often this kernel has killed for want of memory since it booted."""
    try:
        match = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) if match else 0
