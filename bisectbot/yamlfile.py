"""YAML files with a place for every complaint: everything that is wrong, each with file:line; and kinds of values that
such files hold."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from bisectbot.errors import UserError

M = TypeVar("M", bound=BaseModel)
Path_ = tuple[str | int, ...]

MERGE = "tag:yaml.org,2002:merge"  # what the key `<<` is to YAML
MAX_QUOTE = 100  # characters of a value in a message
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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

    @property
    def lines(self) -> list[str]:
        return [str(problem) for problem in self.problems]


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
    document = Document(str(path), None)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is not None:
            _check_keys(loader, node, document, ())
        document.data = {} if node is None else _plain(loader, node, (), document)
        loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError([Problem(str(path), line, f"not YAML: {error.problem or error}")]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem(str(path), 0, f"not YAML: {' '.join(str(error).split())}")]) from None
    return document


def _plain(loader: yaml.SafeLoader, node: yaml.Node, path: Path_, document: Document) -> Any:
    document.lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, item, (*path, i), document) for i, item in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        try:
            return loader.construct_object(node)
        except ValueError as error:  # 2026-13-01, taken for a date
            raise ConfigError([document.problem(path, f"{node.value!r}: {error}; quote it if it is text")]) from None
    loader.flatten_mapping(node)  # what `<<` brings comes first: what is written beside it is stronger
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        found[key] = _plain(loader, value_node, (*path, key), document)
        document.lines[(*path, key)] = key_node.start_mark.line + 1
    return found


def _check_keys(loader: yaml.SafeLoader, node: yaml.Node, document: Document, above: tuple[yaml.Node, ...]) -> None:
    """Refuse doubled keys, keys that are no text, and aliases of what they stand in."""

    def wrong(place: yaml.Node, message: str) -> ConfigError:
        return ConfigError([Problem(document.file, place.start_mark.line + 1, message)])

    if any(node is one for one in above):
        raise wrong(node, "an alias stands inside of what it names")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(loader, item, document, (*above, node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str | int] = set()
        for key_node, value_node in node.value:
            key = "<<" if key_node.tag == MERGE else loader.construct_object(key_node)
            if not isinstance(key, str | int) or isinstance(key, bool):  # a bare `on` is true in YAML
                raise wrong(key_node, "this key is no text; quote it")
            if key in keys:
                raise wrong(key_node, f"key {key!r} stands here twice")
            keys.add(key)
            _check_keys(loader, value_node, document, (*above, node))


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
            return document.problem(path, f"{name}: {item['msg']}, found {_short(repr(item['input']))}")


def _short(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


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


class Section(BaseModel):
    """A part of a file: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def seconds(value: object) -> float:
    """``10m`` → 600.0; raises ValueError with what was expected."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)", str(value).strip())
    if not match:
        raise ValueError(f"expected a duration such as 90s, 10m, 2h or 1d, found {value!r}")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _relative(value: Any, info: ValidationInfo) -> Any:
    folder = (info.context or {}).get("folder")
    return folder / value if folder and isinstance(value, str) else value


def _secret(value: Any, info: ValidationInfo) -> Any:
    """A file with a secret: within a systemd unit, the credential of that name if the unit was given one."""
    path = _relative(value, info)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    given = Path(folder) / Path(path).name if folder and isinstance(path, str | Path) else None
    return given if given and given.is_file() else path


def _ref_name(value: str) -> str:
    if value.startswith("-") or re.search(r"[\s~^:?*\[\\]|\.\.|@\{|//|\.lock$|/$|^/|^$", value):
        raise ValueError(f"{value!r} is no name of a branch")
    return value


def word(value: str) -> str:
    """A name that may stand in paths, ids and mails; raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+%=-]*", value):
        raise ValueError(f"{value!r}: a name is letters, digits and ._+%=- and starts with a letter or digit")
    return value


def _url(value: str) -> str:
    if value.startswith("-") or "::" in value:
        raise ValueError(f"{value!r} is no address that git may fetch from")
    return value


Seconds = Annotated[float, BeforeValidator(seconds)]
RelativePath = Annotated[Path, BeforeValidator(_relative)]
SecretPath = Annotated[Path, BeforeValidator(_secret)]
RefName = Annotated[str, AfterValidator(_ref_name)]
Name = Annotated[str, AfterValidator(word)]
GitUrl = Annotated[str, AfterValidator(_url)]
