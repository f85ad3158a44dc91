"""Power and console through labgrid, used at once as a boot uses them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from bisectbot.errors import InfraError
from workers.hosts.machine import Machine


@pytest.fixture
def port() -> Iterator[int]:
    """A console server whose box never stops speaking."""
    over = threading.Event()

    def speak() -> None:
        with server.accept()[0] as listener, contextlib.suppress(OSError):
            while not over.wait(0.01):
                listener.sendall(b"[ 1.0] word\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=speak)
        thread.start()
        yield server.getsockname()[1]
        over.set()
        thread.join()


def test_the_console_is_heard_while_power_is_switched(port: int):
    """labgrid keeps one stack of steps for all threads: the console's read ended the switch's step, and both failed."""
    power = {"cmd_on": "sleep 0.3", "cmd_off": "sleep 0.3", "cmd_cycle": "sleep 0.5"}
    target = {
        "resources": {"NetworkSerialPort": {"host": "127.0.0.1", "port": port, "protocol": "raw"}},
        "drivers": {"SerialDriver": {}, "ExternalPowerDriver": power},
    }
    console, switch, over = Machine("console", target), Machine("box", target), threading.Event()
    heard, broken = bytearray(), []

    def listen() -> None:
        while not over.is_set():
            try:
                heard.extend(console.read())
            except InfraError as error:
                broken.append(str(error))
                return

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        for _ in range(4):
            switch.power("cycle")
    finally:
        over.set()
        listener.join()
        console.close()
        switch.close()
    assert broken == []
    assert heard.startswith(b"[ 1.0] word\n")
