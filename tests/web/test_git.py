"""Builders fetch over HTTP: a real server, the builder's own git, and nothing but what was published."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
import uvicorn
from fastapi import Request, Response
from starlette.middleware.base import RequestResponseEndpoint

from bisectbot.clock import Clock
from bisectbot.errors import InfraError
from bisectbot.serve import make_token
from bisectbot.source.git import PUBLISHED, Checkout, Git
from bisectbot.source.merged import merged
from bisectbot.store.tables import Build, BuildState
from bisectbot.web.app import create_app
from tests.support.lab import TREE, Lab, make_lab
from workers.building import take_build
from workers.station import Station


@dataclass
class Served:
    """A laboratory whose web process listens at ``url``."""

    lab: Lab
    url: str
    token: str
    requests: list[tuple[str, str]]
    """Path and content encoding of each."""

    @property
    def git(self) -> str:
        return f"{self.url}/git"

    def header(self, token: str | None = None) -> dict[str, str]:
        return {"http.extraHeader": f"Authorization: Bearer {self.token if token is None else token}"}

    def publish(self, *shas: str) -> None:
        """Have the mirror fetch the upstream's branch and offer these commits."""
        mirror = self.lab.context.mirror
        mirror.add_tree(TREE, str(self.lab.upstream.path))
        mirror.fetch(TREE)
        for sha in shas:
            mirror.publish(sha)


@pytest.fixture
def served(tmp_path: Path, sqlite_template: Path) -> Iterator[Served]:
    database = tmp_path / "bisectbot.db"
    database.write_bytes(sqlite_template.read_bytes())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        changes = {"server": {"url": url, "fetch_url": f"{url}/git"}}
        lab = make_lab(tmp_path, f"sqlite:///{database}", changes)
        make_token(lab.config)
        app = create_app(lab.context)
        seen: list[tuple[str, str]] = []

        @app.middleware("http")
        async def look(request: Request, call_next: RequestResponseEndpoint) -> Response:
            seen.append((request.url.path, request.headers.get("content-encoding", "")))
            return await call_next(request)

        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(lab, url, lab.config.token_path.read_text().strip(), seen)
        finally:
            server.should_exit = True
            thread.join()
            lab.context.database.dispose()


def test_a_builder_fetches_with_its_token(served: Served, tmp_path: Path) -> None:
    old = served.lab.upstream.line([100.0] * 60)
    new = served.lab.upstream.line([90.0] * 60, first=old[-1], start=60)
    served.lab.upstream.push(new[-1])
    served.publish(*old, new[-1])
    checkout = Checkout(tmp_path / "builder", config=served.header())
    for sha in (old[0], old[29], old[59], new[-1]):
        checkout.fetch(served.git, sha)
        assert (checkout.tree(sha, "slot") / "level").read_text() == ("90.0\n" if sha == new[-1] else "100.0\n")
    assert {path for path, _ in served.requests} == {"/git/info/refs", "/git/git-upload-pack"}
    before = len(served.requests)
    checkout.fetch(served.git, old[0])
    assert len(served.requests) == before, "what is there is not fetched again"


def test_a_commit_that_only_the_robot_made_is_fetched_like_any(served: Served, tmp_path: Path) -> None:
    """A merge to be measured; a step of a replay line or a revert is published in the same way."""
    upstream = served.lab.upstream
    base = upstream.commit({"level": "1\n"}, subject="base")
    left = upstream.commit({"level": "1\n", "a": "1\n"}, base, subject="left")
    right = upstream.commit({"level": "1\n", "b": "1\n"}, base, subject="right")
    upstream.push(left)
    upstream.push(right, "other")
    served.publish(left, right)
    mirror = served.lab.context.mirror
    made = merged(mirror.git, [left, right])
    mirror.publish(made)
    builder = Checkout(tmp_path / "builder", config=served.header())
    builder.fetch(served.git, made)
    assert (builder.tree(made, "slot") / "a").exists()


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_every_version_of_the_protocol_is_spoken(served: Served, tmp_path: Path, version: str) -> None:
    [sha] = served.lab.upstream.line([1.0])
    served.lab.upstream.push(sha)
    served.publish(sha)
    checkout = Checkout(tmp_path / "builder", config={**served.header(), "protocol.version": version})
    checkout.fetch(served.git, sha)
    assert checkout.git.has(sha)


def test_long_requests_come_compressed(served: Served, tmp_path: Path) -> None:
    """git compresses what it asks with many of its own commits to tell of."""
    shared = served.lab.upstream.line([1.0] * 3)
    served.lab.upstream.push(shared[-1])
    served.publish(shared[-1])
    checkout = Checkout(tmp_path / "builder", config=served.header())
    checkout.fetch(served.git, shared[-1])
    for number in range(64):  # commits that the server does not know
        own = served.lab.upstream.commit({"level": f"{number}\n"}, shared[-1])
        checkout.git.run("fetch", str(served.lab.upstream.path), f"{own}:refs/own/{number}")
    [new] = served.lab.upstream.line([5.0], first=shared[-1], start=200)
    served.lab.upstream.push(new)
    served.publish(new)
    checkout.fetch(served.git, new)
    assert ("/git/git-upload-pack", "gzip") in served.requests
    assert (checkout.tree(new, "slot") / "level").read_text() == "5.0\n"


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_nothing_is_told(served: Served, tmp_path: Path, token: str) -> None:
    [sha] = served.lab.upstream.line([1.0])
    served.lab.upstream.push(sha)
    served.publish(sha)
    with pytest.raises(InfraError, match=r"terminal prompts disabled|Authentication failed|401"):
        Checkout(tmp_path / "builder", config=served.header(token)).fetch(served.git, sha)
    for method, path in (("GET", "info/refs?service=git-upload-pack"), ("POST", "git-upload-pack")):
        answer = requests.request(method, f"{served.git}/{path}", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401
        assert sha not in answer.text


def test_only_what_was_published_is_offered(served: Served) -> None:
    shas = served.lab.upstream.line([1.0, 2.0])
    served.lab.upstream.push(shas[-1])
    served.publish(shas[0])
    served.lab.context.mirror.keep(TREE, "main", 1, shas[1])
    for version in ("0", "2"):
        git = Git("/", config={**served.header(), "protocol.version": version})
        assert git.run("ls-remote", served.git) == f"{shas[0]}\t{PUBLISHED}{shas[0]}"


def test_it_is_read_only_and_answers_nonsense_in_one_line(served: Served) -> None:
    served.publish()
    authorised = {"Authorization": f"Bearer {served.token}"}

    def post(body: bytes, encoding: str) -> requests.Response:
        headers = {**authorised, "Content-Encoding": encoding}
        return requests.post(f"{served.git}/git-upload-pack", data=body, headers=headers)

    for service in ("?service=git-receive-pack", ""):
        answer = requests.get(f"{served.git}/info/refs{service}", headers=authorised)
        assert answer.status_code == 403
        assert "read-only" in answer.json()["detail"]
    assert requests.post(f"{served.git}/git-receive-pack", headers=authorised).status_code == 404
    assert post(b"0000", "br").status_code == 415
    assert post(b"no gzip", "gzip").status_code == 400
    assert post(gzip.compress(b"0000")[:-4], "gzip").status_code == 400
    assert post(gzip.compress(bytes(65 << 20)), "gzip").status_code == 400


def test_a_builder_elsewhere_builds_what_it_fetched_from_the_server(served: Served) -> None:
    lab = served.lab
    [sha] = lab.upstream.line([100.0])
    lab.upstream.push(sha)
    lab.tick()
    assert take_build(Station.of(lab.config, "build", Clock())) == "build 1 done"
    with lab.context.database.read() as session:
        build = session.get_one(Build, 1)
        assert (build.state, build.commit.sha) == (BuildState.READY, sha)
    assert ("/git/git-upload-pack", "") in served.requests
