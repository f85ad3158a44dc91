"""IRC against a real network: InspIRCd, Atheme's services, SASL, account-tag."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisectbot.chat.answer import Answer
from bisectbot.chat.commands import Desk
from bisectbot.chat.irc import Client
from bisectbot.chat.safety import Pace
from bisectbot.config.chat import Irc
from tests.support.certificate import self_signed
from tests.support.ircd import Human, Network, free_port

pytestmark = pytest.mark.real

SERVICE = """\
state: state
trees: {{mine: {{url: /nowhere/mine.git, branches: {{main: {{build: release, jobs: [parse]}}}}}}}}
builds: {{release: {{command: make, outputs: [bench]}}}}
jobs:
  parse: {{command: ./bench, groups: [here], kpis: {{parse.ops: {{unit: ops/s, better: more}}}}}}
hosts: {{here-1: {{group: here, driver: local}}}}
worker: {{state: state/worker}}
server: {{url: "http://127.0.0.1:{web}"}}
chat:
  irc:
    {{network: testnet, server: 127.0.0.1, port: {irc}, tls: false, password_file: irc.password, channels: ["#dev"],
     throttle: 0.01}}
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    made = Network(tmp_path_factory.mktemp("irc"))
    try:
        for account in ("bisectbot", "ada", "eve"):
            made.register(account, f"{account}-password")
        yield made
    finally:
        made.stop()


@pytest.fixture
def client(network: Network, desk: Desk, tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "irc.password").write_text("bisectbot-password\n")
    config = Irc(
        network="testnet",
        server="127.0.0.1",
        port=network.port,
        tls=False,
        password_file=tmp_path / "irc.password",
        channels=("#dev",),
        throttle=0.01,
    )
    made = Client(config, desk.hear, Pace(1000))
    thread = threading.Thread(target=made.run)
    thread.start()
    assert made.connected.wait(30)
    yield made
    made.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_only_an_account_that_services_vouch_for_is_somebody(network: Network, client: Client) -> None:
    with Human(network.port, "watcher") as watcher, Human(network.port, "someone", "") as nobody:
        watcher.send("WHOIS bisectbot")
        watcher.wait(" 330 watcher bisectbot bisectbot ")  # it came in by SASL
        for human in (watcher, nobody):
            human.send("JOIN #dev")
            human.wait(" 366 ")
        nobody.send("PRIVMSG #dev :bisectbot: whoami")
        nobody.wait("NOTICE someone :you are nobody listed (anyone); I know you as irc:?")
        nobody.send("NICK ada")  # a nick says nothing
        nobody.wait("NICK")
        nobody.send("PRIVMSG #dev :!bisect whoami")
        nobody.wait("NOTICE ada :you are nobody listed")
        nobody.send("PRIVMSG bisectbot :pause host=icl")
        nobody.wait("pause is for operators")
        nobody.send("PRIVMSG NickServ :IDENTIFY ada ada-password")
        nobody.wait("now identified", "now logged in")
        nobody.send("PRIVMSG bisectbot :whoami")
        nobody.wait("NOTICE ada :you are ada, developer; I know you as irc:testnet/ada")
        nobody.send("PRIVMSG #dev :bisectbot: queue")
        watcher.wait("NOTICE #dev :ada: 0 requests")


def test_notices_talk_and_echoes_are_ignored(network: Network, client: Client) -> None:
    with Human(network.port, "eve2") as eve:
        eve.send("JOIN #dev")
        eve.wait(" 366 ")
        for text in (
            "NOTICE #dev :bisectbot: queue",
            "PRIVMSG #dev :bisectbot status",
            "PRIVMSG #dev :> !bisect queue",
        ):
            eve.send(text)
        eve.send("PRIVMSG #dev :\x01ACTION !bisect queue\x01")
        eve.send("PRIVMSG #dev :!bisect status B…")
        eve.send("PRIVMSG #dev :!bisect hosts nowhere")
        eve.wait("there is no host 'nowhere'")
        assert not [line for line in eve.seen if "NOTICE" in line]


def test_it_speaks_later_and_comes_back(network: Network, client: Client) -> None:
    with Human(network.port, "watcher2") as watcher:
        watcher.send("JOIN #dev")
        watcher.wait(" 366 ")
        client.speak({"target": "#dev", "to": "ada"}, Answer("B7 done", ("x" * 600,), link="http://x/y"), "")
        watcher.wait("NOTICE #dev :ada: B7 done")
        watcher.wait("http://x/y")
        assert client._socket is not None
        client._socket.shutdown(2)
        watcher.wait("QUIT", "PART", seconds=30)
        watcher.wait("JOIN", seconds=60)


def test_a_certificate_does_for_a_password(network: Network, desk: Desk, tmp_path: Path) -> None:
    """SASL EXTERNAL on TLS: our certificate is known to the services, and theirs is checked."""
    ours = self_signed("bisectbot.example.org")
    (tmp_path / "ours.pem").write_bytes(ours.pem)
    with Human(network.port, "owner", "") as owner:
        owner.send("PRIVMSG NickServ :IDENTIFY bisectbot bisectbot-password")
        owner.wait("now identified", "now logged in")
        owner.send(f"PRIVMSG NickServ :CERT ADD {ours.fingerprint}")
        owner.wait("Added fingerprint")
    whole = Irc(
        network="testnet", server="localhost", port=network.tls, certificate_file=tmp_path / "ours.pem",
        ca_file=network.pem, nick="certified", throttle=0.01,
    )  # fmt: skip
    made = Client(whole, desk.hear, Pace(1000))
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        assert made.connected.wait(30)
        with Human(network.port, "looker") as looker:
            looker.send("WHOIS certified")
            looker.wait(" 330 looker certified bisectbot ")
    finally:
        made.stop()
        thread.join(20)
    assert not thread.is_alive()
    stranger = Client(whole.model_copy(update={"ca_file": None}), desk.hear, Pace(1000))
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger._connect()


def test_serve_brings_it_in_and_brings_it_back(network: Network, tmp_path: Path) -> None:
    (tmp_path / "irc.password").write_text("bisectbot-password\n")
    (tmp_path / "irc.password").chmod(0o600)
    (tmp_path / "bisectbot.yaml").write_text(SERVICE.format(web=free_port(), irc=network.port))
    (tmp_path / "people.yaml").write_text("people: {ada: {role: operator, irc: testnet/ada}}\n")
    command = [sys.executable, "-m", "bisectbot", "serve", "--config", str(tmp_path / "bisectbot.yaml")]
    with Human(network.port, "ada", "ada-password") as ada, subprocess.Popen(command) as service:
        try:
            ada.send("JOIN #dev")
            ada.wait(" 366 ")
            ada.wait("JOIN #dev", "JOIN :#dev", seconds=60)
            ada.send("PRIVMSG #dev :bisectbot: pause host=here-1 dust in the fan")
            ada.wait("NOTICE #dev :ada: here-1", seconds=30)
            os.kill(chat_of(service.pid), signal.SIGKILL)
            ada.wait("QUIT")
            ada.wait("JOIN #dev", "JOIN :#dev", seconds=60)
            ada.send("PRIVMSG #dev :bisectbot: hosts here-1")
            ada.wait("dust in the fan (ada)")
        finally:
            service.send_signal(signal.SIGINT)


def chat_of(service: int) -> int:
    """The chat process among the children of ``service``."""
    children = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    [found] = [int(pid) for pid in children if b"\0chat\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found
