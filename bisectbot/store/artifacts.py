"""Files by content: raw logs, build archives, everything too large for a row."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bisectbot.errors import InfraError, UserError


class Artifacts:
    """A folder of files named by their SHA-256. Writing is atomic; writing the same content again changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha256: str) -> Path:
        """Where the content with this digest lies, or would; raises UserError if it is no digest."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise UserError(f"{sha256[:80]!r} is no SHA-256 in lower-case hex")
        return self.folder / sha256[:2] / sha256[2:]

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def put(self, chunks: Iterable[bytes], expected: str | None = None) -> str:
        """Store the concatenated ``chunks`` and return their digest.

        Raises UserError if that is not ``expected``, InfraError if the disk does not take it. Nothing half-written
        is ever visible.
        """
        digest = hashlib.sha256()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".incoming-")
            temporary = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    for chunk in chunks:
                        digest.update(chunk)
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                sha256 = digest.hexdigest()
                if expected is not None and sha256 != expected:
                    raise UserError(
                        f"the content's SHA-256 is {sha256}, not {expected}: damaged on the way, send again"
                    )
                target = self.path(sha256)
                target.parent.mkdir(exist_ok=True)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise InfraError(f"artifact store {self.folder}: {error.strerror}; free space or mend the disk") from error
        return sha256

    def read(self, sha256: str) -> bytes:
        """The content; raises InfraError if it is not there."""
        try:
            return self.path(sha256).read_bytes()
        except OSError as error:
            raise InfraError(f"artifact {sha256[:12]} cannot be read: {error.strerror}") from error
