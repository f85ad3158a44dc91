"""Leaving with one click, over real HTTP: what mail programs do, what people see, what a curious program cannot do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import uvicorn

from bisectbot.mail import unsubscribe
from bisectbot.service.post import rules
from bisectbot.web.app import create_app
from tests.mail.servers import free_port
from tests.support.lab import make_lab
from tests.support.office import AUTHOR, LIST, OPERATOR, Office, office, reached

BASE = "https://bot.example.org/unsubscribe"


@pytest.fixture
def desk(tmp_path: Path, sqlite_template: Path) -> Iterator[Office]:
    (tmp_path / "bisectbot.db").write_bytes(sqlite_template.read_bytes())
    lab = make_lab(tmp_path, f"sqlite:///{tmp_path / 'bisectbot.db'}", scale=1.0)
    with office(lab, unsubscribe_url=BASE) as made:
        yield made
    lab.context.database.dispose()


@pytest.fixture
def site(desk: Office) -> Iterator[str]:
    """Where the web process of the laboratory listens."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(desk.context), port=port, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{port}/unsubscribe"
    server.should_exit = True
    thread.join()


def link(desk: Office) -> str:
    """What stands in the author's own copy, without the base."""
    desk.report()
    [own] = [one for one in desk.send() if one.recipients == (AUTHOR,)]
    url = str(own.message["List-Unsubscribe"]).rpartition("<")[2].rstrip(">")
    assert url.startswith(f"{BASE}/")
    return url.removeprefix(BASE)


def opted_out(desk: Office) -> frozenset[str]:
    with desk.context.database.read() as session:
        return rules.policy(desk.context, session).opted_out


def test_a_mail_program_posts_and_nothing_more_arrives(desk: Office, site: str) -> None:
    own = link(desk)
    for _ in range(2):  # as often as it likes
        done = requests.post(site + own, data={"List-Unsubscribe": "One-Click"}, timeout=30, allow_redirects=False)
        assert done.status_code == 200
        assert "set-cookie" not in done.headers
    assert opted_out(desk) == {AUTHOR}
    desk.report()
    assert reached(desk.send()) == {OPERATOR}


def test_a_program_that_looks_at_links_unsubscribes_nobody(desk: Office, site: str) -> None:
    own = link(desk)
    page = requests.get(site + own, timeout=30)
    assert page.status_code == 200
    assert f"No more mail to {AUTHOR}?" in page.text
    assert '<form method="post">' in page.text
    assert requests.head(site + own, timeout=30).status_code == 405
    assert opted_out(desk) == frozenset()


def test_the_page_s_button_does_the_same(desk: Office, site: str) -> None:
    assert f"No more mail to {AUTHOR}" in requests.post(site + link(desk), timeout=30).text
    assert opted_out(desk) == {AUTHOR}


@pytest.mark.parametrize("token", ["x", "%00", "a" * 2000, unsubscribe.token(AUTHOR, b"another installation's secret")])
def test_a_link_that_we_never_made_stops_nobody_s_mail(desk: Office, site: str, token: str) -> None:
    for answer in (requests.get(f"{site}/{token}", timeout=30), requests.post(f"{site}/{token}", timeout=30)):
        assert answer.status_code == 404
        assert "mailto:bot@example.org?subject=unsubscribe" in answer.text
    assert opted_out(desk) == frozenset()


def test_the_address_in_mail_to_lists_tells_how_to_leave(desk: Office, site: str) -> None:
    page = requests.get(site, timeout=30)
    assert page.status_code == 200
    assert "mailto:bot@example.org?subject=unsubscribe" in page.text


def test_an_address_is_text_and_no_markup(desk: Office, site: str) -> None:
    token = unsubscribe.token("<b>@example.org", rules.unsubscribe_secret(desk.context))
    assert "&lt;b&gt;@example.org" in requests.get(f"{site}/{token}", timeout=30).text


def test_the_secret_is_made_once_and_for_its_user_alone(desk: Office) -> None:
    first = rules.unsubscribe_secret(desk.context)
    assert rules.unsubscribe_secret(desk.context) == first
    assert (desk.context.config.state / "unsubscribe.secret").stat().st_mode & 0o777 == 0o600
    assert LIST not in unsubscribe.token(LIST, first)
