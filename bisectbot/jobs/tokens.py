"""The words of an expression: numbers, strings, names, operators, and where each stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bisectbot.jobs.origin import Origin


@dataclass(frozen=True, slots=True)
class Token:
    """``line`` counts the lines below the expression's first."""

    kind: str  # number, string, text, regex, words, name, word (keyword), op, sep, end
    text: str
    line: int


_KEYWORDS = frozenset(
    ["if", "elsif", "else", "unless", "case", "when", "then", "end", "and", "or", "not", "nil", "true", "false", "do"]
)
_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+|\\\n|\#[^\n]*)
      | (?P<sep>[\n;])
      | (?P<number>\d+\.\d+|\d[\d_]*)
      | (?P<string>'(?:[^'\\]|\\.)*')
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<symbol>:[A-Za-z_]\w*)
      | (?P<name>[A-Za-z_]\w*(?:\?(?![\w'":\[=])|!(?!=))?)
      | (?P<op>\*\*|&&|\|\||&\.|===?|!=|=~|!~|<=|>=|\.\.\.|\.\.|[-+*/%<>!?:()\[\],.|=])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = re.compile(r"%w(?:\[([^\]]*)\]|\(([^)]*)\)|\{([^}]*)\})")
_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)*)/(i?)")


def tokens(source: str, origin: Origin) -> list[Token]:
    """Cut a text into tokens, ended by one of kind ``end``. Raises UserError with file:line."""
    found: list[Token] = []
    at = line = 0
    while at < len(source):
        after_value = bool(found) and _ends_value(found[-1])
        kind, text, end = _token_at(source, at, after_value=after_value)
        if not kind:
            raise origin.down(line).error(f"{source[at]!r} is not understood in the expression `{brief(source)}`")
        if kind != "space":
            found.append(Token(kind, text, line))
        line += source.count("\n", at, end)
        at = end
    return [*found, Token("end", "the end", line)]


def _ends_value(token: Token) -> bool:
    return token.kind in {"number", "string", "text", "regex", "words", "name"} or token.text in {")", "]", "end"}


def _token_at(source: str, at: int, *, after_value: bool) -> tuple[str, str, int]:
    """Kind, text and end of the token at a position; after a value ``/`` divides and ``%`` takes the rest."""
    if not after_value:
        for kind, pattern in (("words", _WORDS), ("regex", _REGEX)):
            if match := pattern.match(source, at):
                return kind, match.group(), match.end()
    match = _TOKEN.match(source, at)
    if match is None or match.lastgroup is None:
        return "", "", at
    kind, text = match.lastgroup, match.group()
    if kind == "symbol" and after_value:  # `a ? b :c`
        return "op", ":", at + 1
    if kind == "symbol":
        return "string", f"'{text[1:]}'", match.end()
    if kind == "name" and text in _KEYWORDS:
        return "word", text, match.end()
    return kind, text, match.end()


def brief(source: str) -> str:
    """An expression as messages quote it."""
    line = " ".join(source.split())
    return line if len(line) <= 60 else line[:57] + "…"
