"""The terminal: what is typed is answered and kept for the next time, Ctrl-C drops a line, words are completed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from bisectbot.chat import console
from bisectbot.chat.commands import Desk
from bisectbot.chat.grammar import VERBS

CTRL_C, CTRL_D = "\x03", "\x04"


def test_what_is_typed_is_answered_and_kept(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    people, said = console.operator()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for typed in (f"whoami\rdrain{CTRL_C}help whoami\r{CTRL_D}", "queue\rquit\rwhoami\r"):
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text(typed)
            console.converse(Desk(desk.context, people), said, tmp_path)
    shown = capsys.readouterr().out
    assert shown.count(f"you are {said.identity.id}, operator") == 1
    assert "who you are to me" in shown
    assert "takes nothing new" not in shown
    kept = list(FileHistory(str(tmp_path / "chat.history")).load_history_strings())
    assert kept == ["quit", "queue", "help whoami", "whoami"]  # the newest first, as the arrow key offers them


def test_every_verb_and_key_is_completed() -> None:
    words = console.completions()
    assert words.keys() == VERBS.keys()
    assert words["help"] == dict.fromkeys(VERBS)
    assert set(words["mute"] or {}) == {"suite="}
