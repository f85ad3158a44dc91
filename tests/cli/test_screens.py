"""What an operator sees: nothing of what people wrote is taken for mark-up, and no probability claims certainty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bisectbot.cli import screens
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from tests.support.lab import BRANCH, HOST, TREE, Lab, make_lab

SUBJECT = "[mm] fix :bug: in [bold]x[/bold]"


@pytest.fixture
def lab(tmp_path: Path, database_url: str) -> Iterator[Lab]:
    made = make_lab(tmp_path, database_url)
    yield made
    made.context.database.dispose()


def test_a_bisection_in_eighty_columns(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    good = lab.upstream.commit({"level": "100\n", "number": "0\n"}, subject="good")
    culprit = lab.upstream.commit({"level": "90\n", "number": "1\n"}, good, subject=SUBJECT)
    bad = lab.upstream.commit({"level": "90\n", "number": "2\n"}, culprit, subject="bad")
    lab.upstream.push(bad)
    lab.tick()
    submit_bisection(lab.context, "ada", BisectArguments(TREE, BRANCH, good, bad))
    lab.work()
    capsys.readouterr()  # the log
    seen = status.bisection_status(lab.context, "B1")
    screens.bisection(seen)
    screens.overview(status.overview(lab.context))
    out = capsys.readouterr().out
    for unbroken in (HOST, culprit[:12], "not done: taking the commit back", ">0.999"):
        assert unbroken in out
    assert all(word in out for word in SUBJECT.split())
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("probability", "text"), [(1.0, ">0.999"), (0.99951, ">0.999"), (0.9994, "0.999"), (0.5, "0.500"), (0.0, "<0.001")]
)
def test_no_probability_claims_certainty(probability: float, text: str) -> None:
    assert screens.odds(probability) == text
