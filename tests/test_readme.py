"""The README is held against the house: its links, its commands, its example, its map."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bisectbot.config import load
from tests.support.commandline import parse, printed

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FOLDERS = [ROOT / name for name in ("bisectbot", "workers", "config", "deploy")]
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted(path for folder in FOLDERS for path in folder.rglob("README.md")),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", document.read_text()):
        assert "://" in link or (document.parent / link).exists(), link


def test_its_commands_exist() -> None:
    commands = printed(README)
    assert len(commands) >= 8
    for command in commands:
        parse(shlex.split(command.split(" < ")[0])[1:])


def test_your_own_tree_takes_ten_lines_that_are_good(tmp_path: Path) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(text.splitlines()) <= 10
    path = tmp_path / "bisectbot.yaml"
    path.write_text(text)
    config = load(path)
    assert config.state == tmp_path / "state"
    assert [job.name for job in config.units("parse")] == ["parse"]


def test_the_map_has_every_room() -> None:
    text = README.read_text()
    rooms = {path.parent.name for path in (ROOT / "bisectbot").glob("*/__init__.py")}
    for room in rooms:
        assert f"bisectbot/{room}/" in text
    for folder in FOLDERS[1:]:
        assert f"{folder.name}/" in text


def test_its_targets_are_the_makefile_s() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = README.read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    used = set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, re.MULTILINE))
    assert {"demo", "test", "lint", "test-real"} <= used <= targets
