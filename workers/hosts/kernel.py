"""A kernel in an unpacked build: where its image is, and how a machine proves that it runs this one and no other."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bisectbot.errors import InfraError, Untestable
from workers import kernel as described

IMAGES = ("bzImage", "vmlinuz", "arch/x86/boot/bzImage", "boot/vmlinuz*", "vmlinuz-*", "Image", "Image.gz")
"""Where builders leave the image, best first (globs)."""
MODULES = ("modules.tar.xz", "modules.tar.zst", "modules.tar.gz", "modules.tar")
INITRDS = ("initrd.img", "initrd", "boot/initrd.img-*")

NOTES = "/sys/kernel/notes"
_NT_GNU_BUILD_ID = 3


@dataclass(frozen=True)
class Kernel:
    """``release`` is as ``uname -r`` prints it, "" where the image does not tell; ``build_id`` in hex, "" if unknown.
    ``modules`` is a tar of ``lib/modules``, if there are any."""

    image: Path
    release: str = ""
    build_id: str = ""
    modules: Path | None = None
    initrd: Path | None = None


def find(tree: Path) -> Kernel | None:
    """The kernel that a build's folder holds, or None: then it is a build of something else."""
    initrd = _first(tree, INITRDS)
    if (tree / described.DESCRIPTION).is_file():
        return _described(tree, initrd)
    image = _first(tree, IMAGES)
    if image is None:
        return None
    return Kernel(image, release(image), "", _first(tree, MODULES), initrd)


def _described(tree: Path, initrd: Path | None) -> Kernel:
    told = described.read(tree)
    modules = tree / told.modules if told.modules else None
    return Kernel(tree / told.image, told.release, told.build_id, modules, initrd)


def need(tree: Path) -> Kernel:
    """The kernel in ``tree``. Raises Untestable when the build made none."""
    kernel = find(tree)
    if kernel is None:
        raise Untestable(f"the build holds no kernel image; looked for {', '.join(IMAGES)}")
    return kernel


def release(image: Path) -> str:
    """The release that a bzImage says it is, "" for other formats. Raises InfraError when it cannot be read.

    The boot protocol's header is at 0x1f1; at 0x20e it holds the offset, less 0x200, of the version as text.
    """
    try:
        with image.open("rb") as file:
            head = file.read(0x10000)
    except OSError as error:
        raise InfraError(f"{image} cannot be read: {error.strerror}") from error
    if head[0x202:0x206] != b"HdrS":
        return ""
    start = int(struct.unpack_from("<H", head, 0x20E)[0]) + 0x200
    text = head[start : start + 512].split(b"\0")[0].decode("ascii", "replace")
    return text.split(" ")[0]


def build_id_of(notes: bytes) -> str:
    """The build-id in ``/sys/kernel/notes``, in hex, "" if there is none (ELF notes: sizes, type, name, content)."""
    for name, kind, content in _notes(notes):
        if name == b"GNU\0" and kind == _NT_GNU_BUILD_ID:
            return content.hex()
    return ""


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        name_at = at + 12
        at = name_at + name_size + (-name_size % 4)
        yield data[name_at : name_at + name_size], kind, data[at : at + size]
        at += size + (-size % 4)


def _first(tree: Path, patterns: tuple[str, ...]) -> Path | None:
    return next((found for pattern in patterns for found in sorted(tree.glob(pattern)) if found.is_file()), None)
