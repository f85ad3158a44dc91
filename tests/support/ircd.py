"""A real IRC network on loopback: InspIRCd with Atheme's services, from the distribution."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.support.certificate import self_signed
from tests.support.processes import end

INSPIRCD = """<config format="xml">
<server name="irc.test" description="test" network="testnet" id="1AA">
<admin name="a" nick="a" email="a@b.example">
<bind address="127.0.0.1" port="{port}" type="clients">
<module name="ssl_gnutls"><module name="sslinfo">
<sslprofile name="clients" provider="gnutls" certfile="{pem}" keyfile="{pem}" hash="sha256">
<bind address="127.0.0.1" port="{tls}" type="clients" sslprofile="clients">
<bind address="127.0.0.1" port="{link}" type="servers">
<connect allow="*" timeout="60" threshold="100" commandrate="100000" fakelag="no" localmax="100" globalmax="100"
 resolvehostnames="no" useident="no" recvq="65536">
<cidr ipv4clone="32" ipv6clone="128">
<dns server="127.0.0.1" timeout="1">
<path configdir="{folder}" datadir="{folder}" logdir="{folder}" moduledir="{modules}" runtimedir="{folder}">
<pid file="{folder}/inspircd.pid">
<log method="file" type="*" level="default" target="{folder}/inspircd.log">
<module name="cap"><module name="ircv3"><module name="ircv3_accounttag"><module name="ircv3_servertime">
<module name="ircv3_batch"><module name="ircv3_ctctags"><module name="sasl"><module name="services_account">
<module name="spanningtree">
<sasl target="services.test" requiressl="no">
<link name="services.test" ipaddr="127.0.0.1" port="{link}" allowmask="127.0.0.1" sendpass="link" recvpass="link">
<uline server="services.test" silent="yes">
"""
ATHEME = """loadmodule "modules/protocol/inspircd";
loadmodule "modules/backend/opensex";
loadmodule "modules/crypto/pbkdf2v2";
loadmodule "modules/nickserv/main";
loadmodule "modules/nickserv/register";
loadmodule "modules/nickserv/identify";
loadmodule "modules/nickserv/cert";
loadmodule "modules/saslserv/main";
loadmodule "modules/saslserv/external";
loadmodule "modules/saslserv/plain";
serverinfo {{ name = "services.test"; desc = "services"; numeric = "00A"; recontime = 1; netname = "testnet";
 hidehostsuffix = "users.test"; adminname = "a"; adminemail = "a@b.example"; registeremail = "a@b.example";
 mta = "/bin/true"; loglevel = {{ error; info; }}; maxlogins = 100; maxusers = 0; auth = none;
 casemapping = rfc1459; }};
uplink "irc.test" {{ host = "127.0.0.1"; port = {link}; send_password = "link"; receive_password = "link"; }};
nickserv {{ nick = "NickServ"; user = "s"; host = "s.test"; real = "s"; }};
saslserv {{ nick = "SaslServ"; user = "s"; host = "s.test"; real = "s"; }};
general {{ commit_interval = 5; }};
"""


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Network:
    """Both servers, running until `stop`; every file of theirs is below ``folder``.

    On the port ``tls`` it is ``localhost``, with the certificate in ``pem``.
    """

    def __init__(self, folder: Path) -> None:
        self.port, self.tls, link = free_port(), free_port(), free_port()
        [modules] = {path.parent for path in Path("/usr/lib").glob("**/inspircd/modules/m_cap.so")}
        self._folder = folder
        self.pem = folder / "localhost.pem"
        values = {"port": self.port, "tls": self.tls, "link": link, "folder": folder, "modules": modules}
        values["pem"] = self.pem
        (folder / "data").mkdir(parents=True)
        self.pem.write_bytes(self_signed("localhost").pem)
        (folder / "inspircd.conf").write_text(INSPIRCD.format(**values))
        (folder / "atheme.conf").write_text(ATHEME.format(**values))
        root = ["--runasroot"] if os.getuid() == 0 else []
        self._log = (folder / "output").open("ab")
        self._processes = [
            self._start("/usr/sbin/inspircd", *root, "--nofork", f"--config={folder}/inspircd.conf"),
            self._start(
                *("atheme-services", "-n", "-c", f"{folder}/atheme.conf", "-D", f"{folder}/data"),
                *("-l", f"{folder}/atheme.log", "-p", f"{folder}/atheme.pid"),
            ),
        ]

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        null = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self._folder, stdin=null, stdout=self._log, stderr=self._log)

    def register(self, account: str, password: str) -> None:
        """Make a services account, as soon as the services are there."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with Human(self.port, account) as human:
                human.send(f"PRIVMSG NickServ :REGISTER {password} {account}@example.org")
                if human.wait("is now registered", "No such nick") == 0:
                    return
            time.sleep(0.5)
        raise AssertionError("the services do not come up")

    def stop(self) -> None:
        for process in reversed(self._processes):
            end(process)
        self._log.close()


class Human:
    """A client as simple as one can be. ``password``: identifies with the services."""

    def __init__(self, port: int, nick: str, password: str = "") -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", port), timeout=5)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self._socket.settimeout(0.2)
        self._rest = b""
        self.seen: list[str] = []
        self.send(f"NICK {nick}")
        self.send(f"USER {nick} 0 * :{nick}")
        self.wait(" 422 ", " 376 ")
        if password:
            self.send(f"PRIVMSG NickServ :IDENTIFY {password}")
            self.wait("now identified", "now logged in")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, line: str) -> None:
        self._socket.sendall(f"{line}\r\n".encode())

    def read(self) -> None:
        """What the server has said since."""
        try:
            chunk = self._socket.recv(65536)
        except TimeoutError:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\r\n")
        for line in lines:
            if line.startswith(b"PING"):
                self._socket.sendall(line.replace(b"PING", b"PONG", 1) + b"\r\n")
            self.seen.append(line.decode("utf-8", "replace"))

    def wait(self, *texts: str, seconds: float = 30.0) -> int:
        """Until a line holds one of ``texts``; returns which, and forgets what came up to it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for at, line in enumerate(self.seen):
                for number, text in enumerate(texts):
                    if text in line:
                        del self.seen[: at + 1]
                        return number
            self.read()
        raise AssertionError(f"nothing holds {texts}: {self.seen[-5:]}")
