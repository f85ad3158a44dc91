"""The same commands in a terminal: for trying them, and for operators. Whoever may run it is an operator."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

from bisectbot.chat.answer import plain
from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import SLASH, VERBS, Role
from bisectbot.chat.people import Identity, People, Person
from bisectbot.chat.said import Said


def operator() -> tuple[People, Said]:
    """Whoever sits at this machine, as an operator."""
    name = getpass.getuser()
    identity = Identity("console", name)
    return People({identity.key: Person(name, Role.OPERATOR, listed=True)}), Said(identity)


def converse(desk: Desk, said: Said, state: Path) -> None:
    """Answer line by line until the end of the input; with history and completion on a terminal."""
    for line in _terminal(state) if sys.stdin.isatty() else sys.stdin:
        if line.strip() in {"quit", "exit"}:
            return
        if line.strip():
            for answer in desk.hear(line, SLASH, said):
                sys.stdout.write(plain(answer) + "\n")
                sys.stdout.flush()


def _terminal(state: Path) -> Iterator[str]:
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - only a terminal needs it
    from prompt_toolkit.completion import NestedCompleter  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415

    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(state / "chat.history")), completer=NestedCompleter.from_nested_dict(completions())
    )
    while True:
        try:
            yield session.prompt("bisectbot> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def completions() -> dict[str, dict[str, None] | None]:
    """Every verb with its keys; `help` with every verb."""
    words: dict[str, dict[str, None] | None] = {
        verb.name: {f"{key}=": None for key in verb.keys} or None for verb in VERBS.values()
    }
    return {**words, "help": dict.fromkeys(VERBS)}
