"""Series out of text: CSV of any delimiter, JSON lines, and the columns of an Otava configuration."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bisectbot.errors import UserError
from bisectbot.jobs.kpi import Better

TIMES = ("time", "timestamp", "date", "datetime")
COMMITS = ("commit", "sha", "hash", "revision", "rev", "head", "version", "build", "commit_id", "git_hash")
DELIMITERS = ",;\t|"
MISSING = ("", "-", "na", "n/a", "null", "none")


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; what is not given is guessed from names and contents."""

    time: str | None = None
    commit: str | None = None
    values: tuple[str, ...] = ()
    delimiter: str | None = None
    quote: str = '"'


@dataclass(frozen=True)
class Metric:
    """A series of an Otava configuration: its column, what to multiply by, and which way is better."""

    name: str
    column: str
    scale: float = 1.0
    better: Better = Better.NONE


@dataclass
class Series:
    """One value column: runs per head, and what each head is called (commit, time or number)."""

    name: str
    runs: list[list[float]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Row:
    line: int
    time: str
    commit: str
    values: Mapping[str, Sequence[float]]


def read_series(text: str, source: str, columns: Columns = Columns()) -> list[Series]:
    """Every value column as a series, heads in order of time if all rows have one, else as they come.

    Rows of the same commit (without commits: of the same time) are runs of one head; an empty cell is a missing run,
    a head without any run is left out. Raises UserError with source, line and column.
    """
    text = text.removeprefix("\ufeff")
    first = text.lstrip()[:1]
    if not first:
        raise UserError(f"{source}: empty; expected CSV with a value column, or JSON lines")
    rows = list(_json_rows(text, source, columns) if first in "{[" else _csv_rows(text, source, columns))
    if rows and all(row.time for row in rows):
        moments = [_moment(row.time) for row in rows]
        known = [moment for moment in moments if moment is not None]
        if len(known) == len(rows):
            rows = [row for _, row in sorted(zip(known, rows, strict=True), key=lambda pair: pair[0])]
    series: dict[str, Series] = {}
    places: dict[tuple[str, str], int] = {}
    for row in rows:
        for name, runs in row.values.items():
            if not runs:
                continue
            one = series.setdefault(name, Series(name))
            head = row.commit or row.time
            at = places.setdefault((name, head), len(one.runs)) if head else len(one.runs)
            if at == len(one.runs):
                one.runs.append([])
                one.labels.append(head or str(at))
            one.runs[at].extend(runs)
    if not series:
        raise UserError(f"{source}: no values found; name the value column, it must hold numbers")
    return list(series.values())


def _csv_rows(text: str, source: str, columns: Columns) -> Iterator[_Row]:
    delimiter = columns.delimiter or _delimiter(text)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, quotechar=columns.quote, skipinitialspace=True)
    try:
        table = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise UserError(f"{source}:{reader.line_num}: {error}") from error
    table = [(line, row) for line, row in table if not row[0].startswith("#")]
    if not table:
        raise UserError(f"{source}: only comments; expected rows with a value")
    names = _header(table)
    body = table if names is None else table[1:]
    names = names or [str(at + 1) for at in range(len(table[0][1]))]
    time, commit, values = _roles(names, [row for _, row in body], source, columns)
    for line, row in body:
        if len(row) < len(names):
            raise UserError(f"{source}:{line}: {len(row)} cells, but the table has {len(names)} columns")
        yield _Row(
            line,
            row[time] if time is not None else "",
            row[commit] if commit is not None else "",
            {names[at]: _numbers(row[at], f"{source}:{line}, column {names[at]}") for at in values},
        )


def _delimiter(text: str) -> str:
    """The one that cuts all of the first lines into the same number (> 1) of cells, else blanks if they do."""
    lines = [line for line in text.splitlines()[:20] if line.strip() and not line.startswith("#")]
    for delimiter in DELIMITERS:
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
        if len(counts) == 1 and counts != {1}:
            return delimiter
    for delimiter in DELIMITERS:
        if any(delimiter in line for line in lines):
            return delimiter
    return " " if any(" " in line.strip() and '"' not in line for line in lines) else ","


def _header(table: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The first row, if some cell of it is a word where the rows below have numbers."""
    first = table[0][1]
    below = [row for _, row in table[1:20]] or [[]]
    for at, cell in enumerate(first):
        cells = [row[at] for row in below if at < len(row)]
        if not _is_number(cell) and cell.lower() not in MISSING and cells and all(map(_is_number, filter(None, cells))):
            return first
    named = {cell.lower() for cell in first}
    return first if named & {*TIMES, *COMMITS} and len(table) > 1 else None


def _roles(
    names: Sequence[str], body: Sequence[Sequence[str]], source: str, columns: Columns
) -> tuple[int | None, int | None, list[int]]:
    """Indexes of the time, commit and value columns."""

    def wanted(name: str) -> int:
        if name not in names:
            raise UserError(f"{source}: no column {name!r}; there are: {', '.join(names)}")
        return list(names).index(name)

    lower = [name.lower() for name in names]
    filled = [
        [row[at] for row in body[:50] if at < len(row) and row[at].lower() not in MISSING] for at in range(len(names))
    ]
    time = wanted(columns.time) if columns.time else next((lower.index(name) for name in TIMES if name in lower), None)
    commit = (
        wanted(columns.commit)
        if columns.commit
        else next((lower.index(name) for name in COMMITS if name in lower), None)
    )
    for at, cells in enumerate(filled):
        if time is None and at != commit and cells and not all(map(_is_number, cells)) and all(map(_moment, cells)):
            time = at
        elif commit is None and at != time and cells and all(map(_is_id, cells)) and not all(map(_is_number, cells)):
            commit = at
    if columns.values:
        return time, commit, [wanted(name) for name in columns.values]
    values = [
        at
        for at, cells in enumerate(filled)
        if at not in {time, commit} and cells and all(_is_number(cell) for cell in cells)
    ]
    if not values:
        values = [at for at in range(len(names)) if at not in {time, commit}][:1]
    return time, commit, values


def _json_rows(text: str, source: str, columns: Columns) -> Iterator[_Row]:
    for line, entry in _documents(text, source):
        if not isinstance(entry, dict):
            yield _Row(line, "", "", {"value": _runs(entry, f"{source}:{line}")})
            continue
        lower = {str(key).lower(): str(key) for key in entry}
        time = columns.time or next((lower[name] for name in TIMES if name in lower), None)
        commit = columns.commit or next((lower[name] for name in COMMITS if name in lower), None)
        for name in columns.values:
            if name not in entry:
                raise UserError(f"{source}:{line}: no {name!r}; there are: {', '.join(map(str, entry))}")
        chosen = columns.values or tuple(
            key
            for key, value in entry.items()
            if key not in {time, commit} and not isinstance(value, str | dict | bool)
        )
        yield _Row(
            line,
            str(entry.get(time, "")) if time else "",
            str(entry.get(commit, "")) if commit else "",
            {name: _runs(entry[name], f"{source}:{line}, {name}") for name in chosen},
        )


def _documents(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """JSON lines, one array of heads, or one object whose ``values`` (or ``series``) are the heads."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except json.JSONDecodeError as error:
                    raise UserError(f"{source}:{number}: no JSON: {error.msg} at column {error.colno}") from error
        return
    if isinstance(whole, dict):
        whole = next((whole[key] for key in ("values", "series") if isinstance(whole.get(key), list)), [whole])
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield number, entry


def _runs(value: Any, where: str) -> list[float]:
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    runs = []
    for one in values:
        if isinstance(one, bool) or not isinstance(one, int | float):
            raise UserError(f"{where}: {json.dumps(one)[:40]} is no number")
        runs.append(_finite(float(one), where))
    return runs


def _numbers(cell: str, where: str) -> list[float]:
    if cell.lower() in MISSING:
        return []
    try:
        return [_finite(float(cell), where)]
    except ValueError:
        raise UserError(f"{where}: {cell[:40]!r} is no number; name the value columns, or mend the cell") from None


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise UserError(f"{where}: {value} is no measurement; leave the cell empty")
    return value


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_id(cell: str) -> bool:
    return bool(re.fullmatch(r"[0-9A-Za-z][\w.+~^/-]*", cell)) and bool(re.search(r"[0-9]", cell))


def _moment(cell: str) -> float | None:
    """Seconds since 1970 of a number or an ISO date; None for anything else."""
    try:
        return float(cell)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(re.sub(r" ([+-]\d{2}:?\d{2})$", r"\1", cell))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True)
class OtavaTest:
    """One CSV test of an Otava configuration."""

    name: str
    file: str
    columns: Columns
    metrics: tuple[Metric, ...]


def otava_tests(config: Any, source: str) -> list[OtavaTest]:
    """The CSV tests of a loaded Otava YAML configuration; other kinds of tests are left out.

    Understood: type, file, time_column, attributes (the first that names a commit), metrics as list or mapping with
    column, scale and direction, csv_options, inherit from templates. Raises UserError.
    """
    tests = config.get("tests") if isinstance(config, dict) else None
    if not isinstance(tests, dict) or not tests:
        raise UserError(f"{source}: no tests; expected an Otava configuration with `tests:`")
    templates = config.get("templates") or {}
    found = []
    for name, given in tests.items():
        test: dict[str, Any] = {}
        inherited = given.get("inherit") or []
        for template in [inherited] if isinstance(inherited, str) else inherited:
            if template not in templates:
                raise UserError(f"{source}: test {name} inherits {template!r}, which is no template")
            test |= templates[template]
        test |= given
        if test.get("type") == "csv":
            found.append(_otava_test(str(name), test, source))
    if not found:
        raise UserError(f"{source}: no test of type csv")
    return found


def _otava_test(name: str, test: Mapping[str, Any], source: str) -> OtavaTest:
    for key in ("file", "metrics"):
        if not test.get(key):
            raise UserError(f"{source}: test {name} has no {key!r}")
    given = test["metrics"]
    metrics = tuple(
        Metric(
            str(metric),
            str((about or {}).get("column", metric)),
            float((about or {}).get("scale", 1.0)),
            Better.LESS if int((about or {}).get("direction", 1)) < 0 else Better.MORE,
        )
        for metric, about in (given.items() if isinstance(given, dict) else ((metric, None) for metric in given))
    )
    attributes = [str(attribute) for attribute in test.get("attributes") or []]
    commit = next((attribute for attribute in attributes if attribute.lower() in COMMITS), None)
    options = test.get("csv_options") or {}
    columns = Columns(
        time=str(test.get("time_column", "time")),
        commit=commit,
        values=tuple(dict.fromkeys(metric.column for metric in metrics)),
        delimiter=str(options.get("delimiter", ",")),
        quote=str(options.get("quote_char", '"')),
    )
    return OtavaTest(name, str(test["file"]).replace("%{TEST_NAME}", name), columns, metrics)
