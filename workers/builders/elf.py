"""As much of an ELF file as tells what is in memory when it runs: its sections, and its build-id."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ALLOC, NOBITS, NOTE = 0x2, 8, 7
_BUILD_ID = 3  # type of the note; its owner is "GNU"


@dataclass(frozen=True, slots=True)
class Section:
    """``data`` is empty where the file holds none of its ``size`` bytes (bss)."""

    name: str
    kind: int
    flags: int
    address: int
    size: int
    data: bytes

    @property
    def in_memory(self) -> bool:
        return bool(self.flags & ALLOC)


def sections(path: Path) -> Iterator[Section]:
    """Every section in the file's order; only those that are in memory have their data read.

    Raises ValueError when the file is no whole ELF file of 64 or 32 bits.
    """
    with path.open("rb") as file:
        ident = file.read(16)
        if ident[:4] != b"\x7fELF" or ident[4] not in {1, 2} or ident[5] not in {1, 2}:
            raise ValueError(f"{path} is no ELF file")
        order, wide = "<" if ident[5] == 1 else ">", ident[4] == 2
        header = struct.Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
        entry = struct.Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
        try:
            fields = header.unpack(file.read(header.size))
            offset, count, names_at = fields[5], fields[11], fields[12]
            file.seek(offset)
            rows = [entry.unpack(file.read(entry.size)) for _ in range(count)]
            file.seek(rows[names_at][4])
            names = file.read(rows[names_at][5])
        except (struct.error, IndexError):
            raise ValueError(f"{path} is no whole ELF file") from None
        for name, kind, flags, address, start, size, *_ in rows:
            data = b""
            if flags & ALLOC and kind != NOBITS:
                file.seek(start)
                data = file.read(size)
                if len(data) != size:
                    raise ValueError(f"{path} is no whole ELF file")
            yield Section(names[name : names.index(b"\0", name)].decode(), kind, flags, address, size, data)


def build_id(path: Path) -> bytes:
    """The linker's identity of the file, b"" if it gave it none. Raises ValueError."""
    with path.open("rb") as file:
        order = ">" if file.read(6)[5:6] == b"\x02" else "<"
    word = struct.Struct(f"{order}III")
    for section in sections(path):
        rest = section.data if section.kind == NOTE else b""
        while len(rest) >= word.size:
            owner_size, size, kind = word.unpack_from(rest)
            owner_end = word.size + -(-owner_size // 4) * 4
            end = owner_end + -(-size // 4) * 4
            if kind == _BUILD_ID and rest[word.size : word.size + owner_size] == b"GNU\0":
                return rest[owner_end : owner_end + size]
            rest = rest[end:]
    return b""
