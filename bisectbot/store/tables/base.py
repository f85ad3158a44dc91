"""What every table shares. Times are seconds since 1970 UTC, the database's; durations are farm seconds."""

from __future__ import annotations

import enum
from typing import Annotated, Any, ClassVar

from sqlalchemy import JSON, BigInteger, Enum, Integer, MetaData, String
from sqlalchemy.orm import DeclarativeBase, mapped_column

# Named constraints, so that migrations can speak of them on both databases.
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

Key = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)]
Sha = Annotated[str, mapped_column(String(64))]
"""A git object id or a SHA-256, lower-case hex."""


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {dict[str, Any]: JSON, list[Any]: JSON}


def words(kind: type[enum.StrEnum]) -> Enum:
    """A column of ``kind``, stored as its words."""
    return Enum(kind, native_enum=False, length=24, values_callable=lambda k: [item.value for item in k])
