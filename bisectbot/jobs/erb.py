"""Embedded expressions at load time: ``<% %>``, ``<%= %>`` and lines that begin with ``%``.

Understood: ``if/elsif/else/unless/case/when/end``, ``list.each do |x|``, ``name = value``, comments, ``<%%`` and
``%%`` for the characters themselves, ``-%>``. The output keeps for each line the place where it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bisectbot.jobs.evaluate import as_text, evaluate, truthy
from bisectbot.jobs.expression import Expression, parse_expression
from bisectbot.jobs.origin import Line, Origin

MAX_PIECES = 20_000  # of text and code that a template may walk through
MAX_DEPTH = 30  # of blocks in blocks

_EACH = re.compile(r"(?P<list>.+)\.each\s+do\s*\|\s*(?P<name>[a-z_]\w*)\s*\|\Z", re.DOTALL)
_SET = re.compile(r"(?P<name>[a-z_]\w*)\s*=(?![=~])\s*(?P<value>.+)\Z", re.DOTALL)
_TAG = re.compile(r"<%(?!%)(?P<kind>[=#-]?)(?P<code>.*?)(?P<trim>-?)%>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text, or code with the kind ``=`` (print), ``%`` (statement); ``word`` is a statement's first word."""

    kind: str
    text: str
    origin: Origin

    @property
    def word(self) -> str:
        found = re.match(r"(if|elsif|else|unless|case|when|end)\b", self.text) if self.kind == "%" else None
        return found[1] if found else ""

    @property
    def rest(self) -> Expression:
        """The condition after the first word (a closing ``then`` belongs to it)."""
        return parse_expression(re.sub(r"\s+then\Z", "", self.text[len(self.word) :]), self.origin)


def render(lines: Sequence[Line], job: Mapping[str, Any]) -> list[Line]:
    """The lines with their templates evaluated; the job is visible as ``job[...]``. Raises UserError."""
    if not any("<%" in line.text or line.text.startswith("%") for line in lines):
        return list(lines)
    rendering = _Rendering(_pieces(lines), job)
    rendering.block(running=True, until=frozenset())
    return rendering.lines()


def _pieces(lines: Sequence[Line]) -> list[_Piece]:
    pieces: list[_Piece] = []
    pending: list[Line] = []
    for line in lines:
        opened = sum(p.text.count("<%") - p.text.count("%>") for p in pending) > 0
        if line.text.startswith("%") and not line.text.startswith("%>") and not opened:
            pieces += _tagged(pending)
            pending = []
            if line.text.startswith("%%"):
                pieces.append(_Piece("text", line.text[1:] + "\n", line.origin))
            elif not line.text[1:].lstrip().startswith("#"):
                pieces.append(_Piece("%", line.text[1:].strip(), line.origin))
        else:
            pending.append(line)
    return pieces + _tagged(pending)


def _tagged(lines: Sequence[Line]) -> list[_Piece]:
    """Split text at its tags."""
    text = "".join(line.text + "\n" for line in lines)
    pieces: list[_Piece] = []
    at = row = 0

    def plain(chunk: str) -> None:
        nonlocal row
        for part in re.findall(r"[^\n]*\n|[^\n]+", chunk):
            pieces.append(_Piece("text", part.replace("<%%", "<%").replace("%%>", "%>"), lines[row].origin))
            row += part.count("\n")

    for tag in _TAG.finditer(text):
        before = text[at : tag.start()]
        plain(before)
        if tag["kind"] in {"", "-"}:
            pieces.append(_Piece("%", tag["code"].strip(), lines[row].origin))
        elif tag["kind"] == "=":
            pieces.append(_Piece("=", tag["code"].strip(), lines[row].origin))
        row += tag.group().count("\n")
        at = tag.end()
        alone = before.rpartition("\n")[2].strip() == "" and re.match(r"[ \t]*\n", text[at:])
        if text[at : at + 1] == "\n" and (tag["trim"] or (alone and tag["kind"] != "=")):
            at += 1
            row += 1
    if re.search(r"<%(?!%)", text[at:]):
        below = text[: at + text[at:].index("<%")].count("\n")
        raise lines[below].origin.error("`<%` has no `%>`")
    plain(text[at:])
    return pieces


class _Rendering:
    """Walks the pieces once per execution; a block that does not run is walked without printing."""

    def __init__(self, pieces: list[_Piece], job: Mapping[str, Any]) -> None:
        self.pieces = pieces
        self.at = 0
        self.names: dict[str, Any] = {"job": job}
        self.out: list[tuple[str, Origin]] = []
        self.steps = 0
        self.depth = 0

    def lines(self) -> list[Line]:
        lines: list[Line] = []
        text, origin = "", None
        for piece, place in self.out:
            text, origin = text + piece, origin or place
            if text.endswith("\n"):
                lines += [Line(part, origin) for part in text[:-1].split("\n")]
                text, origin = "", None
        return lines + ([Line(text, origin)] if origin and text else [])

    def value(self, expression: Expression) -> Any:
        return evaluate(expression, self.names.__getitem__)

    def block(self, *, running: bool, until: frozenset[str]) -> _Piece | None:
        """Run pieces up to a statement of ``until``, which is returned and consumed."""
        while self.at < len(self.pieces):
            piece = self.pieces[self.at]
            self.at += 1
            self.steps += 1
            if self.steps > MAX_PIECES:
                raise piece.origin.error(f"the template prints more than {MAX_PIECES} lines")
            if piece.word in until:
                return piece
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise piece.origin.error(f"blocks nested deeper than {MAX_DEPTH}")
            self.piece(piece, running=running)
            self.depth -= 1
        return None

    def piece(self, piece: _Piece, *, running: bool) -> None:
        match piece.kind, piece.word:
            case "text", _:
                if running:
                    self.out.append((piece.text, piece.origin))
            case "=", _:
                expression = parse_expression(piece.text, piece.origin)
                if running:
                    self.out.append((as_text(self.value(expression)), piece.origin))
            case _, "if" | "unless":
                self.conditional(piece, running=running)
            case _, "case":
                self.case(piece, running=running)
            case _, "":
                self.statement(piece, running=running)
            case _, word:
                raise piece.origin.error(f"`{word}` without the `if`, `case` or `do` that it belongs to")

    def ended(self, opening: _Piece, found: _Piece | None) -> _Piece:
        if found is None:
            raise opening.origin.error(f"`{opening.text}` has no `end`")
        return found

    def conditional(self, opening: _Piece, *, running: bool) -> None:
        condition = opening.rest
        taken = running and truthy(self.value(condition)) is (opening.word == "if")
        done = not running or taken
        part = self.ended(opening, self.block(running=taken, until=frozenset({"elsif", "else", "end"})))
        while part.word != "end":
            if part.word == "elsif":
                condition = part.rest
                taken = not done and truthy(self.value(condition))
            else:
                taken = not done
            done = done or taken
            part = self.ended(opening, self.block(running=taken, until=frozenset({"elsif", "else", "end"})))

    def case(self, opening: _Piece, *, running: bool) -> None:
        subject = opening.rest.source
        part = self.ended(opening, self.block(running=False, until=frozenset({"when", "end"})))
        done = not running
        while part.word != "end":
            taken = not done
            if part.word == "when":
                condition = re.sub(r"\s+then\Z", "", part.text)
                asked = parse_expression(f"case {subject} {condition} then true else false end", part.origin)
                taken = taken and self.value(asked) is True
            done = done or taken
            part = self.ended(opening, self.block(running=taken, until=frozenset({"when", "else", "end"})))

    def statement(self, piece: _Piece, *, running: bool) -> None:
        if each := _EACH.match(piece.text):
            items = self.value(parse_expression(each["list"], piece.origin)) if running else []
            if not isinstance(items, list | range):
                raise piece.origin.error(f"`{each['list']}` is no list")
            self.loop(piece, each["name"], items)
        elif assigned := _SET.match(piece.text):
            value = parse_expression(assigned["value"], piece.origin)
            if running:
                self.names[assigned["name"]] = self.value(value)
        elif piece.text:
            raise piece.origin.error(
                f"`{piece.text}`: expected if, unless, case, `list.each do |x|`, `name = value`, "
                "or `<%= value %>` to print"
            )

    def loop(self, opening: _Piece, name: str, items: Sequence[Any]) -> None:
        start = self.at
        for item in items:
            self.at = start
            self.names[name] = item
            self.ended(opening, self.block(running=True, until=frozenset({"end"})))
        if not items:
            self.ended(opening, self.block(running=False, until=frozenset({"end"})))
