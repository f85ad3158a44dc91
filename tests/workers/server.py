"""A server that does what a test tells it, over real HTTP: the API that workers speak, its state in plain lists."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

TOKEN = "sesame"


class Server:
    """``runs`` and ``builds`` are handed out first come first served; what comes back is in ``delivered``.

    A test reads and changes the lists at will. ``cancelled`` runs are told to stop, deliveries of ``refused`` runs are
    refused for good, ``sick`` answers everything with status 503.
    """

    def __init__(self) -> None:
        self.runs: list[RunAssignment] = []
        self.builds: list[BuildAssignment] = []
        self.claims: list[RunClaim | BuildClaim] = []
        self.beats: list[Heartbeat] = []
        self.delivered: list[RunDelivery | BuildDelivery] = []
        self.artifacts: dict[str, bytes] = {}
        self.puts = 0
        self.cancelled: set[int] = set()
        self.refused: set[int] = set()
        self.held: set[str] = set()
        self.sick = False
        self.port = 0
        self._lock = threading.Lock()
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        handler = type("Bound", (_Handler,), {"served": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._http.daemon_threads = False
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    def down(self) -> None:
        """Away: nobody listens on the port any more."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def store(self, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        self.artifacts[sha256] = content
        return sha256

    def text(self, delivery: RunDelivery | BuildDelivery, name: str) -> str:
        """The text of a delivery's artifact."""
        (ref,) = [ref for ref in delivery.artifacts if ref.name == name]
        assert ref.size == len(self.artifacts[ref.sha256])
        return self.artifacts[ref.sha256].decode()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self.sick:
            return 503, b"starting up"
        with self._lock:
            match (method, *path.split("/")[1:]):
                case "POST", "worker", "claim", "run":
                    claim = wire.decode(RunClaim, body)
                    self.claims.append(claim)
                    if claim.host in self.held:
                        return 409, b""
                    return self._next([run for run in self.runs if run.host == claim.host], self.runs)
                case "POST", "worker", "claim", "build":
                    self.claims.append(wire.decode(BuildClaim, body))
                    return self._next(list(self.builds), self.builds)
                case "POST", "worker", "heartbeat":
                    beat = wire.decode(Heartbeat, body)
                    self.beats.append(beat)
                    return 200, wire.encode(HeartbeatReply(beat.id not in self.cancelled, "cancelled by a person"))
                case "HEAD" | "GET", "worker", "artifact", sha256:
                    return (200, self.artifacts[sha256]) if sha256 in self.artifacts else (404, b"")
                case "PUT", "worker", "artifact", sha256:
                    assert hashlib.sha256(body).hexdigest() == sha256
                    self.artifacts[sha256] = body
                    self.puts += 1
                    return 204, b""
                case "POST", "worker", "deliver", kind:
                    delivery = wire.decode(RunDelivery, body) if kind == "run" else wire.decode(BuildDelivery, body)
                    return self._take(delivery)
        return 404, b"no such path"

    def _next(self, fitting: list[RunAssignment] | list[BuildAssignment], of: list[Any]) -> tuple[int, bytes]:
        if not fitting:
            return 204, b""
        of.remove(fitting[0])
        return 200, wire.encode(fitting[0])

    def _take(self, delivery: RunDelivery | BuildDelivery) -> tuple[int, bytes]:
        number = delivery.run if isinstance(delivery, RunDelivery) else delivery.build
        if number in self.refused:
            return 410, b"superseded"
        missing = [ref.sha256 for ref in delivery.artifacts if ref.sha256 not in self.artifacts]
        assert not missing, missing
        self.delivered.append(delivery)
        return 204, b""

    def again(self, run: RunAssignment) -> None:
        """As the reaper does when a lease ended: the run may be claimed again, under a new token."""
        self.runs.append(replace(run, token=run.token + 1))


class _Handler(BaseHTTPRequestHandler):
    served: Server
    protocol_version = "HTTP/1.0"

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, answer = 401, b"who are you?"
        else:
            status, answer = self.served.answer(self.command, self.path, body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = _any  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass
