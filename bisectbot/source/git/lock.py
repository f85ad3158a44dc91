"""One process at a time in a mirror or a work tree."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from bisectbot.errors import InfraError


@contextlib.contextmanager
def locked(path: Path, *, patience: float = 3600.0) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path``; it ends with the process, however that ends.

    Raises InfraError when somebody else holds it for longer than ``patience`` s.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("a") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise InfraError(f"{path} has been locked for {patience:g} s by another process") from None
                time.sleep(0.05)
        yield
