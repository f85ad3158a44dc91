"""The report's machine-readable twin: JSON by the schema in README.md, versioned by its ``schema`` field."""

from __future__ import annotations

import functools
import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bisectbot.errors import UserError
from bisectbot.report.model import SCHEMA, Report
from bisectbot.results.table import Table


def to_json(report: Report) -> str:
    """Write a report; ``from_json`` reads it back equal. JSON has no infinity: such a number becomes null."""
    return _adapter().dump_json(report).decode()


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
        return _adapter().validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise UserError(f"{where}: {place}: {first['msg']}, found {first['input']!r:.60}") from None


def table_to_json(table: Table) -> str:
    """Write one table as it stands in a report's ``tables``."""
    return TypeAdapter(Table).dump_json(table).decode()


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of the twin."""
    return _adapter().json_schema()


@functools.cache
def _adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)
