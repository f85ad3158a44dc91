"""Locks of this machine: flock files, free as soon as the last process that holds one is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bisectbot.errors import InfraError, UserError


def machine_folder() -> Path:
    """Where all workers of this machine find the same lock files, whatever their state folders.

    Raises UserError when there is such a place but it cannot be written: a private one would silently lock nothing.
    """
    shared = Path("/run/lock")
    if os.access(shared, os.W_OK):
        return shared
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if session and os.access(session, os.W_OK):
        return Path(session)
    if shared.is_dir():
        raise UserError(f"{shared} cannot be written; allow it (systemd: ReadWritePaths={shared}), locks live there")
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def exclusive(names: Iterable[str], folder: Path | None = None) -> Iterator[tuple[int, ...]]:
    """Hold the machine-wide locks ``names`` (empty ones are none), waiting for each; yields their descriptors.

    A process that inherits a descriptor holds the lock as well.
    """
    with contextlib.ExitStack() as held:
        yield tuple(
            held.enter_context(_flock((folder or machine_folder()) / f"bisectbot-{name}.lock", fcntl.LOCK_EX))
            for name in sorted(set(names) - {""})
        )


@contextlib.contextmanager
def alone(file: Path, who: str) -> Iterator[None]:
    """Hold the lock ``file`` or raise UserError: ``who`` is running already."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield
    except BlockingIOError:
        raise UserError(f"{who} is running already with the state folder {file.parent}; stop it first") from None


@contextlib.contextmanager
def _flock(file: Path, how: int) -> Iterator[int]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)  # a lock file of another user can still be locked
    except FileNotFoundError:
        descriptor = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InfraError(f"lock file {file} cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)
