"""What a guest sends over its second serial port: records, each a line ``bisectbot NAME SIZE`` and SIZE bytes."""

from __future__ import annotations

import io
import re
import tarfile

_HEADER = re.compile(rb"bisectbot (\w+) (\d+)\n")
LIMIT = 256 * 2**20
"""Bytes that one record may have; more than that is noise on the line."""


class Records:
    """Takes bytes as they arrive, in pieces of any size, and gives records as they are whole.

    Bytes that belong to no record (a boot loader that speaks to every port) are skipped. Nothing is ever raised for
    what a guest sends.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        self._bytes += data
        found = []
        while (record := self._next()) is not None:
            found.append(record)
        return found

    def _next(self) -> tuple[str, bytes] | None:
        header = _HEADER.search(self._bytes)
        if header is None:
            self._skip(max(0, len(self._bytes) - 64))  # a header may have arrived in part
            return None
        name, size, start = header[1].decode(), int(header[2]), header.end() - header.start()
        self._skip(header.start())  # from here on `header` is of bytes that have moved
        if size > LIMIT:
            self._skip(start)
            return self._next()
        if len(self._bytes) < start + size:
            return None
        content = bytes(self._bytes[start : start + size])
        del self._bytes[: start + size]
        return name, content

    def _skip(self, count: int) -> None:
        del self._bytes[:count]
        self.skipped += count


def files_of(tar: bytes) -> dict[str, bytes]:
    """The regular files of a tar (gzip or not), by absolute path; what can be read of a damaged one."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:*") as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() else None
                if content is not None:
                    found["/" + member.name.removeprefix("./").lstrip("/")] = content.read()
    except (tarfile.TarError, EOFError, OSError, ValueError):
        pass
    return found
