"""The lowest rung: letters as files, to be looked at with any mail program."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from bisectbot.errors import InfraError
from bisectbot.mail.message import archive_key


def write(raw: bytes, message_id: str, directory: Path) -> Path:
    """Write ``raw`` as ``<message id>.eml`` below ``directory``, whole or not at all; again changes nothing.

    Raises InfraError if the disk does not take it.
    """
    name = re.sub(r"[^A-Za-z0-9@._+-]", "_", archive_key(message_id))
    path = directory / f"{name}.eml"
    unfinished = directory / f".{name}.{os.getpid()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise InfraError(f"mail file {path}: {error.strerror}") from error
    return path
