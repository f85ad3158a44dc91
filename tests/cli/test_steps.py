"""The steps command, from file to table, JSON, picture and exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bisectbot.cli.steps import steps
from bisectbot.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    lines = ["time;commit;ops;lat"]
    for head in range(40):
        for _ in range(2):
            ops = (1000 if head < 25 else 950) + rng.normal(0, 3)
            lines.append(
                f"2026-01-01 {head // 6:02}:{head % 6}0:00 +0000;c{head:03}f;{ops:.2f};{rng.normal(5, 0.1):.3f}"
            )
    (tmp_path / "runs.csv").write_text("\n".join(lines))
    (tmp_path / "otava.yaml").write_text(
        "tests:\n  demo:\n    type: csv\n    file: runs.csv\n    time_column: time\n    attributes: [commit]\n"
        "    csv_options: {delimiter: ';'}\n    metrics:\n"
        "      ops: {scale: 2, direction: 1}\n      lat: {direction: -1}\n"
    )
    return tmp_path


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(steps, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def test_a_table_for_people(folder: Path):
    text = run(folder / "runs.csv", "--better", "more").output
    assert text.startswith("ops: 40 heads, 1 step\n")
    assert "┊" in text
    assert "c025f" in text
    assert "regression" in text
    assert "lat: 40 heads, no steps" in text


def test_json_for_programs_from_stdin(folder: Path):
    result = run("-", "--json", "--value", "ops", stdin=(folder / "runs.csv").read_text())
    (series,) = json.loads(result.output)["series"]
    (step,) = series["steps"]
    assert (series["name"], series["heads"], step["index"], step["head"]) == ("ops", 40, 25, "c025f")
    assert step["direction"] == "unknown"


def test_an_otava_configuration_gives_columns_scales_and_directions(folder: Path):
    first, second = json.loads(run(folder / "otava.yaml", "--json").output)["series"]
    assert [first["name"], second["name"]] == ["demo.ops", "demo.lat"]
    assert first["steps"][0]["direction"] == "regression"
    assert first["steps"][0]["before"] == pytest.approx(2000, abs=5)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--better", "more", "--fail-on", "regression"], 1),
        (["--better", "less", "--fail-on", "regression"], 0),
        (["--fail-on", "any"], 1),
        (["--fail-on", "any", "--since", "c030f"], 0),
        (["--fail-on", "any", "--since", "20"], 1),
        (["--fail-on", "any", "--least-effect", "8"], 0),
        ([], 0),
    ],
)
def test_exit_status_as_a_gate(folder: Path, options: list[str], status: int):
    assert run(folder / "runs.csv", *options).exit_code == status


def test_a_picture(folder: Path):
    run(folder / "runs.csv", "--plot", folder / "out.png")
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fail-on", "regression"], "--better"),
        (["--since", "nowhere"], "no such head"),
        (["--delimiter", "ab"], "one character"),
    ],
)
def test_wrong_use_is_told_in_one_line(folder: Path, options: list[str], message: str):
    with pytest.raises(UserError, match=message):
        run(folder / "runs.csv", *options)
