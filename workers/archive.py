"""What a build leaves, as one file: packed so that equal content gives equal bytes, unpacked, and cached."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import zstandard

from bisectbot.errors import InfraError
from workers.client import Client

LEVEL = 3  # zstd: deeper costs a builder more than a wire


def pack(root: Path, names: Iterable[str], archive: Path) -> str:
    """Write the files ``names`` (relative to ``root``) into ``archive``, a tar in zstd; returns their signature.

    The signature, 64 hex digits, depends on names, contents, links and execute bits alone: equal code, equal
    signature. Times and owners are left out of both.
    """
    signature = hashlib.sha256()
    with (
        archive.open("wb") as raw,
        zstandard.ZstdCompressor(LEVEL).stream_writer(raw) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(set(names)):
            path = root / name
            member = tarfile.TarInfo(name)
            if path.is_symlink():
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115 - as it stands
                _sign(signature, name, "link", member.linkname)
                tar.addfile(member)
            elif path.is_file():
                member.mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
                member.size = path.stat().st_size
                with path.open("rb") as content:
                    _sign(signature, name, oct(member.mode), hashlib.file_digest(content, "sha256").hexdigest())
                    content.seek(0)
                    tar.addfile(member, content)
    return signature.hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """Put what ``archive`` holds into ``folder``, which must not exist. Raises InfraError for a damaged archive."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent, ignore_cleanup_errors=True) as new:
        inside = Path(new) / "tree"
        inside.mkdir()
        try:
            with archive.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
                _extract(plain, inside)
        except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
            raise InfraError(f"{archive} is damaged: {error}") from None
        except OSError as error:
            raise InfraError(f"{folder} cannot be unpacked: {error.strerror}") from error
        inside.rename(folder)


def matching(tree: Path, patterns: Iterable[str]) -> Iterator[str]:
    """The files below ``tree`` that one of the glob ``patterns`` fits (``bin/*``, ``**/*.so``), as relative names."""
    for pattern in patterns:
        for path in tree.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                yield from (str(p.relative_to(tree)) for p in path.rglob("*") if p.is_symlink() or p.is_file())
            else:
                yield str(path.relative_to(tree))


class Archives:
    """The archives that this worker downloaded, by SHA-256; the ``keep`` last used stay."""

    def __init__(self, folder: Path, keep: int = 16) -> None:
        self.folder = folder
        self.keep = keep
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, sha256: str, client: Client) -> Path:
        """The archive's file, from the server if need be. Raises InfraError."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise InfraError(f"{sha256!r:.80} is no SHA-256 of an artifact")
        file = self.folder / sha256
        if not file.exists():
            with tempfile.TemporaryDirectory(prefix=".get-", dir=self.folder) as new:
                client.get_artifact(sha256, Path(new) / sha256)
                (Path(new) / sha256).rename(file)
        file.touch()
        self._forget()
        return file

    def _forget(self) -> None:
        used = sorted((file for file in self.folder.iterdir() if file.is_file()), key=lambda file: file.stat().st_mtime)
        for file in used[: -self.keep]:
            file.unlink()


def _sign(signature: hashlib._Hash, *words: str) -> None:
    signature.update("\0".join([*words, ""]).encode("utf-8", "surrogateescape"))


def _extract(plain: IO[bytes], inside: Path) -> None:
    links: list[tuple[Path, str]] = []
    with tarfile.open(fileobj=plain, mode="r|") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise tarfile.TarError(f"it holds a file outside of itself, {member.name!r}")
            target = inside / name
            target.parent.mkdir(parents=True, exist_ok=True)
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                with target.open("xb") as out:
                    shutil.copyfileobj(content, out)
                target.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)
            elif member.issym():
                links.append((target, member.linkname))
    for target, to in links:  # last: nothing is ever written through one
        target.symlink_to(to)
