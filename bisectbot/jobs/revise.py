"""How one set of keys changes another: ``a.b: v`` sets, ``a.b+: v`` appends, ``a.b-: v`` deletes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisectbot.jobs.document import Document, Path, is_comment
from bisectbot.jobs.origin import Origin

_ACCUMULATE = frozenset({"mail_to", "mail_cc", "constraints"})
_REPLACED_NEEDS = frozenset({"need_memory", "need_cpu", "need_modules"})


def accumulates(key: str) -> bool:
    """Whether a key always adds to what is there."""
    return key in _ACCUMULATE or (key.startswith("need_") and key not in _REPLACED_NEEDS)


def revised(base: Document, revision: Document, *, keep: bool = False) -> Document:
    """The base with the revision's keys applied in their order; neither is changed.

    A plain key replaces the whole value, a dotted one sets what is inside. With ``keep`` plain keys that the base
    has stay as they are: the rule of defaults. Raises UserError with file:line.
    """
    body = copied(base.body)
    where = dict(base.where)
    for key, value in revision.body.items():
        place = revision.place((key,))
        if is_comment(key):
            body.setdefault(key, value)
            continue
        name, operation = (key[:-1], key[-1]) if key[-1:] in {"+", "-"} and len(key) > 1 else (key, "")
        path = tuple(name.split("."))
        if not all(path):
            raise place.error(f"key {key!r}: expected names between the dots")
        if keep and not operation and not accumulates(name) and _taken(body, path):
            continue
        if not operation and accumulates(name):
            operation = "+"
        _apply(body, path, operation, copied(value), place)
        where[path] = place
        where.update({(*path, *inner[1:]): at for inner, at in revision.where.items() if inner[0] == key})
    return Document(body, base.origin if base.body else revision.origin, where)


def copied(value: Any) -> Any:
    """Lists and mappings anew, everything else is immutable."""
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def _taken(body: Mapping[str, Any], path: Path) -> bool:
    """Whether there is a value at the path already, or one above it that has no inside."""
    value: Any = body
    for name in path:
        if not isinstance(value, dict):
            return value is not None
        if name not in value:
            return False
        value = value[name]
    return True


def _apply(body: dict[str, Any], path: Path, operation: str, value: Any, place: Origin) -> None:
    target = body
    for name in path[:-1]:
        if target.get(name) is None:
            if operation == "-":
                return
            target[name] = {}
        inner = target[name]
        if not isinstance(inner, dict):
            raise place.error(f"{'.'.join(path)}: {name!r} is {inner!r} here, nothing can be set inside")
        target = inner
    name = path[-1]
    if operation == "-":
        _delete(target, name, value)
    elif operation == "+" and target.get(name) is not None:
        target[name] = _appended(target[name], value)
    else:
        target[name] = value


def _appended(old: Any, new: Any) -> Any:
    """Union of lists, update of mappings; a scalar counts as a list of one."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    out = list(old) if isinstance(old, list) else [old]
    for item in new if isinstance(new, list) else [new]:
        if item not in out and item is not None:
            out.append(item)
    return out


def _delete(target: dict[str, Any], name: str, value: Any) -> None:
    """Without a value the key goes, with one what it names; what is not there is gone already."""
    old = target.get(name)
    gone = list(value) if isinstance(value, list | dict) else [value]
    if value is None or old in gone:
        target.pop(name, None)
    elif isinstance(old, list):
        target[name] = [item for item in old if item not in gone]
    elif isinstance(old, dict):
        target[name] = {key: inner for key, inner in old.items() if key not in gone}
