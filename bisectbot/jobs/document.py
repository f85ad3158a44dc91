"""From lines to job documents: YAML as job files use it, every key with the place where it was written.

What differs from plain YAML: ``{{ expression }}`` anywhere in a value becomes a ``Template``, evaluated later, once
per unit job; a comment line after a blank line is kept as a key (``#! hosts/x``) whose value is nil; an empty or
``nil`` list element, also the one after a trailing comma, is nil. Only plain decimal numbers are numbers: ``0x42e``
and ``2022-10-01`` stay the text they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from bisectbot.errors import UserError
from bisectbot.jobs.evaluate import as_text, evaluate
from bisectbot.jobs.expression import Expression, parse_expression
from bisectbot.jobs.origin import Line, Origin

MAX_VALUES = 100_000  # in one document, aliases counted each time they are used
MAX_NESTING = 40
MAX_WIDTH = 10_000  # characters of a line

Path = tuple[str, ...]
"""The keys that lead to a value."""

_OPEN, _CLOSE = "\ue000", "\ue001"  # stand around the number of a template while YAML is parsed
_HOLE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_COMMENT = re.compile(r"(?P<indent> *)(?P<text>#!? \S.*)\Z")


@dataclass(frozen=True, slots=True)
class Template:
    """A value with ``{{ expressions }}`` in it: pieces of text and expressions."""

    parts: tuple[str | Expression, ...]

    def render(self, lookup: Callable[[str], Any]) -> Any:
        """The value: an expression's own where it stands alone, else text. Raises UserError."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            return evaluate(self.parts[0], lookup)
        return "".join(p if isinstance(p, str) else as_text(evaluate(p, lookup)) for p in self.parts)

    def __str__(self) -> str:
        return "".join(p if isinstance(p, str) else f"{{{{ {p.source} }}}}" for p in self.parts)


@dataclass(frozen=True)
class Document:
    """One document of a job file: its mapping, and where each key was written."""

    body: Mapping[str, Any]
    origin: Origin
    where: Mapping[Path, Origin] = field(default_factory=dict)

    def place(self, path: Path) -> Origin:
        """Where a key was written; for one that nobody wrote, where its nearest parent was."""
        while path and path not in self.where:
            path = path[:-1]
        return self.where.get(path, self.origin)


def is_comment(key: str) -> bool:
    """Whether a key is a kept comment, also as job.yaml of 2021-2023 shows it (``:#! text:``)."""
    return key.startswith(("#", ":#"))


def parse_documents(lines: Sequence[Line], file: str) -> list[Document]:
    """The documents of a file, empty ones too. Raises UserError with file:line."""
    start = lines[0].origin if lines else Origin(file, 1)
    kept, templates = _take_templates(lines)

    def place(mark: yaml.Mark | None) -> Origin:
        return kept[min(mark.line, len(kept) - 1)].origin if mark is not None and kept else start

    try:
        roots = list(yaml.compose_all("\n".join(line.text for line in kept) + "\n", Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        context = f" {error.context}" if error.context else ""
        raise place(error.problem_mark or error.context_mark).error(f"not YAML: {error.problem}{context}") from None
    except yaml.reader.ReaderError as error:
        text = "\n".join(line.text for line in kept)
        at = kept[min(text.count("\n", 0, error.position), len(kept) - 1)].origin
        raise at.error(f"the character U+{_code(error.character):04X} has no place in YAML") from None
    except RecursionError:
        raise start.error(f"nested deeper than {MAX_NESTING}") from None
    documents = []
    row = 0
    for root in roots:
        documents.append(_Builder(kept, templates, place, row).document(root, start))
        row = root.end_mark.line
    return documents


def _code(character: object) -> int:
    return character if isinstance(character, int) else ord(str(character))


def parse_value(text: str, origin: Origin) -> Any:
    """One YAML value that stands on a line of its own."""
    key = "value"
    body = parse_documents([Line(f"{key}: {text}", origin)], origin.file)[0].body
    return body[key]


def _take_templates(lines: Sequence[Line]) -> tuple[list[Line], list[Expression]]:
    """Replace each ``{{ … }}`` by a numbered hole, joining the lines that it spans."""
    kept: list[Line] = []
    templates: list[Expression] = []
    waiting = list(reversed(lines))
    while waiting:
        line = waiting.pop()
        text = line.text
        if _OPEN in text or _CLOSE in text:
            raise line.origin.error("the characters U+E000 and U+E001 are not for files")
        while not text.lstrip().startswith("#") and (opened := text.find("{{")) >= 0:
            while (closed := text.find("}}", opened)) < 0:
                if not waiting:
                    raise line.origin.error("`{{` has no `}}`")
                text += "\n" + waiting.pop().text
            templates.append(parse_expression(text[opened + 2 : closed], line.origin))
            text = f"{text[:opened]}{_OPEN}{len(templates) - 1}{_CLOSE}{text[closed + 2 :]}"
        kept.append(Line(text, line.origin))
    return kept, templates


class _Loader(yaml.SafeLoader):
    """Nodes only; scalars are told apart by the few rules of this file."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|nil|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|yes|Yes|YES|on|On|ON|false|False|FALSE|no|No|NO|off|Off|OFF)\Z", list("tTyYoOfFnN")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,29})\Z", list("-+0123456789")),
    ("float", r"[-+]?[0-9]{1,30}\.[0-9]{1,30}\Z", list("-+0123456789")),
    ("merge", r"<<\Z", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)

_TRUE = frozenset({"true", "yes", "on"})


class _Builder:
    """Makes plain values of one document's nodes."""

    def __init__(
        self,
        lines: Sequence[Line],
        templates: Sequence[Expression],
        place: Callable[[yaml.Mark | None], Origin],
        first: int,
    ) -> None:
        self.lines = lines
        self.templates = templates
        self.place = place
        self.where: dict[Path, Origin] = {}
        self.values = 0
        self.comments = [
            (row, len(found["indent"]), found["text"])
            for row, line in enumerate(lines)
            if row >= first
            and (found := _COMMENT.match(line.text.rstrip()))
            and (row == 0 or not lines[row - 1].text.strip())
        ]

    def document(self, root: yaml.Node, start: Origin) -> Document:
        origin = self.place(root.start_mark) if root.start_mark else start
        if isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null") and not root.value.strip():
            return Document({}, origin)
        if not isinstance(root, yaml.MappingNode):
            raise origin.error("a job is a mapping of `key: value` lines")
        return Document(self.mapping(root, ()), origin, self.where)

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.place(node.start_mark).error(f"more than {MAX_VALUES} values (aliases counted)")
        if len(path) > MAX_NESTING:
            raise self.place(node.start_mark).error(f"nested deeper than {MAX_NESTING}, or an alias inside itself")
        if not isinstance(node, yaml.ScalarNode) and not node.tag.endswith((":map", ":seq")):
            raise self.place(node.start_mark).error(f"the tag {node.tag!r} is not understood in a job")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item, (*path, "[]")) for item in node.value]
            return [*items, None] if self.trailing_comma(node) else items
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        body: dict[str, Any] = {}
        comments = self.comments_in(node)
        for key_node, value_node in node.value:
            while comments and comments[0][0] < key_node.start_mark.line:
                body[comments.pop(0)[1]] = None
            if key_node.tag.endswith(":merge"):
                self.merge(body, value_node, path)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.place(key_node.start_mark).error("a key is a word, not a list or mapping")
            if _HOLE.search(key_node.value):
                raise self.place(key_node.start_mark).error("`{{ }}` is understood in values, not in keys")
            key = str(key_node.value)
            self.where[(*path, key)] = self.place(key_node.start_mark)
            body[key] = self.value(value_node, (*path, key))
        body.update((text, None) for _, text in comments)
        return body

    def comments_in(self, node: yaml.MappingNode) -> list[tuple[int, str]]:
        """Line and text of the comments that stand in a block mapping, at its own indentation."""
        first = node.value[0][0].start_mark if node.value else None
        if node.flow_style or first is None:
            return []
        top = 0 if first.column == 0 else first.line
        end = node.end_mark.line if node.end_mark.column <= first.column else node.end_mark.line + 1
        return [(row, text) for row, column, text in self.comments if column == first.column and top <= row < end]

    def merge(self, body: dict[str, Any], node: yaml.Node, path: Path) -> None:
        """YAML's own ``<<``: keys of one or several mappings, unless they are there."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self.place(node.start_mark).error("`<<` expects a file, `{file: …}`, or an *alias of a mapping")
            for key, value in self.value(source, (*path, "<<")).items():
                body.setdefault(key, value)

    def trailing_comma(self, node: yaml.SequenceNode) -> bool:
        if not node.flow_style or not node.value:
            return False
        last, end = node.value[-1].end_mark, node.end_mark
        if not node.start_mark.index < last.index < end.index:  # an alias: it stands elsewhere
            return False
        rows = self.lines[last.line : end.line + 1]
        text = [line.text for line in rows]
        text[-1] = text[-1][: end.column - 1]
        text[0] = text[0][last.column :]
        return re.fullmatch(r"\s*,\s*", re.sub(r"#.*", "", "\n".join(text))) is not None

    def scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        if _HOLE.search(text):
            parts = _HOLE.split(text)
            pieces = [self.templates[int(part)] if i % 2 else part for i, part in enumerate(parts)]
            return Template(tuple(piece for piece in pieces if piece != ""))
        match node.tag:
            case "tag:yaml.org,2002:null":
                return None
            case "tag:yaml.org,2002:bool":
                return text.lower() in _TRUE
            case "tag:yaml.org,2002:int" if re.fullmatch(r"[-+]?\d{1,30}", text):
                return int(text)
            case "tag:yaml.org,2002:float" if re.fullmatch(r"[-+]?\d{1,30}(\.\d{1,30})?", text):
                return float(text)
            case "tag:yaml.org,2002:str" | "tag:yaml.org,2002:merge":
                return text
        raise self.place(node.start_mark).error(f"the tag {node.tag!r} on {text[:40]!r} is not understood in a job")


def read_lines(data: bytes, file: str) -> list[Line]:
    """The lines of a file's bytes. Raises UserError when they are not UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}:{row}: expected UTF-8 text, found byte 0x{data[error.start]:02x}") from None
    # The same line ends that YAML counts, so that its line numbers are ours.
    parts = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    if parts[-1] == "":
        parts.pop()
    for row, part in enumerate(parts, 1):
        if len(part) > MAX_WIDTH:
            raise UserError(f"{file}:{row}: a line of more than {MAX_WIDTH} characters")
    return [Line(part, Origin(file, row)) for row, part in enumerate(parts, 1)]
