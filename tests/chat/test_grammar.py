"""Text becomes commands: those that are meant, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.chat.grammar import MAIL, MENTION, PRIVATE, SLASH, VERBS, WORD, Command, Dialect, Mistake, parse

DIALECTS = (MENTION, WORD, PRIVATE, MAIL)
TRIGGERS = {"mention": "@bisectbot", "word": "bisectbot:", "private": "!bisect", "mail": "#bisectbot"}
COMMAND = st.sampled_from(["status B77", "cancel B77 box needed", "bisect a.b good=v1 bad=v2", "help", "hosts"])
TALK = st.text(alphabet=st.characters(blacklist_characters="`~>|\n\r"), max_size=40)


def one(text: str, dialect: Dialect = MENTION) -> Command:
    [found] = parse(text, dialect)
    assert isinstance(found, Command), found
    return found


def test_words_keys_and_free_text() -> None:
    command = one("@bisectbot bisect will-it-scale.per_process_ops good=v6.1 bad=next-20221115~2 host=icl confirm")
    assert command.verb == "bisect"
    assert command.words == ("will-it-scale.per_process_ops", "confirm")
    assert (command.option("good"), command.option("bad"), command.option("host")) == ("v6.1", "next-20221115~2", "icl")
    assert one("@bisectbot wrong R12 effect is in a=b c0fb4765c508").text == "effect is in a=b c0fb4765c508"
    assert one("@bisectbot pause host=icl thermal").text == "thermal"
    assert one("@bisectbot retry B7 -- why not = ok").text == "why not = ok"


@pytest.mark.parametrize(
    ("text", "dialect", "verb"),
    [
        ("status B7", SLASH, "status"),
        ("", SLASH, "help"),
        ("hello\n@BisectBot STATUS B7", MENTION, "status"),
        ("bisectbot: queue", WORD, "queue"),
        ("!bisect hosts", WORD, "hosts"),
        ("hosts", PRIVATE, "hosts"),
        ("#bisectbot test: base=v6.1", MAIL, "test"),
        ("Hi,\n\n#bisectbot status B7\n-- \nme", MAIL, "status"),
    ],
)
def test_each_transport_has_its_trigger(text: str, dialect: Dialect, verb: str) -> None:
    assert one(text, dialect).verb == verb


def test_a_chat_message_gives_one_command_and_a_mail_three() -> None:
    assert len(parse("@bisectbot hosts\n@bisectbot queue", MENTION)) == 1
    assert len(parse("#bisectbot hosts\n" * 5, MAIL)) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@bisectbot statsu B7", "did you mean status?"),
        ("@bisectbot frobnicate", "`help` lists what I can do"),
        ("@bisectbot bisect x gud=1", "bisect has no gud=; it has: good, bad"),
        ("@bisectbot status " + "x" * 2000, "longer than 1000 characters"),
    ],
)
def test_a_mistake_is_told_in_one_line(text: str, said: str) -> None:
    [found] = parse(text, MENTION)
    assert isinstance(found, Mistake)
    assert said in found.message
    assert "\n" not in found.message


@given(st.text(), st.sampled_from([*DIALECTS, SLASH]))
def test_nothing_that_is_written_makes_it_raise(text: str, dialect: Dialect) -> None:
    assert len(parse(text, dialect)) <= dialect.most
    for trigger in TRIGGERS.values():
        assert len(parse(f"{trigger} {text}", dialect)) <= dialect.most


@given(st.sampled_from(DIALECTS), COMMAND, TALK, st.sampled_from(["> ", ">> ", " > ", "    ", "\t", "| "]))
def test_what_is_quoted_or_indented_never_triggers(dialect: Dialect, command: str, talk: str, mark: str) -> None:
    assert parse(f"look here:\n{talk}\n{mark}{TRIGGERS[dialect.name]} {command}\n", dialect) == ()


@given(st.sampled_from(DIALECTS), COMMAND, st.sampled_from(["```", "~~~", "```sh", "  ```"]))
def test_what_is_in_a_code_fence_never_triggers(dialect: Dialect, command: str, fence: str) -> None:
    assert parse(f"try\n{fence}\n{TRIGGERS[dialect.name]} {command}\n```\nbye", dialect) == ()


@given(
    st.sampled_from(DIALECTS),
    COMMAND,
    st.sampled_from(["-- ", "--", "-----Original Message-----", "---------- Forwarded message ---------"]),
)
def test_what_follows_a_signature_or_is_forwarded_never_triggers(dialect: Dialect, command: str, mark: str) -> None:
    assert parse(f"thanks\n{mark}\n{TRIGGERS[dialect.name]} {command}\n", dialect) == ()


@given(st.sampled_from(DIALECTS), COMMAND, st.sampled_from(["say ", "x", "see: ", "`"]))
def test_a_trigger_that_does_not_begin_its_line_is_talk(dialect: Dialect, command: str, before: str) -> None:
    assert parse(f"{before}{TRIGGERS[dialect.name]} {command}", dialect) == ()


def test_a_trigger_is_a_whole_word() -> None:
    assert parse("@bisectbots status", MENTION) == ()
    assert parse("@bisectbot-dev status", MENTION) == ()
    assert parse("#bisectbot-dev status", MAIL) == ()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_an_example_of_help_never_triggers_where_it_may_be_an_echo(dialect: Dialect, verb: object) -> None:
    example = getattr(verb, "example")  # noqa: B009
    assert parse(f"{TRIGGERS[dialect.name]} {example}", dialect) == ()
    assert parse(f"{TRIGGERS[dialect.name].upper()}   {example} ", dialect) == ()
    assert parse(example, dialect) == ()
    assert "…" in example.split()[1]
