"""Every command that `bisectbot --help` lists is there and explains itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from bisectbot.cli import COMMANDS, group, main


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands and subcommands, as they are typed."""
    if words:
        yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from commands(inner, (*words, name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_registered_name_is_a_command(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, (_, line) in COMMANDS.items():
        assert f"{name} {line}" in text


def test_every_command_explains_itself_its_arguments_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    seen = list(commands(group))
    assert len(seen) > len(COMMANDS)
    for words in seen:
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0, words
        usage, _, text = capsys.readouterr().out.partition("\n\n")
        assert usage.startswith(f"Usage: bisectbot {' '.join(words)}"), words
        assert text.strip(), words


def test_an_unknown_command_ends_with_2_and_one_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stauts"])
    assert ended.value.code == 2
    assert "No such command 'stauts'" in capsys.readouterr().err


def test_help_answers_without_importing_the_service() -> None:
    program = (
        "import sys; from bisectbot.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print([m for m in ('sqlalchemy', 'numpy', 'fastapi', 'celery') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
