"""The one place that runs git. Everything a worker may know of `bisectbot.source` is here."""

from bisectbot.source.git.checkout import PUBLISHED, Checkout
from bisectbot.source.git.command import (
    PATIENCE,
    SILENCE,
    TIMEOUT,
    Git,
    GitError,
    check_name,
    check_url,
    corrupt,
    decode,
    encode,
    is_sha,
    readable,
)
from bisectbot.source.git.lock import locked

__all__ = [
    "PATIENCE",
    "PUBLISHED",
    "SILENCE",
    "TIMEOUT",
    "Checkout",
    "Git",
    "GitError",
    "check_name",
    "check_url",
    "corrupt",
    "decode",
    "encode",
    "is_sha",
    "locked",
    "readable",
]
