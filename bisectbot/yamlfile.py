"""YAML files with a place for every complaint: everything that is wrong, each with file:line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from bisectbot.errors import UserError

M = TypeVar("M", bound=BaseModel)
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a file; ``line`` counts from 1, 0 is the whole file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class ConfigError(UserError):
    """A file that cannot be used, with every problem that was found in it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass
class Document:
    """A YAML file as plain data, with the line of each value (by its path of keys and indexes)."""

    file: str
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)

    def line(self, path: Path_) -> int:
        """The line of the value at ``path``, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def problem(self, path: Path_, message: str) -> Problem:
        return Problem(self.file, self.line(path), message)


def read(path: Path) -> Document:
    """Read one YAML document; raises ConfigError for a missing file, bad syntax and doubled keys."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError([Problem(str(path), 0, "no such file; create it or correct the path")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(path), 0, f"cannot be read: {error}")]) from None
    loader = yaml.SafeLoader(text)
    document = Document(str(path), None)
    try:
        node = loader.get_single_node()
        document.data = {} if node is None else _plain(loader, node, (), document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError([Problem(str(path), line, f"not YAML: {error.problem or error}")]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem(str(path), 0, f"not YAML: {' '.join(str(error).split())}")]) from None
    finally:
        loader.dispose()
    return document


def _plain(loader: yaml.SafeLoader, node: yaml.Node, path: Path_, document: Document) -> Any:
    document.lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, item, (*path, i), document) for i, item in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node)
    loader.flatten_mapping(node)
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str | int):
            raise ConfigError([Problem(document.file, key_node.start_mark.line + 1, f"{key!r} is no key; quote it")])
        if key in found:
            raise ConfigError([Problem(document.file, key_node.start_mark.line + 1, f"key {key!r} stands here twice")])
        found[key] = _plain(loader, value_node, (*path, key), document)
        document.lines[(*path, key)] = key_node.start_mark.line + 1
    return found


def validate(document: Document, model: type[M], base: Path_ = (), data: Any = None) -> M:
    """``document`` (or ``data``, the part of it at ``base``) as ``model``; raises ConfigError with every problem."""
    value = document.data if data is None else data
    if not isinstance(value, Mapping):
        raise ConfigError([document.problem(base, f"expected keys and values, found {value!r}")])
    try:
        return model.model_validate(value, context={"folder": Path(document.file).parent})
    except ValidationError as error:
        raise ConfigError([_explain(document, model, base, item) for item in error.errors()]) from None


def _explain(document: Document, model: type[BaseModel], base: Path_, item: Any) -> Problem:
    path: Path_ = (*base, *(part for part in item["loc"] if part != "[key]"))
    name = ".".join(str(part) for part in path)
    match item["type"]:
        case "extra_forbidden":
            known = _keys(model, item["loc"][:-1])
            near = get_close_matches(str(path[-1]), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys here: {', '.join(sorted(known))}"
            return document.problem(path, f"unknown key {name}; {hint}")
        case "missing":
            return document.problem(path, f"{name} is missing; add it")
        case "value_error":
            return document.problem(path, f"{name}: {item['ctx']['error']}")
        case _:
            return document.problem(path, f"{name}: {item['msg']}, found {item['input']!r}")


def _keys(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that are known at ``loc`` inside ``model``, as far as the models tell."""
    inside: Any = model
    for part in loc:
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            if part not in inside.model_fields:
                continue  # the tag of a union
            inside = inside.model_fields[str(part)].annotation
        arguments = [a for a in getattr(inside, "__args__", ()) if a is not type(None)]
        while arguments:
            inside = arguments[-1]
            arguments = [a for a in getattr(inside, "__args__", ()) if a is not type(None)]
    if isinstance(inside, type) and issubclass(inside, BaseModel):
        return [field.alias or name for name, field in inside.model_fields.items()]
    return []
