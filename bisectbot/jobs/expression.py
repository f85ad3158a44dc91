"""The expressions of job files: a small language that reads like the Ruby people write there.

Nothing here runs Ruby or Python from a file. The text is cut into tokens and parsed into the nodes below, and
``evaluate.py`` walks them: names of the job's keys, literals, arithmetic, comparisons, ``? :``, ``if``, ``case``,
and the methods listed there. Anything else is an error that names file, line and what would be understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bisectbot.jobs.origin import Origin
from bisectbot.jobs.tokens import Token, brief, tokens

MAX_DEPTH = 30  # nesting of an expression: beyond what people write, far below Python's recursion limit
MAX_OPERATORS = 200


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Text:
    """A double-quoted string: pieces of text and ``#{expressions}``."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class Regex:
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Listing:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A range ``low..high`` (``...`` leaves the end out)."""

    low: Node
    high: Node
    open_end: bool


@dataclass(frozen=True, slots=True)
class Index:
    target: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Call:
    """``target.method(args)``; ``safe`` is ``&.``, which leaves nil alone."""

    target: Node
    method: str
    args: tuple[Node, ...]
    safe: bool


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class If:
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Case:
    subject: Node
    branches: tuple[tuple[tuple[Node, ...], Node], ...]
    otherwise: Node


Node = Literal | Text | Regex | Name | Listing | Span | Index | Call | Unary | Binary | If | Case


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression, where it stands, and its text for messages."""

    node: Node
    source: str
    origin: Origin


def parse_expression(source: str, origin: Origin) -> Expression:
    """Parse one expression. Raises UserError with file:line and what was expected."""
    parser = _Parser(source, origin)
    node = parser.whole()
    return Expression(node, " ".join(source.split()), origin)


# Weakest first; the operators of one level bind from the left.
_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"or", "and"}),
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "===", "!=", "=~", "!~"}),
    frozenset({"<", "<=", ">", ">="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, source: str, origin: Origin) -> None:
        self.source = source
        self.origin = origin
        self.tokens = tokens(source, origin)
        self.at = 0
        self.depth = 0
        self.operators = 0

    def whole(self) -> Node:
        self.skip_separators()
        node = self.expression()
        self.skip_separators()
        if self.peek().kind != "end":
            raise self.expected("an operator or the end of the expression")
        return node

    # tokens

    def peek(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, *texts: str) -> str | None:
        token = self.peek()
        if token.kind in {"op", "word"} and token.text in texts:
            self.take()
            return token.text
        return None

    def need(self, text: str) -> None:
        if self.accept(text) is None:
            raise self.expected(f"`{text}`")

    def skip_separators(self) -> None:
        while self.peek().kind == "sep":
            self.take()

    def expected(self, what: str) -> Exception:
        token = self.peek()
        found = token.text if token.kind != "sep" else "the end of the line"
        return self.origin.down(token.line).error(
            f"expected {what}, found {found!r} in the expression `{brief(self.source)}`"
        )

    # grammar

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.origin.error(f"expression nested deeper than {MAX_DEPTH}: `{brief(self.source)}`")
        node = self.ternary()
        self.depth -= 1
        return node

    def ternary(self) -> Node:
        condition = self.span()
        if self.accept("?") is None:
            return condition
        self.skip_separators()
        then = self.expression()
        self.skip_separators()
        self.need(":")
        self.skip_separators()
        return If(condition, then, self.expression())

    def span(self) -> Node:
        low = self.binary(0)
        dots = self.accept("..", "...")
        return low if dots is None else Span(low, self.binary(0), open_end=dots == "...")

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.accept(*_LEVELS[level])) is not None:
            self.operators += 1
            if self.operators > MAX_OPERATORS:
                raise self.origin.error(f"more than {MAX_OPERATORS} operators: `{brief(self.source)}`")
            self.skip_separators()
            left = Binary({"or": "||", "and": "&&", "===": "=="}.get(operator, operator), left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        operators: list[str] = []
        while (operator := self.accept("!", "not", "-")) is not None:
            operators.append("!" if operator == "not" else operator)
        if len(operators) > MAX_DEPTH:
            raise self.origin.error(f"expression nested deeper than {MAX_DEPTH}: `{brief(self.source)}`")
        node = self.power()
        for operator in reversed(operators):
            node = Unary(operator, node)
        return node

    def power(self) -> Node:
        base = self.postfix()
        if self.accept("**") is None:
            return base
        return Binary("**", base, self.expression())

    def postfix(self) -> Node:
        node = self.primary()
        for _ in range(MAX_DEPTH):
            if (dot := self.accept(".", "&.")) is not None:
                if self.peek().kind not in {"name", "word"}:
                    raise self.expected("the name of a method")
                token = self.take()
                args = self.items(")") if self.accept("(") is not None else ()
                node = Call(node, token.text, args, safe=dot == "&.")
            elif self.accept("[") is not None:
                self.skip_separators()
                node = Index(node, self.expression())
                self.skip_separators()
                self.need("]")
            else:
                return node
        raise self.origin.error(f"more than {MAX_DEPTH} calls in a row: `{brief(self.source)}`")

    def items(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        self.skip_separators()
        while self.accept(closing) is None:
            if found:
                self.need(",")
                self.skip_separators()
            found.append(self.expression())
            self.skip_separators()
        return tuple(found)

    def primary(self) -> Node:  # noqa: C901 - one line per kind of value
        token = self.take()
        match token.kind, token.text:
            case "number", text:
                return Literal(float(text) if "." in text else _integer(text, self.origin.down(token.line)))
            case "string", text:
                return Literal(re.sub(r"\\(['\\])", r"\1", text[1:-1]))
            case "text", text:
                return self.text(text[1:-1], token.line)
            case "words", text:
                return Listing(tuple(Literal(word) for word in text[3:-1].split()))
            case "regex", text:
                return Regex(_regex(text, self.origin.down(token.line)))
            case "word", "nil":
                return Literal(None)
            case "word", "true" | "false" as text:
                return Literal(text == "true")
            case "word", "if" | "unless" as text:
                return self.conditional(negated=text == "unless")
            case "word", "case":
                return self.case()
            case "name", text:
                return Name(text)
            case "op", "[":
                return Listing(self.items("]"))
            case "op", "(":
                self.skip_separators()
                node = self.expression()
                self.skip_separators()
                self.need(")")
                return node
        self.at -= token.kind != "end"
        raise self.expected("a value, a key of the job, `(`, `[`, `if` or `case`")

    def text(self, body: str, line: int) -> Node:
        parts: list[str | Expression] = []
        for piece in re.split(r"(#\{[^}]*\})", body):
            if piece.startswith("#{") and piece.endswith("}"):
                parts.append(parse_expression(piece[2:-1], self.origin.down(line)))
            elif piece:
                parts.append(re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), piece, flags=re.DOTALL))
        return Text(tuple(parts))

    def conditional(self, *, negated: bool) -> Node:
        condition = self.expression()
        self.then()
        then = self.body()
        otherwise: Node = Literal(None)
        if self.accept("elsif") is not None:
            otherwise = self.conditional(negated=False)
            return If(condition, then, otherwise)
        if self.accept("else") is not None:
            self.skip_separators()
            otherwise = self.body()
        self.need("end")
        return If(Unary("!", condition) if negated else condition, then, otherwise)

    def case(self) -> Node:
        subject = self.expression()
        self.skip_separators()
        branches: list[tuple[tuple[Node, ...], Node]] = []
        otherwise: Node = Literal(None)
        while self.accept("when") is not None:
            wanted = [self.expression()]
            while self.accept(",") is not None:
                self.skip_separators()
                wanted.append(self.expression())
            self.then()
            branches.append((tuple(wanted), self.body()))
        if not branches:
            raise self.expected("`when`")
        if self.accept("else") is not None:
            self.skip_separators()
            otherwise = self.body()
        self.need("end")
        return Case(subject, tuple(branches), otherwise)

    def then(self) -> None:
        if self.accept("then") is None and self.peek().kind != "sep":
            raise self.expected("`then` or a new line")
        self.skip_separators()
        self.accept("then")
        self.skip_separators()

    def body(self) -> Node:
        if self.peek().kind == "word" and self.peek().text in {"when", "elsif", "else", "end"}:
            return Literal(None)
        node = self.expression()
        self.skip_separators()
        return node


def _integer(text: str, origin: Origin) -> int:
    if len(text) > 30:
        raise origin.error("a number of more than 30 digits")
    return int(text.replace("_", ""))


def _regex(text: str, origin: Origin) -> re.Pattern[str]:
    """A regular expression that cannot run away: no repeated group, at most three repetitions."""
    body, _, flags = text[1:].rpartition("/")
    plain = re.sub(r"\\[dDwWsSbn]|\\[^A-Za-z0-9]|\[[^\]]*\]", "x", body)
    if re.search(r"\\|\)[*+?]|\(\?|\{", plain) or len(re.findall(r"[*+?]", plain)) > 3:
        raise origin.error(
            f"regular expression {text}: plain text, classes, groups that do not repeat, `|` and up to three of "
            "`*`, `+`, `?` are understood"
        )
    try:
        return re.compile(body, (re.IGNORECASE if flags else 0) | re.MULTILINE)
    except re.error as error:
        raise origin.error(f"regular expression {text}: {error}") from None
