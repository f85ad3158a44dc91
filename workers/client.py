"""The server, as a worker sees it: claims, heartbeats, artifacts and deliveries over HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeVar

import requests

from bisectbot.config import Config
from bisectbot.errors import InfraError, UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import (
    BuildAssignment,
    BuildClaim,
    Heartbeat,
    HeartbeatReply,
    RunAssignment,
    RunClaim,
)
from bisectbot.results.delivery import BuildDelivery, RunDelivery

CONNECT_S, READ_S = 5.0, 60.0  # real seconds: a server that has not answered by then is as good as gone
CHUNK = 2**20

T = TypeVar("T")


class HeldError(InfraError):
    """The host is in another worker's hands until its lease ends."""


class Client:
    """One connection to the server at ``url``; not to be shared between threads.

    Every method raises InfraError when the server cannot be reached, is not well, or says something unexpected.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False  # a .netrc or proxy of the machine must not change who we are
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    @classmethod
    def of(cls, config: Config) -> Client:
        return cls(config.server.url, token(config))

    def claim_run(self, claim: RunClaim) -> RunAssignment | None:
        """The best run for the host now, or None. Raises HeldError when another worker has the host."""
        answer = self._send("POST", "claim/run", wire.encode(claim), also=(409,))
        if answer.status_code == 409:
            raise HeldError(f"{claim.host} is held by another worker until its lease ends")
        return None if answer.status_code == 204 else self._decoded(RunAssignment, answer)

    def claim_build(self, claim: BuildClaim) -> BuildAssignment | None:
        answer = self._send("POST", "claim/build", wire.encode(claim))
        return None if answer.status_code == 204 else self._decoded(BuildAssignment, answer)

    def heartbeat(self, beat: Heartbeat) -> HeartbeatReply:
        return self._decoded(HeartbeatReply, self._send("POST", "heartbeat", wire.encode(beat)))

    def deliver(self, delivery: RunDelivery | BuildDelivery) -> bool:
        """Whether the server took it (or had it already); False: it never will."""
        kind = "run" if isinstance(delivery, RunDelivery) else "build"
        return self._send("POST", f"deliver/{kind}", wire.encode(delivery), also=(410,)).status_code != 410

    def put_artifact(self, sha256: str, file: Path) -> None:
        """Upload ``file`` unless the server has it."""
        if self._send("HEAD", f"artifact/{sha256}", also=(404,)).status_code == 404:
            with file.open("rb") as body:
                self._send("PUT", f"artifact/{sha256}", body)

    def get_artifact(self, sha256: str, file: Path) -> None:
        """Download into ``file``; what arrives is checked against ``sha256``."""
        digest = hashlib.sha256()
        answer = self._send("GET", f"artifact/{sha256}", stream=True)
        try:
            with answer, file.open("wb") as out:
                for chunk in answer.iter_content(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
        except requests.RequestException as error:
            raise InfraError(f"{self.url}: artifact {sha256} broke off: {error}") from None
        if digest.hexdigest() != sha256:
            raise InfraError(f"{self.url}: artifact {sha256} arrived damaged")

    def close(self) -> None:
        self._session.close()

    def _send(
        self, method: str, path: str, body: object = None, *, also: tuple[int, ...] = (), stream: bool = False
    ) -> requests.Response:
        url = f"{self.url}/worker/{path}"
        try:
            answer = self._session.request(
                method,
                url,
                data=body,  # type: ignore[arg-type]
                headers={"Content-Type": "application/json" if isinstance(body, bytes) else "application/octet-stream"},
                timeout=(CONNECT_S, READ_S),
                allow_redirects=False,
                stream=stream,
            )
        except requests.RequestException as error:
            raise InfraError(f"{url} cannot be reached: {type(error).__name__}") from None
        if answer.status_code in {200, 201, 204, *also}:
            return answer
        text = "" if stream else " ".join(answer.text[:200].split())
        answer.close()
        if answer.status_code in {401, 403}:
            raise InfraError(f"{url}: the server does not know our token; check server.token_file on both sides")
        raise InfraError(f"{url}: status {answer.status_code} {text}".rstrip())

    def _decoded(self, kind: type[T], answer: requests.Response) -> T:
        try:
            return wire.decode(kind, answer.content)
        except UserError as error:
            raise InfraError(f"{answer.url}: {error}; do server and worker have the same version?") from None


def token(config: Config) -> str:
    """The secret that the workers and the server share. Raises UserError when its file cannot be read."""
    file = config.token_path
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file}: cannot be read ({error}); copy it from the server, or set server.token_file"
        ) from None
