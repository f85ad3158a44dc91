"""The signature of a kernel: equal for two commits whose code is the same.

It covers what is in memory when the kernel, its modules and its boot wrapper run: each section's name, address and
content. In the content the release (it carries the commit) and the build-ids (they depend on the release) are zeroed;
both have the same length for every commit, so they move nothing. Debug information is not in memory and not covered:
a changed comment changes no signature, unless it moves the line of a WARN or BUG, whose number is in memory.

The boot wrapper of x86 is covered by its objects. Two of them follow from the length of the compressed kernel, which
differs with the release: ``piggy.o`` holds that kernel, ``header.o`` its length; the first is covered already, the
second by its source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from bisectbot.errors import InfraError
from workers.builders import elf

_PAYLOAD, _HEADER = "piggy.o", "header.o"


def imprint(tree: Path, out: Path, release: str) -> str:
    """The signature of what was built from ``tree`` in ``out``, 64 hex digits. Raises InfraError: a damaged file."""
    signature = hashlib.sha256()
    try:
        for path in (out / "vmlinux", *_modules(out), *_wrapper(out)):
            name = str(path.relative_to(out))
            if path.name == _HEADER:
                source = (tree / name).with_suffix(".S")
                _add(signature, name, source.read_bytes() if source.exists() else b"")
            else:
                _cover(signature, name, path, release)
    except (OSError, ValueError) as error:
        raise InfraError(f"what was built cannot be read: {error}") from error
    return signature.hexdigest()


def _modules(out: Path) -> Iterator[Path]:
    order = out / "modules.order"
    names = order.read_text(encoding="utf-8").split() if order.exists() else []
    for name in sorted(set(names)):
        yield (out / name).with_suffix(".ko")


def _wrapper(out: Path) -> Iterator[Path]:
    for path in sorted(out.glob("arch/*/boot/**/*.o")):
        if path.name not in {_PAYLOAD, "built-in.o"}:
            yield path


def _cover(signature: hashlib._Hash, name: str, path: Path, release: str) -> None:
    own_id = elf.build_id(path)
    for section in elf.sections(path):
        if section.in_memory:
            data = section.data
            for secret in (release.encode(), own_id):
                data = data.replace(secret, bytes(len(secret))) if secret else data
            _add(signature, f"{name} {section.name} {section.address} {section.size}", data)


def _add(signature: hashlib._Hash, name: str, data: bytes) -> None:
    signature.update(f"{name}\0{len(data)}\0".encode())
    signature.update(data)
