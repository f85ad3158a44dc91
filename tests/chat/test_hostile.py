"""Hostile inputs through every transport: nothing is done that its sender may not do, nothing raises, no 5xx.

They are partly written by hand, partly made: every verb with every kind of bad argument, from somebody whom nobody
knows. What is to stay as it was is looked at afterwards: requests, reports, hosts, git's refs, files.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import itertools
import json
import random
import re
import sys
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from bisectbot.chat import console, mail, webhooks
from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import PRIVATE, SLASH, VERBS, WORD
from bisectbot.chat.irc import Client as IrcClient
from bisectbot.chat.irc import Line, parse_line, render
from bisectbot.chat.matrix import render as render_matrix
from bisectbot.chat.people import Identity
from bisectbot.chat.safety import Pace
from bisectbot.chat.said import Said
from bisectbot.config.chat import Irc
from bisectbot.mail.incoming import read
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Identity as MailIdentity
from bisectbot.service.post.inbox import MailCommand
from bisectbot.store.tables import CommandLog, Host, Request, Subscription
from tests.support.asgi import Client
from tests.support.chat import SECRETS
from tests.support.lab import Lab

ARGUMENTS = (
    "--upload-pack=touch /tmp/owned", "$(touch /tmp/owned)", "`id`", "; rm -rf /", "| cat /etc/passwd", "&& reboot",
    "../../../etc/passwd", "/etc/passwd", "-x", "HEAD@{1}", "main:level", "^main", "a..b", "..",
    "R1'; drop table report; --",
    "R999999999999999999999", "B-1", "R٣", "Q0", "0x10", "\x00", "\x1b[2J", "\r\nQUIT :bye", "\u202etxt.exe", "𝓡1",
    "<!channel>", "@everyone", "@**all**", "<@U1|x>", "[a](http://evil)", "<script>alert(1)</script>",
    "{{7*7}}", "%s%n",
    "good=-x", "good=$(id) bad=main", "host=*", "host=../../x", "base=--exec=id", "runs=99999999999", "runs=-1",
    "branch=refs/../../x", "kinds=x" * 50, "min=1e309", "https://169.254.169.254/latest/meta-data",
    "file:///etc/passwd",
    "http://localhost:8460/worker/claim/run", "<a@b\r\nBcc: x@y>", "A" * 900, "=" * 300, "as ops", "confirm " * 100,
)  # fmt: skip

BY_HAND = (
    "", " ", "\n", "\x00" * 50, "/bisectbot", "@bisectbot", "bisectbot:", "!bisect", "#bisectbot", "help " * 200,
    "approve", "approve R1 R2 R3", "APPROVE R1", "approve:R1", "approve\tR1", "approve\u00a0R1", "аpprove R1",
    "approve R1\napprove R2", "approve R1 -- as ops", "as ops approve R1", "sudo approve R1", "help\napprove R1",
    "whoami\r\napprove R1", "@bisectbot approve R1", "bisectbot: bisectbot: approve R1", "status B1; approve R1",
    "bisect a.b good=main~1 bad=main confirm", "compare main~1 main confirm", "test base=main confirm",
    "cancel Q1", "retry N1", "retry B1 runs=20",
    "pause host=lkp-icl-2sp2-1 x", "resume host=lkp-icl-2sp2-1", "drain now", "mute", "subscribe path=/",
    "unsubscribe W1",
    "dup R1 R1", "fix R1 x", "wrong R1 x", "accept R1 x", "reject R1 x",
)  # fmt: skip

MADE = tuple(f"{verb} {argument}" for verb, argument in itertools.product(VERBS, ARGUMENTS))


def fuzzed(count: int, seed: int = 9) -> Iterator[str]:
    """Commands with characters put in, taken out and doubled."""
    rng = random.Random(seed)
    pool = "\x00\x01\x1f\x7f\u200b\u202e\ud800\"'`$;|&<>(){}[]\\/@#!*:=…ß漢😀 \t\r\n"
    for _ in range(count):
        text = list(rng.choice(MADE + BY_HAND)[:200])
        for _ in range(rng.randrange(1, 8)):
            text.insert(rng.randrange(len(text) + 1), rng.choice(pool))
        yield "".join(text)


INPUTS = (*BY_HAND, *random.Random(1).sample(MADE, 180), *fuzzed(60))
ALLOWED = {verb.name for verb in VERBS.values() if not verb.role} | {"mute", "unmute"}  # anybody wants their peace


assert len(set(INPUTS)) >= 250, "there are too few of them"


@pytest.fixture
def untouched(lab: Lab) -> Iterator[None]:
    """Whatever is said, nothing is done."""
    sha = lab.upstream.line([100.0, 90.0])[-1]
    lab.upstream.push(sha)
    lab.tick()
    owned = Path("/tmp/owned")  # what the inputs would make
    before = state(lab)
    yield
    assert state(lab) == before
    assert not owned.exists()
    with lab.context.database.read() as session:
        logged = session.execute(select(CommandLog)).scalars().all()
    assert logged, "nothing was even read"
    for row in logged:
        done = re.match(r"[BQW]\d+: |R\d+ is |.* (?:takes nothing new|works again|is cancelled|again)$", row.outcome)
        assert row.arguments.get("verb") in {None, *ALLOWED} or not done, (row.raw, row.outcome)


def state(lab: Lab) -> tuple[Any, ...]:
    with lab.context.database.read() as session:
        requests = session.execute(select(func.count()).select_from(Request)).scalar_one()
        rules = [rule for rule in session.execute(select(Subscription.rule)).scalars() if "mute" not in rule]
        hosts = tuple(session.execute(select(Host.name, Host.state)).all())
    return requests, rules, hosts, lab.context.mirror.git.run("for-each-ref")


pytestmark = pytest.mark.usefixtures("untouched")


@pytest.fixture
def client(desk: Desk) -> Iterator[Client]:
    app = webhooks.create_app(desk)
    made = Client(app)
    yield made
    made.close()


def encoded(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@pytest.fixture
def no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here all of them are to be read, however fast they come."""
    monkeypatch.setattr(Pace, "allows", lambda *_: True)
    monkeypatch.setattr(webhooks, "PATIENCE_S", dict.fromkeys(webhooks.PATIENCE_S, 60.0))


def sign(body: bytes) -> dict[str, str]:
    stamp = str(int(time.time()))
    digest = hmac.new(
        SECRETS["slack.secret"].encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256
    ).hexdigest()
    return {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": stamp}


def test_slack(client: Client, no_pace: None) -> None:
    for number, text in enumerate(INPUTS):
        fields = {
            "team_id": "T1",
            "channel_id": "C",
            "user_id": "UEVE",
            "text": encoded(text),
            "trigger_id": str(number),
        }
        body = urllib.parse.urlencode(fields).encode()
        assert client.post("/slack/command", content=body, headers=sign(body)).status_code == 200


def test_mattermost(client: Client, no_pace: None) -> None:
    for number, text in enumerate(INPUTS):
        fields = {"token": "mm-token", "team_id": "t", "channel_id": "c", "user_id": "eve", "text": encoded(text),
                  "trigger_id": str(number)}  # fmt: skip
        assert client.post("/mattermost", content=urllib.parse.urlencode(fields).encode()).status_code == 200


def test_zulip(client: Client, no_pace: None) -> None:
    for number, text in enumerate(INPUTS):
        told = {"bot_email": "bisectbot-bot@zulip.example.org", "bot_full_name": "bisectbot", "token": "z-token",
                "trigger": "direct_message", "data": text, "message": {"id": number + 1, "sender_id": 666}}  # fmt: skip
        assert client.post("/zulip", content=json.dumps(told).encode()).status_code == 200


BODIES = (
    b"", b"\x00", b"[]", b"null", b"{", b"[" * 200_000, b'{"a":' * 5000, b"\xff\xfe", b"text=%00%ff&token=%",
    b"&" * 5000,
    b'{"token":1,"message":[]}', b'{"token":"z-token","message":{}}',
    b'{"token":"z-token","bot_email":[],"message":{"id":{}}}',
    b"token=mm-token", b"token=mm-token&trigger_id=1&user_id=\x00",
    json.dumps({"event": {"type": "app_mention"}}).encode(),
    b'{"type":"event_callback","team_id":{},"event":{"type":"app_mention","user":[1]}}', b"payload=" + b"%41" * 20000,
    b'{"type":"url_verification","challenge":{"x":1}}', b'{"message":{"id":1e999}}', b'{"token":"\\ud800"}', b"a=1;b=2",
)  # fmt: skip


@pytest.mark.parametrize("path", ["/slack/command", "/slack/events", "/mattermost", "/zulip"])
def test_bodies_that_are_none(client: Client, no_pace: None, path: str) -> None:
    for body in BODIES:
        for headers in (sign(body), {}, {"Content-Type": "multipart/form-data"}, {"Authorization": "Token \xff"}):
            raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
            assert client.post(path, content=body, headers=raw).status_code < 500
    body = urllib.parse.urlencode({"token": "mm-token", "trigger_id": "1", "user_id": "eve", "text": "queue"}).encode()
    client.post("/mattermost", content=body)


@dataclass
class Wire(IrcClient):
    """An IRC client whose socket is a list."""

    sent: list[str] = field(default_factory=list)

    def _send(self, line: str) -> None:
        self.sent.append(line)


def test_irc(desk: Desk) -> None:
    config = Irc(network="testnet", server="127.0.0.1", tls=False)
    client = Wire(config, desk.hear, Pace(10**9))
    for number, text in enumerate(INPUTS):
        for account, target in (("", "#dev"), ("eve", "#dev"), ("eve", "bisectbot")):
            tags = f"@account={account};msgid={number} " if account else "@+account=ops;x=account=ops "
            trigger = "" if target == "bisectbot" else "bisectbot: "
            raw = f"{tags}:ops!ops@operator.example PRIVMSG {target} :{trigger}{text}".encode("utf-8", "surrogatepass")
            for line in raw.split(b"\n"):
                client._react(parse_line(line)) if parse_line(line).command == "PRIVMSG" else None
    while not client._out.empty():
        told = client._out.get()
        assert len(told.encode()) < 500
        assert "\n" not in told
        assert "\r" not in told
        assert told.startswith("NOTICE ")
    assert client.sent == []


def test_lines_of_irc_that_are_none(desk: Desk) -> None:
    client = Wire(Irc(network="testnet", server="127.0.0.1", tls=False), desk.hear, Pace(10**9))
    for raw in (
        b"",
        b"\x00",
        b"@",
        b"@a",
        b":",
        b": ",
        b"@a=\\",
        b"PRIVMSG",
        b":x PRIVMSG",
        b"\xff" * 9000,
        b"@" + b"a;" * 9000,
    ):
        assert isinstance(parse_line(raw), Line)
        client._react(parse_line(raw))
    client._react(parse_line(b"@account=eve :eve!e@h PRIVMSG #c :!bisect approve R1"))
    assert parse_line(b"@account=a\\:b\\s :n!u@h PRIVMSG #c :x :y\r\n").tags == {"account": "a;b "}


def test_matrix_and_its_rendering(desk: Desk) -> None:
    for text in INPUTS:
        for dialect, before in ((PRIVATE, ""), (WORD, "bisectbot: ")):
            for answer in desk.hear(before + text, dialect, Said(Identity("matrix", "@eve:evil.example"), "room")):
                content = render_matrix(answer)
                assert content["msgtype"] == "m.notice"
                assert content["m.mentions"] == {}
                assert "<script" not in content["formatted_body"]
                assert "@everyone" not in content["body"]
                assert all(len(line.encode()) <= 400 for line in render(answer))


def letter(text: str, number: int) -> bytes:
    head = f"From: Eve <eve@evil.example>\nTo: bot@example.org\nMessage-ID: <{number}@evil.example>\nSubject: Re: R1\n"
    return head.encode() + b"Content-Type: text/plain; charset=utf-8\n\n" + text.encode("utf-8", "surrogatepass")


def test_mail(desk: Desk) -> None:
    obey = mail.handler(desk)
    for number, text in enumerate(INPUTS):
        message = read(letter(f"#bisectbot {text}\n", number), MailIdentity("bot@example.org"))
        for vouched in (False, True):
            lines = message.commands or (text,)
            sender = Mailbox("eve@evil.example" if vouched else "ada@example.org")
            answer = obey(desk.context, MailCommand(number, lines, sender, vouched, message, None))
            assert "\x1b" not in answer.replace(text, "")
            assert not answer.startswith(("--- ", "diff "))


def test_the_console_takes_anything_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whoever sits there is an operator; here it is somebody unknown, so that nothing happens."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(encoded(text).replace("\n", " ") + "\n" for text in INPUTS)))
    console.converse(desk, Said(Identity("console", "eve")), tmp_path)
    assert "\x1b" not in capsys.readouterr().out
    assert desk.hear("whoami", SLASH, Said(Identity("console", "eve")))[0].head.startswith("you are nobody listed")
