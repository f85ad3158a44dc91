"""IRC (IRCv3): a person is the services account in a message's ``account`` tag; a nick says nothing.

Commands come as PRIVMSG, answers go as NOTICE, which no bot answers, so that two never talk to each other.
"""

from __future__ import annotations

import base64
import queue
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import structlog

from bisectbot.chat.answer import Answer, columns
from bisectbot.chat.grammar import PRIVATE, WORD, Dialect, parse
from bisectbot.chat.people import Identity
from bisectbot.chat.safety import Pace, secret
from bisectbot.chat.said import Said
from bisectbot.config.chat import Irc
from bisectbot.errors import InfraError

log = structlog.get_logger()

LONGEST = 400
"""Bytes of text in a line: 512 are allowed with prefix, command, target and line end."""
MOST_LINES = 4
CAPABILITIES = ("sasl", "account-tag", "message-tags", "server-time", "batch")
_SILENCE_S = 180.0
_CODES = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Line:
    """A message of the protocol: tags, who sent it, command, parameters."""

    tags: dict[str, str]
    source: str
    command: str
    params: tuple[str, ...]

    @property
    def nick(self) -> str:
        return self.source.partition("!")[0]

    @property
    def text(self) -> str:
        return self.params[-1] if self.params else ""


def parse_line(raw: bytes) -> Line:
    """One line as it came; what cannot be understood has an empty command. Never raises."""
    text = raw[:8191].decode("utf-8", "replace").rstrip("\r\n")
    tags: dict[str, str] = {}
    if text.startswith("@"):
        told, _, text = text[1:].partition(" ")
        tags = {name: _unescaped(value) for name, _, value in (item.partition("=") for item in told.split(";"))}
    text = text.lstrip(" ")
    source = ""
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    head, colon, trailing = text.partition(" :")
    words = head.split()
    params = (*words[1:], trailing) if colon else tuple(words[1:])
    return Line(tags, source, words[0].upper() if words else "", params)


def _unescaped(value: str) -> str:
    table = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}
    return re.sub(r"\\(.?)", lambda match: table.get(match[1], match[1]), value)


def render(answer: Answer) -> list[str]:
    """As at most four lines that fit; the link says the rest."""
    answer = answer.safe()
    lines = [answer.head, *answer.lines, *columns(answer.table)]
    shown = lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "; ".join(lines[MOST_LINES - 1 :])]
    if answer.link:
        shown[-1] = f"{_cut(shown[-1], LONGEST - 1 - len(answer.link.encode()))} {answer.link}"
    return [_cut(_CODES.sub(" ", line), LONGEST) for line in shown if line.strip()]


def _cut(text: str, most: int) -> str:
    octets = text.encode()
    return text if len(octets) <= most else octets[: most - 3].decode("utf-8", "ignore") + "…"


Hear = Callable[[str, Dialect, Said], list[Answer]]
"""What is done with a message: its text, how commands are told from talk, who said it where."""


@dataclass
class Client:
    """One connection for ever: it comes back by itself, with a longer pause each time it fails.

    `speak` may be called from any thread; lines leave at most every ``throttle`` s after a burst of three.
    """

    config: Irc
    hear: Hear
    pace: Pace
    edits: bool = False
    connected: threading.Event = field(default_factory=threading.Event)
    _out: queue.Queue[str] = field(default_factory=lambda: queue.Queue(200))
    _unsent: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _socket: socket.socket | None = None
    _nick: str = ""
    _offered: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Until `stop`."""
        failures = 0
        while not self._stop.is_set():
            try:
                self._session()
                failures = 0
            except (OSError, InfraError) as error:
                failures = 0 if self.connected.is_set() else failures + 1
                log.warning("IRC connection lost", network=self.config.network, error=str(error))
            self.connected.clear()
            self._stop.wait(min(300.0, 2.0**failures) * random.uniform(0.5, 1.5))  # noqa: S311 - a jitter

    def stop(self) -> None:
        """Let `run` return."""
        self._stop.set()
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def speak(self, room: dict[str, str], answer: Answer, message: str) -> str:  # noqa: ARG002 - nothing is edited
        """See `Speaker`: a notice to the channel, or to the person."""
        if not self.connected.is_set():
            raise InfraError(f"{self.config.network} is not connected")
        self._notice(room["target"], room.get("to", ""), answer)
        return ""

    def _notice(self, target: str, to: str, answer: Answer) -> None:
        for number, line in enumerate(render(answer)):
            prefix = f"{to}: " if to and number == 0 and target.startswith("#") else ""
            try:
                self._out.put_nowait(f"NOTICE {target} :{prefix}{line}")
            except queue.Full:
                log.warning("IRC: too much to say; left out", target=target)
                return

    def _session(self) -> None:
        with self._connect() as connection:
            self._socket = connection
            self._nick = self.config.nick
            writer = threading.Thread(target=self._write, args=(connection,), name="irc-writer", daemon=True)
            self._send("CAP LS 302")
            self._send(f"NICK {self._nick}")
            self._send(f"USER {self.config.nick} 0 * :bisectbot, a performance bisection bot")
            try:
                for raw in _lines(connection):
                    self._react(parse_line(raw))
                    if self.connected.is_set() and writer.ident is None:
                        writer.start()
            finally:
                self._socket = None
                self.connected.clear()
                if writer.ident is not None:
                    writer.join()  # or it would take a line of the next connection with it

    def _connect(self) -> socket.socket:
        plain = socket.create_connection((self.config.server, self.config.port), timeout=30)
        plain.settimeout(_SILENCE_S)
        if not self.config.tls:
            return plain
        context = ssl.create_default_context(cafile=self.config.ca_file and str(self.config.ca_file))
        if self.config.certificate_file is not None:
            context.load_cert_chain(self.config.certificate_file)
        return context.wrap_socket(plain, server_hostname=self.config.server)

    def _send(self, line: str) -> None:
        assert self._socket is not None
        self._socket.sendall(f"{_CODES.sub(' ', line)}\r\n".encode())

    def _write(self, connection: socket.socket) -> None:
        """Send what waits, slowly enough for any server; a line that could not leave is the first of the next time."""
        burst, last = 3.0, time.monotonic()
        while self.connected.is_set() and not self._stop.is_set():
            try:
                self._unsent = self._unsent or self._out.get(timeout=0.5)
            except queue.Empty:
                continue
            at = time.monotonic()
            burst, last = min(3.0, burst + (at - last) / max(self.config.throttle, 1e-6)), at
            if burst < 1 and self._stop.wait((1 - burst) * self.config.throttle):
                return
            burst -= 1
            try:
                connection.sendall(f"{self._unsent}\r\n".encode())
            except OSError:
                return
            self._unsent = ""

    def _react(self, line: Line) -> None:
        match line.command:
            case "PING":
                self._send(f"PONG :{line.text}")
            case "CAP":
                self._capabilities(line)
            case "AUTHENTICATE":
                self._authenticate(line)
            case "903":
                self._send("CAP END")
            case "902" | "904" | "905" | "908":
                raise InfraError(f"SASL refused: {line.text}")
            case "433" | "432":
                self._nick += "_"
                self._send(f"NICK {self._nick}")
            case "001":
                self.connected.set()
                for channel in self.config.channels:
                    self._send(f"JOIN {channel}")
            case "ERROR":
                raise InfraError(line.text)
            case "PRIVMSG":
                self._heard(line)

    def _capabilities(self, line: Line) -> None:
        if len(line.params) < 3:
            return
        words = line.text.split()
        match line.params[1]:
            case "LS":
                self._offered |= {word.partition("=")[0] for word in words}
                if line.params[2] == "*":
                    return  # more lines come
                wanted = [name for name in CAPABILITIES if name in self._offered and (name != "sasl" or self._secret())]
                self._send(f"CAP REQ :{' '.join(wanted)}" if wanted else "CAP END")
            case "ACK" if "sasl" in words:
                self._send(f"AUTHENTICATE {'EXTERNAL' if self.config.certificate_file else 'PLAIN'}")
            case "ACK" | "NAK":
                self._send("CAP END")

    def _secret(self) -> bool:
        return self.config.certificate_file is not None or self.config.password_file is not None

    def _authenticate(self, line: Line) -> None:
        if line.text != "+":
            return
        if self.config.certificate_file is not None:
            self._send("AUTHENTICATE +")
            return
        assert self.config.password_file is not None
        account = self.config.account or self.config.nick
        told = f"{account}\0{account}\0{secret(self.config.password_file)}".encode()
        text = base64.b64encode(told).decode()
        for start in range(0, len(text), 400):
            self._send(f"AUTHENTICATE {text[start : start + 400]}")
        if len(text) % 400 == 0:
            self._send("AUTHENTICATE +")

    def _heard(self, line: Line) -> None:
        if len(line.params) != 2 or line.nick.casefold() == self._nick.casefold() or "batch" in line.tags:
            return  # a batch is a replay of what was said before
        target, text = line.params
        alone = not target.startswith(("#", "&", "+", "!"))
        dialect = PRIVATE if alone else WORD
        if text.startswith("\x01") or not parse(text, dialect):
            return
        account = line.tags.get("account", "")
        identity = Identity("irc", f"{self.config.network}/{account}" if account else "")
        if not self.pace.allows(str(identity) if account else f"irc nick {line.nick}"):
            return
        to = line.nick if alone else target
        room = {"target": to, "to": "" if alone else line.nick}
        for answer in self.hear(text, dialect, Said(identity, target if not alone else "private", room)):
            self._notice(line.nick if answer.private else to, room["to"], answer)


def _lines(connection: socket.socket) -> Iterator[bytes]:
    """What the server says, line by line, until it hangs up or says an endless line."""
    rest = b""
    while chunk := connection.recv(65536):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > 16384:
            raise InfraError("the server sends a line without an end")
        yield from lines
    raise InfraError("the server hung up")
