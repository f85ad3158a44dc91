"""Commands that documents print, held against the program."""

from __future__ import annotations

import re
from pathlib import Path

import click

from bisectbot.cli import group


def printed(document: Path, program: str = "bisectbot") -> list[str]:
    """The commands that a document prints: lines of its shell blocks, and inline code that begins with the program."""
    text = document.read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    found = [line for line in lines if line.split(" ")[0] in {program, f".venv/bin/{program}"}]
    return found + [f"{program} {words}" for words in re.findall(rf"`{program} ([a-z][^`]*)`", text)]


def parse(words: list[str]) -> None:
    """Fails unless the words are a command of ours with its arguments and options."""
    command: click.Command = group
    context = click.Context(group)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"no command {words[0]!r}"
        command, words = found, words[1:]
    context = click.Context(command)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            parameter.type.exists = False
    command.parse_args(context, words)
