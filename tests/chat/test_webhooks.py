"""Slack, Mattermost and Zulip: what they send is read as they document it; anything else is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.signature import Clock

from bisectbot.chat import mattermost, slack, webhooks, zulip
from bisectbot.chat.answer import Answer
from bisectbot.chat.commands import Desk
from bisectbot.chat.safety import BODY_LIMIT, Outbound, Pace, fetching, first_time
from bisectbot.chat.transport import tell
from bisectbot.chat.webhook import Incoming, Refused
from bisectbot.errors import InfraError, UserError
from bisectbot.service.people.requests import BISECT
from bisectbot.store.tables import Conversation, Request
from tests.support.asgi import Client
from tests.support.chat import chat_config
from tests.support.lab import Lab

Connect = Callable[..., Client]
MakeDesk = Callable[..., tuple[Lab, Desk]]
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
    b"803a0bc887a14d10d2c447fce8b6703c"
)
SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"


class At(Clock):
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def signed(body: bytes, key: str = SECRET, at: float | None = None) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(key.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": stamp}


def form(**fields: str) -> bytes:
    return urllib.parse.urlencode(fields).encode()


def slash(text: str, user: str = "UADA", team: str = "T1", **more: str) -> bytes:
    return form(team_id=team, channel_id="C1", user_id=user, command="/bisectbot", text=text, **more)


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Clients of a desk's webhooks."""
    made: list[Client] = []

    def build(desk: Desk, source: str = "192.0.2.1") -> Client:
        made.append(Client(webhooks.create_app(desk), source))
        return made[-1]

    yield build
    for client in made:
        client.close()


@pytest.fixture
def client(desk: Desk, connect: Connect) -> Client:
    return connect(desk)


def command(client: Client, body: bytes, **headers: str) -> Any:
    return client.post("/slack/command", content=body, headers={**signed(body), **headers})


def test_the_documented_signature_is_right_and_only_in_its_time(tmp_path: Path) -> None:
    from bisectbot.config.chat import Slack

    (tmp_path / "s").write_text(SECRET)
    config = Slack(signing_secret_files=(tmp_path / "s",), team="T1DC2JH3J", bot_user="U1")
    headers = {"x-slack-signature": SIGNATURE, "x-slack-request-timestamp": "1531420618"}
    heard = slack.command(config, Incoming(BODY, headers), At(1531420618 + 299))
    assert heard.said is not None
    assert heard.said.identity.id == "T1DC2JH3J/U2CERLKJA"
    assert heard.later.startswith("https://hooks.slack.com/commands/")
    for body, late in [(BODY, 301), (BODY, -301), (BODY + b"x", 0), (b"", 0)]:
        with pytest.raises(Refused) as refused:
            slack.command(config, Incoming(body, headers), At(1531420618 + late))
        assert refused.value.status == 401


def test_a_slash_command_is_answered_in_its_response(client: Client) -> None:
    told = command(client, slash("whoami")).json()
    assert told == {"response_type": "ephemeral", "text": "you are ada, developer; I know you as slack:T1/UADA"}
    assert command(client, slash("queue")).json()["response_type"] == "in_channel"


def test_both_secrets_are_valid_while_one_is_replaced(client: Client) -> None:
    body = slash("whoami")
    for key, status in [(SECRET, 200), ("another-secret", 200), ("an-old-secret", 401)]:
        assert client.post("/slack/command", content=body, headers=signed(body, key)).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": SIGNATURE},
        {"X-Slack-Signature": SIGNATURE, "X-Slack-Request-Timestamp": "1531420618"},
        {"X-Slack-Signature": "v0=", "X-Slack-Request-Timestamp": "x"},
        {"X-Slack-Signature": "v0=0", "X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Signature": "v0=0", "X-Slack-Request-Timestamp": "9" * 50},
    ],
)
def test_what_is_not_signed_is_refused(client: Client, headers: dict[str, str]) -> None:
    assert client.post("/slack/command", content=BODY, headers=headers).status_code == 401
    assert client.post("/slack/events", content=b"{}", headers=headers).status_code == 401


def test_a_replay_is_not_obeyed(client: Client) -> None:
    body = slash("queue")
    headers = signed(body)
    assert client.post("/slack/command", content=body, headers=headers).json()["text"]
    again = client.post("/slack/command", content=body, headers=headers)
    assert (again.status_code, again.content) == (200, b"")


def test_another_team_is_refused_and_ssl_checks_pass(client: Client) -> None:
    assert command(client, slash("queue", team="T2")).status_code == 403
    assert command(client, form(ssl_check="1", token="x")).status_code == 200


def test_bodies_and_paces_are_limited(make: MakeDesk, connect: Connect) -> None:
    _, desk = make(chat_config(messages_per_minute=3))
    client = connect(desk)
    assert client.post("/slack/command", content=b"x" * (BODY_LIMIT + 1)).status_code == 413
    statuses = [command(client, slash("queue", trigger_id=str(n))).status_code for n in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert command(client, slash("queue", user="UGRACE")).status_code == 200


def test_a_caller_that_floods_is_refused_before_anything_is_read() -> None:
    pace = Pace(2, clock=lambda: 0.0)
    assert [pace.allows("a") for _ in range(3)] == [True, True, False]
    assert pace.allows("b")


def test_the_events_api(make: MakeDesk, connect: Connect) -> None:
    _, desk = make()
    client = connect(desk)

    def send(told: dict[str, Any], **headers: str) -> Any:
        body = json.dumps(told).encode()
        return client.post("/slack/events", content=body, headers={**signed(body), **headers})

    assert send({"type": "url_verification", "challenge": "abc"}).json() == {"challenge": "abc"}
    nothing: list[dict[str, Any]] = [{"type": "event_callback"}, {"type": "event_callback", "event": {}}, {"x": []}]
    for told in nothing:
        assert send(told).status_code == 200
    incoming = json.dumps(mention("<@UBOT> status B&amp;7")).encode()
    heard = slack.event(desk.context.config.chat.slack, Incoming(incoming, lower(signed(incoming))))  # type: ignore[arg-type]
    assert heard.text == "@bisectbot status B&7"
    assert heard.said is not None
    assert heard.said.room == {"channel": "C1", "thread": "111.1", "user": "UADA"}
    own = json.dumps(mention("<@UBOT> status", bot_id="B1")).encode()
    assert slack.event(desk.context.config.chat.slack, Incoming(own, lower(signed(own)))).said is None  # type: ignore[arg-type]


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def mention(text: str, **more: str) -> dict[str, Any]:
    event = {"type": "app_mention", "user": "UADA", "channel": "C1", "ts": "111.1", "text": text, **more}
    return {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": event}


def mm(text: str, trigger: str = "t1", token: str = "mm-token", user: str = "ada", **more: str) -> bytes:
    return form(token=token, team_id="team", channel_id="c", user_id=user, text=text, trigger_id=trigger, **more)


def test_mattermost(client: Client) -> None:
    told = client.post("/mattermost", content=mm("whoami"), headers={"Authorization": "Token mm-token"}).json()
    assert told["response_type"] == "ephemeral"
    assert "ada, developer" in told["text"]
    table = client.post("/mattermost", content=mm("hosts", "t2")).json()
    assert "lkp-icl-2sp2-1" in table["extra_responses"][0]["text"]
    assert client.post("/mattermost", content=mm("whoami", "t2")).content == b""
    assert client.post("/mattermost", content=mm("whoami", "t3", token="wrong")).status_code == 401
    assert client.post("/mattermost", content=mm("whoami", "t4", token="")).status_code == 401
    both = client.post("/mattermost", content=mm("whoami", "t5"), headers={"Authorization": "Token wrong"})
    assert both.status_code == 401
    assert client.post("/mattermost", content=mm("whoami", "")).status_code == 400


def test_mattermost_is_heard_from_its_own_addresses_teams_and_channels(make: MakeDesk, connect: Connect) -> None:
    limits = {"sources": ["192.0.2.0/28"], "teams": ["team"], "channels": ["c"]}
    _, desk = make(chat_config(mattermost={**chat_config()["mattermost"], **limits}))
    near, far = connect(desk), connect(desk, "198.51.100.1")
    assert near.post("/mattermost", content=mm("whoami", "1")).status_code == 200
    assert far.post("/mattermost", content=mm("whoami", "2")).status_code == 403
    other = mm("whoami", "3").replace(b"team_id=team", b"team_id=other")
    assert near.post("/mattermost", content=other).status_code == 403


def z(text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    inner = {"id": number, "sender_id": 7, "sender_email": "ada@example.org", "stream_id": 3, "subject": "R12"}
    return {"bot_email": "bisectbot-bot@zulip.example.org", "bot_full_name": "bisectbot", "token": "z-token",
            "data": text, "trigger": "mention", "message": inner, **more}  # fmt: skip


def test_zulip(client: Client) -> None:
    told = client.post("/zulip", json=z("@**bisectbot** whoami")).json()
    assert "ada, developer" in told["content"]
    silent = {"response_not_required": True}
    assert client.post("/zulip", json=z("@**bisectbot** whoami")).json() == silent  # a retry
    assert client.post("/zulip", json=z("nothing for you", 2)).json() == silent
    assert "ada" in client.post("/zulip", json=z("whoami", 3, trigger="direct_message")).json()["content"]
    assert client.post("/zulip", json=z("x", 4, token="wrong")).status_code == 401
    assert client.post("/zulip", json=z("x", 5, bot_email="other@x")).status_code == 403
    assert client.post("/zulip", content=b"[" * 100_000).status_code == 400


EVIL = Answer("`@everyone` <!channel> @**all** [x](http://evil) <b>&amp;", ("@room *bold*",), (("a`b", "@here"),))


def test_no_answer_calls_anybody_or_links_anywhere() -> None:
    for text in (slack.render(EVIL), mattermost.render(EVIL), zulip.render(EVIL)):
        for call in ("@everyone", "@**all**", "@room", "@here", "<!channel>", "<http"):
            assert call not in text
    assert "](http" not in mattermost.render(EVIL) + zulip.render(EVIL)
    assert "&lt;!channel&gt;" in slack.render(EVIL)
    assert "a'b" in mattermost.render(EVIL)


class Recorder(BaseHTTPRequestHandler):
    """A server that writes down what it is sent and answers what it is told."""

    def do_POST(self) -> None:
        server: Any = self.server
        length = int(self.headers.get("Content-Length", 0))
        server.seen.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
        status, headers, body = server.answers.pop(0) if server.answers else (200, {}, b"{}")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_PATCH = do_GET = do_POST  # noqa: N815 - what http.server calls

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def other_side() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.seen, server.answers = [], []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def waiting(lab: Lab, transport: str, room: dict[str, str]) -> None:
    with lab.context.database.write() as session:
        request = Request(kind=BISECT, asker="ada", arguments={}, created=0.0)
        session.add(request)
        session.flush()
        session.add(Conversation(request_id=request.id, transport=transport, place=room))


def test_progress_on_slack_edits_one_message(make: MakeDesk, other_side: Any) -> None:
    lab, desk = make(chat_config(slack={**chat_config()["slack"], "api": other_side.url}))
    speaker = webhooks.hooks(desk)["slack/command"].speaker
    waiting(lab, "slack", {"channel": "C1", "thread": "111.1", "user": "UADA"})
    other_side.answers = [
        (429, {"Retry-After": "1"}, b"{}"),
        (200, {}, b'{"ok": true, "ts": "222.2"}'),
        (200, {}, b'{"ok": true}'),
    ]
    assert tell(lab.context, {"slack": speaker}) == 0  # it asked for patience
    assert tell(lab.context, {"slack": speaker}) == 1
    with lab.context.database.write() as session:
        session.get_one(Request, 1).answer = "nearly there"
    assert tell(lab.context, {"slack": speaker}) == 1
    (_, path, headers, body), (_, again, _, edited) = other_side.seen[1:]
    assert (path, again) == ("/chat.postMessage", "/chat.update")
    assert headers["Authorization"] == "Bearer xoxb-1"
    assert json.loads(body)["thread_ts"] == "111.1"
    assert (json.loads(edited)["ts"], json.loads(edited)["text"]) == ("222.2", "Q1 is open: nearly there")


def test_progress_on_mattermost_and_zulip_edits_one_message(make: MakeDesk, other_side: Any) -> None:
    whole = chat_config()
    lab, desk = make(
        chat_config(
            mattermost={**whole["mattermost"], "url": other_side.url}, zulip={**whole["zulip"], "url": other_side.url}
        )
    )
    speakers = {hook.transport: hook.speaker for hook in webhooks.hooks(desk).values()}
    for transport, room, paths in [
        ("mattermost", {"channel": "c", "user": "u"}, ["/api/v4/posts", "/api/v4/posts/5/patch"]),
        ("zulip", {"to": "3", "type": "stream", "topic": "R12"}, ["/api/v1/messages", "/api/v1/messages/5"]),
    ]:
        other_side.seen.clear()
        other_side.answers = [(200, {}, b'{"id": "5"}'), (200, {}, b'{"id": "5"}')]
        message = speakers[transport].speak(room, Answer("one"), "")
        assert speakers[transport].speak(room, Answer("two"), message) == "5"
        assert [path for _, path, _, _ in other_side.seen] == paths
        assert b"two" in other_side.seen[1][3]
    assert lab.runs_made == 0


def test_what_takes_longer_is_answered_at_the_response_url(
    make: MakeDesk, connect: Connect, other_side: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(webhooks.PATIENCE_S, "slack", 0.0)
    _, desk = make(chat_config(slack={**chat_config()["slack"], "response_origins": [other_side.url]}))
    client = connect(desk)
    evil = slash("queue", response_url="http://169.254.169.254/latest/meta-data")
    assert client.post("/slack/command", content=evil, headers=signed(evil)).content == b""
    body = slash("queue", response_url=f"{other_side.url}/commands/1")
    assert client.post("/slack/command", content=body, headers=signed(body)).content == b""
    deadline = time.monotonic() + 60
    while not other_side.seen and time.monotonic() < deadline:
        client.breathe()
    [(_, path, _, told)] = other_side.seen
    assert path == "/commands/1"
    assert json.loads(told)["text"].startswith("0 requests")


def test_we_connect_only_where_we_may_and_follow_no_redirect(other_side: Any) -> None:
    outbound = Outbound(frozenset({other_side.url}))
    other_side.answers = [(302, {"Location": "http://169.254.169.254/"}, b""), (500, {}, b""), (404, {}, b"")]
    with pytest.raises(UserError, match="answers 302"):
        outbound.get(f"{other_side.url}/x", 100)
    with pytest.raises(InfraError, match="answers 500"):
        outbound.get(f"{other_side.url}/x", 100)
    with pytest.raises(UserError, match="answers 404"):
        outbound.get(f"{other_side.url}/x", 100)
    for url in (
        "http://evil.example",
        "file:///etc/passwd",
        f"{other_side.url}@evil.example/",
        "//x",
        "",
        "http://[::1",
    ):
        with pytest.raises((UserError, ValueError)):
            outbound.post(url, {})
    assert len(other_side.seen) == 3


def test_a_patch_comes_from_an_archive(other_side: Any) -> None:
    mail = b"From: a@b\nMessage-ID: <1@x>\nPrecedence: bulk\n\nfix\n---\n"
    mail += b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    fetch = fetching((f"{other_side.url}/first/{{id}}", f"{other_side.url}/all/{{id}}/raw"))
    other_side.answers = [(404, {}, b""), (200, {}, mail)]
    assert fetch("1/../2@x").startswith(b"diff --git a/a b/a\n")
    assert other_side.seen[1][1] == "/all/1%2F..%2F2@x/raw"
    other_side.answers = [(200, {}, b"From: a@b\n\nno diff")]
    with pytest.raises(UserError, match="no patch found in the mail"):
        fetch("3@x")
    other_side.answers = [(200, {}, b"x" * 3_000_000), (404, {}, b"")]
    with pytest.raises(UserError, match="was not found"):
        fetch("4@x")


def test_what_was_seen_is_known_to_every_process(lab: Lab) -> None:
    assert first_time(lab.context, "event 1")
    assert not first_time(lab.context, "event 1")
    assert first_time(lab.context, "event 2")
