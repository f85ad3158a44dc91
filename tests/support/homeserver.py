"""A real Matrix homeserver on loopback: Synapse from PyPI, in a virtual environment of its own."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import subprocess
import sys
import time
import urllib.request
import venv
from pathlib import Path
from typing import Any

import yaml

from tests.support.ircd import free_port
from tests.support.processes import end

VERSION = "1.163.2"
HOME = Path(sys.prefix) / "homeserver"  # beside the tests' own environment, so that it is installed once
PASSWORD = "a password of nobody's"


def python() -> Path:
    """The interpreter that has Synapse; installed now if it is not there yet."""
    found, ready = HOME / "bin" / "python", HOME / f"ready-{VERSION}"
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            venv.create(HOME, with_pip=True)
            command = [str(found), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*command, f"matrix-synapse=={VERSION}"], check=True, timeout=900)
            ready.touch()
    return found


class Homeserver:
    """``localhost``, with an account for each of ``users``."""

    def __init__(self, folder: Path, users: tuple[str, ...]) -> None:
        interpreter, config = str(python()), folder / "hs.yaml"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        generate = ["--server-name", "localhost", "--config-path", str(config), "--generate-config"]
        home = [interpreter, "-m", "synapse.app.homeserver"]
        subprocess.run(
            [*home, *generate, "--report-stats=no"], check=True, cwd=folder, capture_output=True, timeout=120
        )
        settings: dict[str, Any] = yaml.safe_load(config.read_text())
        quick = {"per_second": 1000, "burst_count": 1000}
        settings |= {
            "listeners": [{"port": port, "type": "http", "bind_addresses": ["127.0.0.1"],
                           "resources": [{"names": ["client"]}]}],
            "rc_message": quick, "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), quick),
            "rc_invites": dict.fromkeys(("per_room", "per_user", "per_issuer"), quick), "rc_registration": quick,
            "rc_joins": dict.fromkeys(("local", "remote"), quick),
            "suppress_key_server_warning": True, "federation_domain_whitelist": [], "trusted_key_servers": [],
            "enable_registration": False,
        }  # fmt: skip
        config.write_text(yaml.safe_dump(settings))
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen([*home, "-c", str(config)], cwd=folder, stdout=output, stderr=output)
        self._wait(folder / "output")
        for user in users:
            self._register(user, str(settings["registration_shared_secret"]))

    def _register(self, user: str, shared: str) -> None:
        url = f"{self.url}/_synapse/admin/v1/register"
        with urllib.request.urlopen(url, timeout=60) as answer:
            nonce = json.load(answer)["nonce"]
        told = f"{nonce}\0{user}\0{PASSWORD}\0notadmin".encode()
        mac = hmac.new(shared.encode(), told, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": PASSWORD, "admin": False, "mac": mac}
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).close()

    def _wait(self, output: Path) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/_matrix/client/versions", timeout=5).close()
            except OSError:
                assert self._process.poll() is None, output.read_text()[-2000:]
                assert time.monotonic() < deadline, output.read_text()[-2000:]
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        end(self._process)


class Member:
    """Somebody on the homeserver, over plain HTTP: what any client does."""

    def __init__(self, server: Homeserver, user: str) -> None:
        self._url, self._token, self._count = server.url, "", 0
        self.id = f"@{user}:localhost"
        who = {"type": "m.id.user", "user": user}
        login = {"type": "m.login.password", "identifier": who, "password": PASSWORD}
        self._token = self.call("POST", "login", login)["access_token"]
        self._since = ""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self._url}/_matrix/client/v3/{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def room(self, *invited: str) -> str:
        """A new room with these invited."""
        return str(self.call("POST", "createRoom", {"preset": "private_chat", "invite": list(invited)})["room_id"])

    def say(self, room: str, text: str, **more: Any) -> None:
        self._count += 1
        content = {"msgtype": "m.text", "body": text, **more}
        self.call("PUT", f"rooms/{room}/send/m.room.message/{self.id[1:4]}{self._count}", content)

    def messages(self, room: str) -> list[dict[str, Any]]:
        """What was said in the room, oldest first."""
        found = self.call("GET", f"rooms/{room}/messages?dir=b&limit=100")["chunk"]
        return [event for event in reversed(found) if event["type"] == "m.room.message"]

    def wait(self, room: str, text: str, seconds: float = 60.0) -> dict[str, Any]:
        """The first message that holds ``text``, once it is there."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for event in self.messages(room):
                if text in event["content"].get("body", ""):
                    return event
            time.sleep(0.2)
        raise AssertionError(f"nobody says {text!r}: {[e['content'].get('body') for e in self.messages(room)]}")
