"""The report's machine-readable twin: JSON by the schema in README.md, versioned by its ``schema`` field."""

from __future__ import annotations

import functools
import json
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bisectbot.errors import UserError
from bisectbot.report.model import SCHEMA, Report
from bisectbot.results.table import Table

_STRICT_NUMBERS = ConfigDict(ser_json_inf_nan="strings")


def to_json(report: Report) -> str:
    """Write a report; ``from_json`` reads it back equal. Infinite changes are the strings Infinity and -Infinity."""
    (data,) = json.loads(_adapter().dump_json((report,)))
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def from_json(text: str | bytes, where: str = "report") -> Report:
    """Read a report. Fields that are unknown are ignored: a later version may have added them.

    Raises UserError with ``where`` and what was expected.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise UserError(f'{where}: expected a report with "schema": "{SCHEMA}", found {schema!r:.60}')
    try:
        (report,) = _adapter().validate_python((data,))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"][1:])
        raise UserError(f"{where}: {place}: {first['msg']}, found {first['input']!r:.60}") from None
    return report


def table_to_json(table: Table) -> str:
    """Write one table as it stands in a report's ``tables``."""
    (data,) = json.loads(_table_adapter().dump_json((table,)))
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of the twin."""
    return TypeAdapter(Report).json_schema()


@functools.cache
def _adapter() -> TypeAdapter[tuple[Report]]:
    # Wrapped in a tuple: pydantic takes a config beside a plain dataclass only from an outer type.
    return TypeAdapter(tuple[Report], config=_STRICT_NUMBERS)


@functools.cache
def _table_adapter() -> TypeAdapter[tuple[Table]]:
    return TypeAdapter(tuple[Table], config=_STRICT_NUMBERS)
