"""Frozen dataclasses as JSON and back, for everything that crosses between server and workers."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bisectbot.errors import UserError

T = TypeVar("T")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encode(value: object) -> bytes:
    """``value``, a dataclass, as JSON. NaN and infinities become null, which no reader accepts as a number."""
    return _adapter(type(value)).dump_json(value)  # type: ignore[arg-type]


def decode(kind: type[T], text: bytes) -> T:
    """JSON back into ``kind``; raises UserError naming the first field that does not fit."""
    try:
        value: T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise UserError(f"not a {kind.__name__}: {place}: {first['msg']}") from None
    return value


def to_plain(value: object) -> dict[str, Any]:
    """``value``, a dataclass, as the dict that JSON columns hold."""
    plain: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json")  # type: ignore[arg-type]
    return plain


def from_plain(kind: type[T], plain: dict[str, Any]) -> T:
    """What `to_plain` made, back as ``kind``."""
    value: T = _adapter(kind).validate_python(plain)  # type: ignore[arg-type]
    return value
