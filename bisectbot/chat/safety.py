"""What stands between the network and the desk: secrets, replays, floods, and where we may connect to ourselves."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
import urllib.parse
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from sqlalchemy import delete

from bisectbot.errors import InfraError, UserError
from bisectbot.mail.incoming import patch_of
from bisectbot.service.context import Context
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import Lease

BODY_LIMIT = 256 * 1024
"""Bytes of a request that chat takes."""
REMEMBER_S = 900.0
"""Real seconds for which a message is known: longer than anything stays valid (Slack: 300 s) or is sent again."""
_ONCE = "chat:once:"


def secret(path: Path) -> str:
    """A secret from its file. Raises InfraError if it cannot be read: an operator's to mend."""
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InfraError(f"secret {path} cannot be read: {error}") from error
    if not found:
        raise InfraError(f"secret {path} is empty; write it")
    return found


def known(given: str, files: Iterable[Path]) -> bool:
    """Whether ``given`` is one of the secrets, compared in constant time; all of them are, whichever fits."""
    fits = [hmac.compare_digest(given.encode("utf-8", "replace"), secret(file).encode()) for file in files]
    return any(fits)


def first_time(context: Context, what: str) -> bool:
    """Whether ``what`` (a signature, an event's id) is new; it is remembered by all processes for a while."""
    name = _ONCE + hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()
    with context.database.write() as session:
        session.execute(delete(Lease).where(Lease.name.startswith(_ONCE), Lease.until < now(session)))
        # A holder that asks again keeps its lease: so everybody who asks is somebody else.
        return leases.acquire(session, name, f"{time.monotonic_ns()} {threading.get_ident()}", REMEMBER_S) is not None


@dataclass
class Pace:
    """At most ``most`` messages of a key in ``per`` real seconds; the keys that are quiet are forgotten."""

    most: int
    per: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _seen: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows(self, key: str) -> bool:
        """Count a message of ``key``; False if it is one too many."""
        with self._lock:
            at = self.clock()
            times = self._seen.setdefault(key, deque())
            self._seen.move_to_end(key)
            while times and times[0] <= at - self.per:
                times.popleft()
            if len(self._seen) > 10_000:
                self._seen.popitem(last=False)
            if len(times) >= self.most:
                return False
            times.append(at)
            return True


@dataclass(frozen=True)
class Outbound:
    """Connections that we make, to the ``origins`` (``https://host[:port]``) alone, never following a redirect."""

    origins: frozenset[str]
    timeout: float = 10.0

    def post(self, url: str, body: dict[str, Any], *, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Post JSON; returns the JSON object that came back, {} for anything else."""
        return self._json(self._send("POST", url, headers=headers, json=body))

    def request(self, method: str, url: str, **how: Any) -> dict[str, Any]:
        """Any other request, answered in JSON."""
        return self._json(self._send(method, url, **how))

    def get(self, url: str, most: int) -> bytes:
        """Fetch a document of at most ``most`` bytes. Raises UserError for one that is not there or too large."""
        with self._send("GET", url, stream=True) as response:
            body = b""
            for chunk in response.iter_content(65536):
                body += chunk
                if len(body) > most:
                    raise UserError(f"{url} is larger than {most} bytes; send the patch itself")
            return body

    def _send(self, method: str, url: str, **how: Any) -> requests.Response:
        parts = urllib.parse.urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" not in self.origins:
            raise UserError(f"{url[:100]!r} is not where I may connect to; operators list such places")
        try:
            response = requests.request(method, url, allow_redirects=False, timeout=self.timeout, **how)
        except requests.RequestException as error:
            raise InfraError(f"{parts.netloc} does not answer: {type(error).__name__}") from error
        if response.status_code == 429:
            raise Later(f"{parts.netloc} asks for patience", _seconds(response.headers.get("Retry-After", "")))
        if response.status_code >= 500:
            raise InfraError(f"{parts.netloc} answers {response.status_code}")
        if response.status_code >= 300:
            raise UserError(f"{url[:100]}: the server answers {response.status_code}")
        return response

    @staticmethod
    def _json(response: requests.Response) -> dict[str, Any]:
        try:
            found = response.json()
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Later(InfraError):  # noqa: N818 - it is no error of anybody's
    """The other side wants fewer messages: try again after ``wait`` real seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


def _seconds(text: str) -> float:
    return min(3600.0, max(1.0, float(text))) if text.replace(".", "", 1).isdigit() else 30.0


def origin(url: str) -> str:
    """``https://host:port`` of an address."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def fetching(archives: tuple[str, ...]) -> Callable[[str], bytes]:
    """Get the patch in the mail with a Message-ID, from the first archive that has it."""
    outbound = Outbound(frozenset(origin(archive) for archive in archives))

    def fetch(message_id: str) -> bytes:
        why = "no archive is configured"
        for archive in archives:
            try:
                raw = outbound.get(archive.replace("{id}", urllib.parse.quote(message_id, safe="@")), 2_000_000)
            except (UserError, InfraError) as error:
                why = str(error)
                continue
            if patch := patch_of(raw):
                return patch.encode("utf-8", "surrogateescape")
            raise UserError(f"no patch found in the mail {message_id}")
        raise UserError(f"the mail {message_id} was not found: {why}")

    return fetch
