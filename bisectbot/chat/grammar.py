"""What people write becomes commands. Nothing but parsing: no service, no people, no network.

One grammar for all transports; they differ only in how a command is told from talk, which a `Dialect` says.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

LONGEST_LINE = 1000
"""Characters of a command; more is no command that anybody typed."""


class Role(enum.IntEnum):
    """Who somebody is; each may do what those before may."""

    ANYONE = 0
    DEVELOPER = 1
    SHERIFF = 2
    OPERATOR = 3


@dataclass(frozen=True)
class Verb:
    """A verb: who may use it, what follows it. After ``words`` positional arguments free text begins, if it takes any.

    ``example`` is what help shows: its first argument has an ellipsis, by which an echo of help is known.
    """

    name: str
    role: Role
    usage: str
    does: str
    example: str
    keys: tuple[str, ...] = ()
    words: int = 9
    text: bool = False


_A, _D, _S, _O = Role.ANYONE, Role.DEVELOPER, Role.SHERIFF, Role.OPERATOR
_WHERE = ("tree", "branch", "job", "host", "suite", "kpi")

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("help", _A, "[VERB]", "this, or how a verb is used", "help …", words=1),
        Verb(
            "bisect", _D, "METRIC good=REV bad=REV [host=GROUP] [job=NAME] [confirm]", "find the commit that did it",
            "bisect will-it-scale.… good=next-20221114 bad=next-20221115 host=icl",
            ("good", "bad", "kpi", *_WHERE),
        ),
        Verb(
            "compare", _D, "REV REV [METRIC] [host=GROUP] [suite=NAME] [runs=N] [confirm]", "measure two commits",
            "compare v6.7-rc… v6.7-rc2 suite=aim9 host=ivb runs=12", ("runs", *_WHERE),
        ),
        Verb(
            "test", _D, "[R12] [URL | branch=NAME] [base=REV] [runs=N] [confirm]", "measure your patch",
            "test R… https://lore.kernel.org/r/MESSAGE-ID", ("base", "runs", *_WHERE),
        ),
        Verb("status", _A, "[B7 | Q3 | R12]", "what is going on", "status B…"),
        Verb("queue", _A, "", "what waits for which hosts", "queue …"),
        Verb("hosts", _A, "[GROUP]", "hosts and how they are", "hosts …"),
        Verb("cancel", _D, "ID [WHY]", "stop a bisection, request or run", "cancel B… box needed", (), 1, True),
        Verb(
            "retry", _D, "ID [runs=N] [confirm]", "run what failed again, or N more for undecided commits",
            "retry B… runs=20", ("runs",),
        ),
        Verb(
            "wrong", _D, "R12 [WHY]", "this report is wrong; a commit named in WHY is tested",
            "wrong R… effect is in c0fb4765c508", (), 1, True,
        ),
        Verb(
            "accept", _D, "R12 [WHY]", "the new level is the expected one", "accept R… expected, see its message",
            (), 1, True,
        ),
        Verb("fix", _D, "R12 COMMIT-OR-TITLE", "what mends it", "fix R… c0fb4765c508", (), 1, True),
        Verb("dup", _S, "R12 R9", "the same as another report", "dup R… R…"),
        Verb(
            "subscribe", _D, "[path=P] [host=G] [suite=S] [min=5%] [kinds=regression] [digest=weekly]", "be told",
            "subscribe path=… host=icl min=5% kinds=regression digest=weekly",
            ("path", "host", "suite", "min", "kinds", "digest"),
        ),
        Verb("unsubscribe", _D, "W12", "be told no longer", "unsubscribe W…"),
        Verb("mute", _D, "[suite=S] [30d]", "no mail to you", "mute suite=… 30d", ("suite",)),
        Verb("unmute", _D, "", "mail to you again", "unmute …"),
        Verb("whoami", _A, "", "who you are to me", "whoami …"),
        Verb("approve", _S, "R12", "send a held report", "approve R…"),
        Verb("reject", _S, "R12 WHY", "never send it", "reject R… noise", (), 1, True),
        Verb("pause", _O, "host=NAME [WHY]", "a host takes nothing new", "pause host=… thermal", ("host",), 0, True),
        Verb("resume", _O, "host=NAME [WHY]", "a host works again", "resume host=… cooled", ("host",), 0, True),
        Verb("drain", _O, "[WHY]", "no host takes anything new", "drain … for the move", ("host",), 0, True),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """What somebody wants: a verb that exists, keys that it knows; whether it makes sense is for `commands`."""

    verb: str
    words: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    text: str = ""
    raw: str = ""

    def option(self, key: str) -> str:
        """The last value given for ``key``, "" if none."""
        return next((value for name, value in reversed(self.options) if name == key), "")


@dataclass(frozen=True)
class Mistake:
    """Somebody spoke to us and was not understood; ``message`` is one line."""

    message: str
    raw: str = ""


@dataclass(frozen=True)
class Dialect:
    """How a command is told from talk. ``trigger`` matches what stands before the verb, at the start of a line.

    ``first_column``: no blanks before it. ``most`` commands of a message count. ``bare``: a message of one line may
    do without a trigger if its first word is a verb (a conversation with us alone).
    """

    name: str
    trigger: re.Pattern[str]
    most: int = 1
    first_column: bool = False
    bare: bool = False
    whole: bool = False


def _dialect(name: str, trigger: str, *, most: int = 1, first_column: bool = False, bare: bool = False) -> Dialect:
    start = "" if first_column else "[ \t]{0,3}"
    pattern = re.compile(rf"^{start}(?:{trigger})(?=[ \t]|$)[ \t]*", re.IGNORECASE | re.MULTILINE)
    return Dialect(name, pattern, most, first_column, bare)


SLASH = Dialect("slash", re.compile(r"\A[ \t]*"), whole=True)
"""Text after a slash command: it is meant for us, whole."""
MENTION = _dialect("mention", r"@bisectbot:?")
WORD = _dialect("word", r"bisectbot[:,]|@bisectbot:?|!bisect")
PRIVATE = _dialect("private", r"bisectbot[:,]|@bisectbot:?|!bisect|/bisectbot", bare=True)
MAIL = _dialect("mail", "#bisectbot", most=3, first_column=True)

_OPTION = re.compile(r"([a-z]+)=(\S*)")
_END = re.compile(
    r"^(?:-- ?$|-{3,}[ \t]*(?:original message|forwarded message|begin forwarded)|begin forwarded message)",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def parse(text: str, dialect: Dialect) -> tuple[Command | Mistake, ...]:
    """The commands in a message, at most ``dialect.most``; () for talk. Never raises."""
    if dialect.whole:
        return (_command(text.strip().split("\n", 1)[0]),)
    triggers = list(dialect.trigger.finditer(text))
    if not triggers:
        return _bare(text) if dialect.bare else ()
    if len(triggers) == 1 and triggers[0].start() == 0:  # what most commands look like
        rests: Iterable[str] = (text[triggers[0].end() :].partition("\n")[0],)
    else:
        end = text.find("\n", triggers[-1].end())
        lines = _own_lines(text[: end if end >= 0 else None])
        rests = (line[match.end() :] for line in lines if (match := dialect.trigger.match(line)))
    wanted = (rest.strip() for rest in rests)
    return tuple(_command(rest) for rest in itertools.islice((w for w in wanted if not _echo(w)), dialect.most))


def _bare(text: str) -> tuple[Command | Mistake, ...]:
    line = text.strip()
    first = line.split(None, 1)[0].casefold() if line else ""
    if first not in VERBS or "\n" in line or _echo(line):
        return ()
    return (_command(line),)


def _echo(line: str) -> bool:
    """Whether a command is one of help's examples, come back: its first argument has an ellipsis."""
    return "…" in line and any("…" in word for word in line.split()[1:2])


def _own_lines(text: str) -> Iterator[str]:
    """The lines that the writer wrote: no quotes, code, forwarded text or signature."""
    fenced = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if fenced:
            fenced = not line.lstrip().startswith(("```", "~~~"))
        elif line.lstrip().startswith(("```", "~~~")):
            fenced = True
        elif _END.match(line):
            return
        elif not line.lstrip().startswith((">", "|")) and not line.startswith(("    ", "\t")):
            yield line


def _command(line: str) -> Command | Mistake:
    """The command that ``line``, without its trigger, gives."""
    if len(line) > LONGEST_LINE:
        return Mistake(f"that is longer than {LONGEST_LINE} characters; say it shorter", line[:LONGEST_LINE])
    line = _CONTROL.sub(" ", line)
    tokens = line.split()
    if not tokens:
        return Command("help", raw=line)
    verb = VERBS.get(tokens[0].casefold().removesuffix(":"))
    if verb is None:
        near = get_close_matches(tokens[0].casefold()[:20], VERBS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`help` lists what I can do"
        return Mistake(f"I do not know {tokens[0][:20]!r}; {hint}", line)
    return _arguments(verb, tokens[1:], line)


def _arguments(verb: Verb, tokens: list[str], line: str) -> Command | Mistake:
    words: list[str] = []
    options: list[tuple[str, str]] = []
    for at, token in enumerate(tokens):
        match = _OPTION.fullmatch(token)
        if token == "--":  # noqa: S105 - not a password
            return Command(verb.name, tuple(words), tuple(options), " ".join(tokens[at + 1 :]), line)
        if match and match[1] in verb.keys:
            options.append((match[1], match[2]))
        elif verb.text and len(words) >= verb.words:
            return Command(verb.name, tuple(words), tuple(options), " ".join(tokens[at:]), line)
        elif match:
            known = ", ".join(verb.keys) or "none"
            return Mistake(f"{verb.name} has no {match[1]}=; it has: {known}", line)
        else:
            words.append(token)
    return Command(verb.name, tuple(words), tuple(options), "", line)
