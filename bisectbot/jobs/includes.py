"""``<<: FILE``: the text of another file, at this indentation.

Three forms: a name; ``{file: F, key: value}``, which replaces (or appends) a key in each document of F; and
``{file: F, ignore: [k1, k2]}``, which drops keys. ``<<: *anchor`` is left to YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bisectbot.errors import UserError
from bisectbot.jobs.document import parse_value
from bisectbot.jobs.library import Library, read_file
from bisectbot.jobs.origin import Line, Origin

MAX_DEPTH = 20
MAX_LINES = 50_000

_INCLUDE = re.compile(r"(?P<indent> *)<<:(?:\s+(?P<what>\S.*))?\Z")
_KEY = re.compile(r"(?P<key>[^\s#%'\"-][^:]*|'[^']*'\s*|\"[^\"]*\"\s*):(?:\s|\Z)")


def read_with_includes(file: Path, library: Library) -> list[Line]:
    """The lines of a file, its includes in place. Raises UserError."""
    return expand_includes(read_file(file), file, library)


def expand_includes(lines: Sequence[Line], file: Path | None, library: Library) -> list[Line]:
    """Put the text of included files in place; ``file`` is where the lines come from, for relative names."""
    return _Includes(library).expand(lines, file, ())


class _Includes:
    def __init__(self, library: Library) -> None:
        self.library = library
        self.count = 0

    def expand(self, lines: Sequence[Line], file: Path | None, stack: tuple[Path, ...]) -> list[Line]:
        out: list[Line] = []
        row = 0
        while row < len(lines):
            line = lines[row]
            found = _INCLUDE.match(line.text.rstrip())
            what, used = _request(lines, row, found) if found else (None, 1)
            row += used
            self.count += used
            if self.count > MAX_LINES:
                raise line.origin.error(f"more than {MAX_LINES} lines after includes")
            if found is None or what is None:
                out += lines[row - used : row]
            else:
                out += self.included(what, found["indent"], line.origin, file, stack)
        return out

    def included(
        self, what: Mapping[str, Any], indent: str, origin: Origin, including: Path | None, stack: tuple[Path, ...]
    ) -> list[Line]:
        file = self.library.find(str(what["file"]), including, origin)
        if file in stack:
            raise origin.error(f"{file} includes itself")
        if len(stack) == MAX_DEPTH:
            raise origin.error(f"includes nested deeper than {MAX_DEPTH}")
        lines = self.expand(read_file(file), file, (*stack, file))
        documents = _split(lines)
        dropped = _names(what.get("ignore"), origin)
        overrides = {key: value for key, value in what.items() if key not in {"file", "ignore"}}
        if dropped or overrides:
            documents = [_override(document, dropped, overrides, origin) for document in documents]
        if indent and len(documents) > 1:
            raise origin.error(f"{file} has several documents, so it can only be included without indentation")
        joined = documents[0]
        for document in documents[1:]:
            joined = [*joined, Line("---", origin), *document]
        return [_indented(line, indent) for line in joined]


def _request(lines: Sequence[Line], row: int, found: re.Match[str]) -> tuple[Mapping[str, Any] | None, int]:
    """What an include line asks for (None: it is YAML's own ``<<``) and how many lines it takes."""
    origin, what = lines[row].origin, found["what"] or ""
    if what.startswith(("*", "[", "&")):
        return None, 1
    if what and not what.startswith("{"):
        name = parse_value(what, origin)
        if not isinstance(name, str):
            raise origin.error(f"`<<: {what}`: expected a file name")
        return {"file": name}, 1
    used = 1
    if what:
        while what.count("{") > what.count("}") and row + used < len(lines):
            what += " " + lines[row + used].text.strip()
            used += 1
    else:
        deeper = len(found["indent"]) + 1
        block = []
        while row + used < len(lines) and lines[row + used].text.startswith(" " * deeper):
            block.append(lines[row + used].text)
            used += 1
        if not any(re.match(r"\s*file:", text) for text in block):
            return None, 1
        what = "\n" + "\n".join(block)
    request = parse_value(what, origin)
    if not isinstance(request, dict) or "file" not in request:
        return None, 1
    if not isinstance(request["file"], str):
        raise origin.error("`file:` expects a file name")
    return request, used


def _names(value: object, origin: Origin) -> frozenset[str]:
    if value is None:
        return frozenset()
    names = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        raise origin.error("`ignore:` expects a list of keys")
    return frozenset(names)


def _split(lines: Sequence[Line]) -> list[list[Line]]:
    """The documents of a text; a ``---`` at its beginning opens the first one."""
    documents: list[list[Line]] = [[]]
    for line in lines:
        if re.match(r"---(\s|\Z)", line.text):
            if len(documents) > 1 or any(one.text.strip() and not one.text.startswith("#") for one in documents[0]):
                documents.append([])
            if rest := line.text[3:].strip():
                documents[-1].append(Line(rest, line.origin))
        else:
            documents[-1].append(line)
    return documents


def _override(
    lines: Sequence[Line], dropped: frozenset[str], overrides: Mapping[str, Any], origin: Origin
) -> list[Line]:
    """Replace, append and drop top-level keys of one document's text."""
    out: list[Line] = []
    waiting = dict(overrides)
    skipping = False
    for line in lines:
        if found := _KEY.match(line.text):
            key = found["key"].strip().strip("'\"")
            skipping = key in dropped or key in overrides
            if key in waiting:
                out.append(_written(key, waiting.pop(key), origin))
        elif skipping and line.text.startswith(("#", "%")):
            skipping = False
        if not skipping:
            out.append(line)
    return out + [_written(key, value, origin) for key, value in waiting.items()]


def _written(key: str, value: Any, origin: Origin) -> Line:
    """``key: value`` as one line: JSON is YAML."""
    try:
        return Line(f"{key}: {json.dumps(value, ensure_ascii=False)}", origin)
    except TypeError:
        raise UserError(f"{origin}: {key}: write `{{{{ }}}}` in the included file, not in what overrides it") from None


def _indented(line: Line, indent: str) -> Line:
    if not indent or not line.text.strip() or line.text.startswith("%"):
        return line
    return Line(indent + line.text, line.origin)
