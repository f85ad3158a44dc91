"""``bisectbot compare``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bisectbot.cli import main

MATRICES = {
    "axes": {"test": "open1", "tbox_group": "lkp-abc-2sp1"},
    "matrices": {
        "0123456789abcdef0123456789abcdef01234567": {"bench.score": [100, 101, 99], "uptime.boot": [50] * 3},
        "fedcba9876543210fedcba9876543210fedcba98": {"bench.score": [110, 111, 109], "uptime.boot": [80] * 3},
    },
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


@pytest.fixture
def case(tmp_path: Path) -> str:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(MATRICES))
    return str(path)


def test_table(capsys: pytest.CaptureFixture[str], case: str):
    code, out, err = run(capsys, "compare", "--matrix", case)
    assert (code, err) == (0, "")
    assert out.splitlines()[-3:] == [
        "    100.00           +10.0%     110.00        bench.score",
        "     50.00           +60.0%      80.00        uptime.boot",
        "",
    ]


def test_stdin_and_groups_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    data = json.loads(json.dumps(MATRICES))
    for stats in data["matrices"].values():
        stats["bench.other"] = stats["bench.score"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(data).encode())))
    _, out, _ = run(capsys, "compare", "--matrix", "-", "--order", "groups", "--lkp-exact")
    assert [line.split()[-1] for line in out.splitlines()[-4:-1]] == ["uptime.boot", "bench.other", "bench.score"]


def test_json(capsys: pytest.CaptureFixture[str], case: str):
    _, out, _ = run(capsys, "compare", "--matrix", case, "--json")
    assert json.loads(out)["rows"][0] == {
        "name": "bench.score",
        "cells": [
            {"mean": 100.0, "spread": None, "change": None},
            {"mean": 110.0, "spread": None, "change": 10.0},
        ],
        "points": False,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ('{"matrices": {"a": {}}}', "nothing to compare it with"),
        ('{"matrices": {"a": {"x.y": ["1", "z", 2]}, "b": {}}}', "expected a number or null"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str):
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, out, err = run(capsys, "compare", "--matrix", str(path))
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_nothing_changed_prints_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "same.json"
    path.write_text('{"matrices": {"a": {"x.y": [1, 1, 1]}, "b": {"x.y": [1, 1, 1]}}}')
    assert run(capsys, "compare", "--matrix", str(path)) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "two result roots or commits are needed"),
        (("nowhere",), "two result roots or commits are needed"),
        ((".", "nowhere"), "nowhere: no such file or directory"),
        (("v6.6", "v6.7", "--config", "nowhere.yaml"), "nor a configuration at nowhere.yaml"),
        ((".", ".", "--matrix", "-"), "either A and B or --matrix"),
    ],
)
def test_sides_that_are_not_there(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str):
    code, out, err = run(capsys, "compare", *arguments)
    assert (code, out) == (2, "")
    assert says in err
