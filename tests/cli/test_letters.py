"""`bisectbot report show`, `approve`, `reject`, `judge` and `bisectbot mail`, as operators type them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bisectbot.cli import main
from bisectbot.service.post import inbox
from bisectbot.store.tables import OutboxState
from tests.support.lab import make_lab
from tests.support.office import AUTHOR, LIST, OPERATOR, Office, office

Run = tuple[int, str, str]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.reset_defaults()


@pytest.fixture
def desk(tmp_path: Path, sqlite_template: Path) -> Iterator[Office]:
    (tmp_path / "bisectbot.db").write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{tmp_path / 'bisectbot.db'}"
    lab = make_lab(tmp_path, url, {"mail": {"policy": "lists"}}, scale=1.0)
    with office(lab) as made:
        yield made
    lab.context.database.dispose()


def run(desk: Office, capfd: pytest.CaptureFixture[str], *words: str) -> Run:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--config", str(desk.lab.folder / "bisectbot.yaml")])
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_a_report_is_looked_at_before_it_is_approved(desk: Office, capfd: pytest.CaptureFixture[str]) -> None:
    report = f"R{desk.report()}"
    status, out, _ = run(desk, capfd, "report", "show", report)
    assert status == 0
    assert out.startswith(f"{report} held: lists need approval")
    assert f"Ada Byron <{AUTHOR}>" in out
    assert "MAINTAINERS: LEVEL OF THE LAB" in out
    assert run(desk, capfd, "report", "approve", report) == (0, f"{report} is released\n", "")
    desk.send()
    inbox.take(
        desk.context,
        f"From: {AUTHOR}\nMessage-ID: <a@b>\nIn-Reply-To: {desk.row().message_id}\n\nThanks [really]\n".encode(),
    )
    _, out, _ = run(desk, capfd, "report", "show", report)
    assert "released" in out.splitlines()[0]
    assert "has it" in out
    assert "Thanks [really]" in out


def test_as_mail_is_the_very_bytes(desk: Office, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    report = desk.report()
    with pytest.raises(SystemExit):
        main(["report", "show", f"r{report}", "--as-mail", "--config", str(desk.lab.folder / "bisectbot.yaml")])
    assert capfdbinary.readouterr().out == desk.row(report).raw


def test_json_for_programs(desk: Office, capfd: pytest.CaptureFixture[str]) -> None:
    report = f"R{desk.report()}"
    page = json.loads(run(desk, capfd, "report", "show", report, "--json")[1])
    assert (page["id"], page["state"]) == (report, "held")
    [letter] = page["letters"]
    why = {entry["address"]: (entry["place"], entry["why"], entry["list"]) for entry in letter["addressees"]}
    assert why[AUTHOR] == ("to", "author", False)
    assert why[LIST] == ("cc", "MAINTAINERS: LEVEL OF THE LAB", True)


def test_a_report_is_rejected_or_judged(desk: Office, capfd: pytest.CaptureFixture[str]) -> None:
    one, two = f"R{desk.report()}", f"R{desk.report()}"
    assert run(desk, capfd, "reject", one, "--why", "a layout effect") == (0, f"{one} is rejected\n", "")
    assert run(desk, capfd, "report", "reject", one, "--why", "again")[2] == f"bisectbot: {one} is rejected already\n"
    assert run(desk, capfd, "report", "judge", two, "accepted", "--why", "as meant")[1] == f"{two} is judged accepted\n"
    assert "judged accepted by" in run(desk, capfd, "report", "show", two)[1]
    mail = json.loads(run(desk, capfd, "mail", "status", "--json")[1])
    assert (mail["judged"], mail["right"], mail["proven"]) == (2, 1, False)


def test_all_mail_is_stopped_at_once(desk: Office, capfd: pytest.CaptureFixture[str]) -> None:
    report = f"R{desk.report()}"
    run(desk, capfd, "approve", report)
    assert run(desk, capfd, "mail", "stop", "--why", "wrong host")[1] == "mail is stopped\n"
    assert desk.send() == []
    assert "Stopped: wrong host" in run(desk, capfd, "mail", "status")[1]
    assert run(desk, capfd, "mail", "resume")[1] == "mail leaves again\n"
    desk.days_pass(0.1)
    assert desk.send()
    assert desk.row().state is OutboxState.SENT


def test_operators_speak_for_people(desk: Office, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(desk, capfd, "mail", "refuse", AUTHOR)[1] == f"{AUTHOR} gets no more mail\n"
    assert run(desk, capfd, "mail", "refuse", AUTHOR)[2] == f"bisectbot: {AUTHOR!r} gets no mail already\n"
    assert f"opted out: {AUTHOR}" in run(desk, capfd, "mail", "status")[1]
    assert run(desk, capfd, "mail", "allow", AUTHOR)[1] == f"{AUTHOR} gets mail again\n"
    assert run(desk, capfd, "mail", "allow", OPERATOR)[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "show", "R9"), "there is no report R9; see `bisectbot status`"),
        (("report", "show", "B1", "--as-mail"), "'B1' is no report; expected R and a number, as in R12"),
        (("mail", "retry", "M9"), "there is no mail M9; see `bisectbot status`"),
        (("retry", "B9", "--runs", "20"), "there is no bisection B9; see `bisectbot status`"),
    ],
)
def test_what_is_not_there_is_one_line(
    desk: Office, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert run(desk, capfd, *words) == (2, "", f"bisectbot: {said}\n")
