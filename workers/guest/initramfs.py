"""An initramfs made of a static busybox, our init, a job, and whatever files the job needs.

The format is cpio's "newc": a header of ASCII numbers, the name, the bytes, each padded to four. The kernel unpacks as
many of them, one after the other, as it is given.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from bisectbot.errors import InfraError, UserError

INIT = Path(__file__).with_name("init")
_DEVICES = (("dev/console", 5, 1), ("dev/null", 1, 3), ("dev/ttyS0", 4, 64), ("dev/ttyS1", 4, 65))


@dataclass(frozen=True)
class GuestJob:
    """What the guest runs: a shell ``line`` with ``environment``, in a folder that holds ``work``'s files (none if
    None). The files below ``overlay`` are laid over the guest's root. ``output_limit`` in bytes.
    ``snapshot`` are files (globs) that come home as they are before and after."""

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    work: Path | None = None
    overlay: Path | None = None
    output_limit: int = 16 * 2**20
    snapshot: tuple[str, ...] = ("/proc/version", "/proc/meminfo")


def write_initramfs(job: GuestJob, file: Path) -> None:
    """The whole guest in ``file``; equal jobs give equal bytes, so that nothing but the kernel differs between boots.

    Raises UserError when this machine has no static busybox, InfraError when the disk does not take it.
    """
    try:
        with file.open("wb") as out:
            cpio = _Cpio(out)
            for name in ("bin", "dev", "job", "proc", "work"):
                cpio.folder(name)
            for name, major, minor in _DEVICES:
                cpio.device(name, major, minor)
            cpio.file("bin/busybox", static_busybox().read_bytes(), executable=True)
            cpio.file("init", INIT.read_bytes(), executable=True)
            for name, text in _job_files(job):
                cpio.file(f"job/{name}", text.encode("utf-8", "surrogateescape"))
            if job.overlay is not None:
                cpio.tree(job.overlay, "")
            if job.work is not None:
                cpio.tree(job.work, "work/")
            cpio.end()
    except OSError as error:
        raise InfraError(f"{file} cannot be written: {error}") from error


def static_busybox() -> Path:
    """The distribution's static busybox. Raises UserError when there is none."""
    found = shutil.which("busybox", path=f"{os.environ.get('PATH', os.defpath)}:/bin:/usr/bin:/sbin:/usr/sbin")
    if found and not _dynamic(Path(found)):
        return Path(found)
    raise UserError("guests need a static busybox on the worker's machine: install busybox-static")


def _dynamic(program: Path) -> bool:
    listing = subprocess.run(["ldd", str(program)], check=False, capture_output=True, text=True, timeout=60)
    return listing.returncode == 0 and "=>" in listing.stdout


def _job_files(job: GuestJob) -> Iterable[tuple[str, str]]:
    quoted = {name: "'" + value.replace("'", "'\\''") + "'" for name, value in sorted(job.environment.items())}
    yield "line", job.line + "\n"
    yield "environment", "".join(f"export {name}={value}\n" for name, value in quoted.items())
    yield "output_limit", f"{job.output_limit}\n"
    yield "snapshot", "\n".join(job.snapshot) + "\n"


class _Cpio:
    """Writes entries; owners and times are zero."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._inode = 0
        self._folders: set[str] = set()

    def folder(self, name: str) -> None:
        if name and name not in self._folders:
            self.folder(name.rpartition("/")[0])
            self._folders.add(name)
            self._entry(name, stat.S_IFDIR | 0o755)

    def device(self, name: str, major: int, minor: int) -> None:
        self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def file(self, name: str, content: bytes, *, executable: bool = False) -> None:
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def link(self, name: str, to: str) -> None:
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFLNK | 0o777, to.encode("utf-8", "surrogateescape"))

    def tree(self, root: Path, prefix: str) -> None:
        for path in sorted(root.rglob("*")):
            name = prefix + str(path.relative_to(root))
            if path.is_symlink():
                self.link(name, os.readlink(path))  # noqa: PTH115 - as it stands
            elif path.is_dir():
                self.folder(name)
            elif path.is_file():
                self.file(name, path.read_bytes(), executable=bool(path.stat().st_mode & stat.S_IXUSR))

    def end(self) -> None:
        self._entry("TRAILER!!!", 0)

    def _entry(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        raw = name.encode("utf-8", "surrogateescape") + b"\0"
        numbers = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(raw), 0)
        header = b"070701" + b"".join(b"%08X" % number for number in numbers)
        self._out.write(header + raw + b"\0" * (-(len(header) + len(raw)) % 4))
        self._out.write(content + b"\0" * (-len(content) % 4))
