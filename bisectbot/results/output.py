"""The run contract: what a program's output and exit status say about the commit that was run.

With KPIs, exit status 0 makes the numbers count, 125 skips the commit, anything else is a failed run. Without, the
program speaks as it would to ``git bisect run``: a bare number is the value, else 0 is good, 1-127 bad, ≥ 128 abort.

Output is a bare number, lines ``name: value``, or JSON (nested names are joined with dots). Everything else that a
program prints is passed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bisectbot.errors import UserError
from bisectbot.results.delivery import Outcome

SKIP = 125
"""The exit status by which a program says that this commit cannot be tested."""

_WORDS = r"[+-]?(?:nan|inf(?:inity)?)"
_NUMBER = re.compile(rf"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|{_WORDS}", re.IGNORECASE)
_LINE = re.compile(r"([^:=]+)[:=](.+)", re.DOTALL)

MOST_NAMES = 4
"""Of the output, that are told to somebody whose KPI is not among them."""


@dataclass(frozen=True)
class Reading:
    """What a run said. ``samples`` are the KPIs' values (one each, in the KPIs' order), ``stats`` all other numbers;
    ``message`` tells why there are none."""

    outcome: Outcome
    samples: tuple[tuple[str, float], ...] = ()
    stats: tuple[tuple[str, float], ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Plain:
    """What a run said to somebody who named no KPI: ``values``, or, if it printed none, whether it was ``good``."""

    outcome: Outcome
    values: tuple[float, ...] = ()
    good: bool | None = None
    message: str = ""


@dataclass(frozen=True)
class _Said:
    """One number and the line, or part of the JSON, that it was found in; ``name`` is "" for a bare number."""

    name: str
    text: str
    value: float | None
    """None: no number stands there."""


def read_kpis(
    stdout: str, status: int, kpis: Sequence[str], *, full_name: Callable[[str], str] = lambda name: name
) -> Reading:
    """What the output of a run says about ``kpis`` (at least one).

    ``full_name`` turns a printed name into a stat's (``ops`` → ``demo.ops``); a printed name that is a KPI's stays.
    A KPI that is missing, no finite number, or two different numbers is a failed run whose message quotes the line.
    """
    if status == SKIP:
        return Reading(Outcome.UNTESTABLE, message=f"the command said skip (exit status {SKIP})")
    if status != 0:
        return Reading(Outcome.FAILED, message=_exited(status))
    found: dict[str, list[_Said]] = {}
    for said in _numbers(stdout):
        name = kpis[0] if said.name == "" and len(kpis) == 1 else said.name
        if name:
            found.setdefault(name if name in kpis else full_name(name), []).append(said)
    samples = []
    for kpi in kpis:
        problem = _problem(kpi, found.get(kpi, []))
        if problem:
            others = "" if kpi in found else _listed([name for name in found if name not in kpis])
            return Reading(Outcome.FAILED, message=problem + others)
        samples.append((kpi, _value(found[kpi])))
    stats = [(name, _value(said)) for name, said in found.items() if name not in kpis and not _problem(name, said)]
    return Reading(Outcome.DONE, tuple(samples), tuple(stats))


def read_plain(stdout: str, status: int) -> Plain:
    """What a run says to somebody who named no KPI.

    Numbers count with exit status 0 only: every line a bare number, or exactly one among other words.
    """
    if status == SKIP:
        return Plain(Outcome.UNTESTABLE, message=f"the command said skip (exit status {SKIP})")
    if status >= 128:
        return Plain(Outcome.FAILED, message=f"{_exited(status)}: aborted, as git bisect run would")
    if status:
        return Plain(Outcome.DONE, good=False)
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    bare = [line for line in lines if _NUMBER.fullmatch(line)]
    if not bare or (len(bare) > 1 and len(bare) < len(lines)):
        return Plain(Outcome.DONE, good=True)
    wrong = next((line for line in bare if not math.isfinite(float(line))), None)
    if wrong is not None:
        return Plain(Outcome.FAILED, message=f"no finite number: {_quoted(wrong)}")
    return Plain(Outcome.DONE, values=tuple(float(line) for line in bare))


def read_chosen(stdout: str, status: int, kpi: str) -> Plain:
    """What a run says about one KPI that a person chose on a command line; every number counts, there may be several.

    ``kpi`` is a name (as for `read_kpis`), ``/REGEX/`` whose first group is the number, or a JSON path such as
    ``$.jobs[0].read.iops`` or ``$.runs[*].seconds``. Raises UserError for one that is none of these.
    """
    if not kpi.startswith(("/", "$")):
        reading = read_kpis(stdout, status, [kpi])
        return Plain(reading.outcome, tuple(value for _, value in reading.samples), message=reading.message)
    find = _by_pattern(kpi) if kpi.startswith("/") else _by_path(kpi)
    if status == SKIP:
        return Plain(Outcome.UNTESTABLE, message=f"the command said skip (exit status {SKIP})")
    if status != 0:
        return Plain(Outcome.FAILED, message=_exited(status))
    found = find(stdout)
    if not found:
        return Plain(Outcome.FAILED, message=f"nothing in the output fits {kpi}")
    values = [one.value for one in found if one.value is not None and math.isfinite(one.value)]
    if len(values) < len(found):
        wrong = next(one for one in found if one.value is None or not math.isfinite(one.value))
        return Plain(Outcome.FAILED, message=f"no finite number for {kpi}: {_quoted(wrong.text)}")
    return Plain(Outcome.DONE, values=tuple(values))


def check_chosen(kpi: str) -> None:
    """Raises UserError when ``kpi`` is nothing that `read_chosen` can look for."""
    if kpi.startswith("/"):
        _by_pattern(kpi)
    elif kpi.startswith("$"):
        _by_path(kpi)


def _by_pattern(kpi: str) -> Callable[[str], list[_Said]]:
    try:
        pattern = re.compile(kpi.removeprefix("/").removesuffix("/"), re.MULTILINE)
    except re.error as error:
        raise UserError(f"{kpi}: no regular expression: {error}") from None
    if not kpi.endswith("/") or len(kpi) < 2 or pattern.groups < 1:
        raise UserError(f"{kpi}: write /REGEX/ with a group around the number, such as '/took (.*) ms/'")

    def find(stdout: str) -> list[_Said]:
        matches = [(match[0], (match[1] or "").strip()) for match in pattern.finditer(stdout)]
        return [_Said("", text, float(word) if _NUMBER.fullmatch(word) else None) for text, word in matches]

    return find


def _by_path(kpi: str) -> Callable[[str], list[_Said]]:
    if not re.fullmatch(r"\$(?:\.[^.\[\]]+|\[(?:\d+|\*)\])+", kpi):
        raise UserError(f"{kpi}: no JSON path; write $.name.name[0] or $.list[*].name")
    steps = [word.strip(".[]") for word in re.findall(r"\.[^.\[\]]+|\[[^\]]+\]", kpi)]

    def find(stdout: str) -> list[_Said]:
        try:
            values = [json.loads(stdout)]
        except (ValueError, RecursionError):
            return []
        for step in steps:
            values = [inner for value in values for inner in _inside(value, step)]
        found: list[_Said] = []
        for value in values:
            _flatten(kpi, value, found)
        return found

    return find


def _inside(value: object, step: str) -> list[object]:
    if isinstance(value, dict):
        return list(value.values()) if step == "*" else [value[step]] if step in value else []
    if isinstance(value, list):
        return list(value) if step == "*" else value[int(step) :][:1] if step.isdigit() else []
    return []


def _exited(status: int) -> str:
    return f"exit status {status}" if status <= 128 else f"exit status {status} (signal {status - 128})"


def _problem(name: str, said: Sequence[_Said]) -> str:
    if not said:
        return f"no number for {name} in the output"
    for one in said:
        if one.value is None or not math.isfinite(one.value):
            what = "no number" if one.value is None else "no finite number"
            return f"{what} for {name}: {_quoted(one.text)}"
    other = next((one for one in said if one.value != said[0].value), None)
    if other:
        return f"two numbers for {name}: {_quoted(said[0].text)} and {_quoted(other.text)}"
    return ""


def _listed(names: Sequence[str]) -> str:
    """The names that the output has instead: what was meant is often one of them."""
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"; it has {', '.join(name[:60] for name in names[:MOST_NAMES])}{more}"


def _value(said: Sequence[_Said]) -> float:
    value = said[0].value
    assert value is not None
    return value


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f'"{text}"' if len(text) <= 120 else f'"{text[:117]}..."'


def _numbers(stdout: str) -> list[_Said]:
    """Every number of the output, in its order."""
    text = stdout.strip()
    if text.startswith(("{", "[")):
        try:
            found: list[_Said] = []
            _flatten("", json.loads(text, object_pairs_hook=_Pairs), found)
        except (ValueError, RecursionError):
            pass  # lines, then
        else:
            return found
    return [said for line in stdout.splitlines() if (said := _line(line))]


def _line(line: str) -> _Said | None:
    if _NUMBER.fullmatch(line.strip()):
        return _Said("", line, float(line))
    match = _LINE.fullmatch(line)
    name, text = (match[1].strip(), match[2].strip()) if match else ("", "")
    return _Said(name, line, float(text) if _NUMBER.fullmatch(text) else None) if name and text else None


class _Pairs(list[tuple[str, object]]):
    """A JSON object that keeps a name which stands in it twice."""


def _flatten(name: str, value: object, found: list[_Said]) -> None:
    if isinstance(value, _Pairs):
        for key, inner in value:
            _flatten(f"{name}.{key}" if name else key, inner, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _flatten(f"{name}.{index}" if name else str(index), inner, found)
    else:
        text = f"{name}: {json.dumps(value)}"
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found.append(_Said(name, text, _float(value) if number else None))


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
