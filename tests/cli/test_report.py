"""``bisectbot report``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisectbot.cli import main
from bisectbot.report import to_json
from tests.report import samples

MAIL = Path(__file__).parents[1] / "golden" / "report" / "mails" / "2023.txt"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_parse_and_render_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = run(capsys, "parse", str(MAIL))
    assert code == 0
    assert json.loads(out)["finding"]["percent"] == -3.4
    twin = tmp_path / "report.json"
    twin.write_text(out, encoding="utf-8")
    code, tables, _ = run(capsys, "render", "--tables", str(twin))
    assert code == 0
    assert tables in MAIL.read_text(encoding="utf-8")
    assert tables.count("=" * 89) == 2


def test_render_a_mail(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    twin = tmp_path / "report.json"
    twin.write_text(to_json(samples.report()), encoding="utf-8")
    code, out, _ = run(capsys, "render", str(twin))
    assert code == 0
    assert out.startswith("Subject: [linus:master] [mm/slub]  93b7d0a2c4:  will-it-scale.per_process_ops 3.2% ")


@pytest.mark.parametrize(("command", "says"), [("parse", "no report in it"), ("render", "not JSON")])
def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, says: str):
    path = tmp_path / "bad"
    path.write_text("lunch?")
    code, out, err = run(capsys, command, str(path))
    assert (code, out) == (2, "")
    assert f"{path}: {says}" in err
    assert err.count("\n") == 1
