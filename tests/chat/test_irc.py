"""A connection that breaks where a real network rarely breaks it: the server is a script."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest

from bisectbot.chat.answer import Answer
from bisectbot.chat.irc import Client
from bisectbot.chat.process import Process
from bisectbot.chat.safety import Pace
from bisectbot.config.chat import Irc
from bisectbot.errors import InfraError
from tests.chat.conftest import MakeDesk


class Server:
    """It welcomes whoever connects and keeps what they say."""

    def __init__(self, listening: socket.socket) -> None:
        self._connection = listening.accept()[0]
        self._connection.settimeout(20)
        self._file = self._connection.makefile("rb")
        self.until("USER ")
        self.say(":irc.test 001 bisectbot :welcome")

    def say(self, line: str) -> None:
        self._connection.sendall(f"{line}\r\n".encode())

    def until(self, text: str) -> str:
        for raw in self._file:
            if text in (line := raw.decode()):
                return line.strip()
        raise AssertionError(f"nobody says {text!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._connection.close()


@contextmanager
def running(listening: socket.socket) -> Iterator[Client]:
    config = Irc(network="testnet", server="127.0.0.1", port=listening.getsockname()[1], tls=False, throttle=0.01)
    client = Client(config, lambda *_: [], Pace(1000))
    thread = threading.Thread(target=client.run)
    thread.start()
    try:
        yield client
    finally:
        client.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_what_could_not_leave_is_said_on_the_next_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, running(listening) as client:
        with Server(listening) as first:
            assert client.connected.wait(20)
            client.speak({"target": "ada"}, Answer("one"), "")
            assert first.until("NOTICE") == "NOTICE ada :one"
            assert client._socket is not None
            client._socket.shutdown(socket.SHUT_WR)  # it still hears, but cannot speak
            for text in ("two", "three"):
                client.speak({"target": "ada"}, Answer(text), "")
            for _ in range(20):
                first.say(":somebody PRIVMSG bisectbot :hello")
                time.sleep(0.05)
        with Server(listening) as second:
            assert second.until("NOTICE") == "NOTICE ada :two"
            assert second.until("NOTICE") == "NOTICE ada :three"


def test_a_connection_that_ends_for_good_ends_the_process(make: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    irc = {"network": "testnet", "server": "127.0.0.1", "port": 1, "tls": False}
    process = Process(make({"irc": irc})[1])
    monkeypatch.setattr(process.irc, "run", lambda: None)
    with pytest.raises(InfraError, match="the connection to irc ended for good"):
        process.run()
