"""``bisectbot steps``: where a series changed its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bisectbot.cli.options import json_option, print_json
from bisectbot.errors import UserError

if TYPE_CHECKING:
    from bisectbot.detect import Step
    from bisectbot.detect.table import Columns, Series
    from bisectbot.jobs.kpi import Kpi

BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Found:
    """A series and its steps."""

    series: Series
    kpi: Kpi
    steps: list[Step]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--value", "values", multiple=True, metavar="COLUMN", help="A value column; default: all with numbers.")
@click.option("--time", metavar="COLUMN", help="The column with the time of a head.")
@click.option("--commit", metavar="COLUMN", help="The column that names a head; rows of one head are its runs.")
@click.option("--delimiter", metavar="CHAR", help="What separates cells; default: found out.")
@click.option("--better", type=click.Choice(["more", "less", "none"]), default="none", help="Which way is better.")
@click.option("--least-effect", type=click.FloatRange(min=0), metavar="PERCENT", help="Smaller steps are not told.")
@click.option("--since", metavar="HEAD", help="Tell only steps that may lie at or after this head (name or number).")
@click.option("--test", "tests", multiple=True, metavar="NAME", help="Of an Otava configuration: only this test.")
@click.option("--fail-on", type=click.Choice(["regression", "any"]), help="Exit with 1 if there is such a step.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="PNG", help="Draw the series.")
@json_option
def steps(
    file: str,
    values: tuple[str, ...],
    time: str | None,
    commit: str | None,
    delimiter: str | None,
    better: str,
    least_effect: float | None,
    since: str | None,
    tests: tuple[str, ...],
    fail_on: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find the steps in the series of FILE (- for stdin).

    FILE is CSV (any delimiter, with a header or without), JSON lines (numbers, lists of runs or objects), or an Otava
    configuration (.yaml) with CSV tests. Rows of the same commit are runs of one head. A series of changes for the
    better and the worse is told alike; --better says which is which.
    """
    from bisectbot.detect import Direction
    from bisectbot.detect.table import Columns

    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter) != 1:
            raise UserError(f"--delimiter {delimiter!r}: give one character, \\t for a tab")
    if Path(file).suffix in {".yaml", ".yml"}:
        found = _configured(Path(file), tests, least_effect)
    else:
        found = _plain(file, Columns(time, commit, values, delimiter), better, least_effect)
    if fail_on == "regression" and all(one.kpi.better.value == "none" for one in found):
        raise UserError("--fail-on regression: say which way is better with --better more or --better less")
    if since is not None:
        found = [Found(one.series, one.kpi, _since(one, since)) for one in found]
    if plot:
        from bisectbot.cli.plot import draw

        draw([(one.series, one.steps) for one in found], plot)
    if as_json:
        print_json({"series": [_twin(one) for one in found]})
    else:
        click.echo("\n\n".join(_table(one) for one in found))
    told = [step for one in found for step in one.steps]
    if fail_on and any(fail_on == "any" or step.direction is Direction.REGRESSION for step in told):
        raise click.exceptions.Exit(1)


def _plain(file: str, columns: Columns, better: str, least_effect: float | None) -> list[Found]:
    from bisectbot.detect import find_steps
    from bisectbot.detect.table import read_series
    from bisectbot.jobs.kpi import Better, Kpi

    found = []
    for one in read_series(_text(file), "stdin" if file == "-" else file, columns):
        kpi = Kpi(one.name, better=Better(better), least_effect=least_effect)
        found.append(Found(one, kpi, find_steps(one.runs, kpi=kpi)))
    return found


def _configured(config: Path, wanted: Sequence[str], least_effect: float | None) -> list[Found]:
    import yaml

    from bisectbot.detect import find_steps
    from bisectbot.detect.table import Series, otava_tests, read_series
    from bisectbot.jobs.kpi import Kpi

    try:
        loaded = yaml.safe_load(_text(str(config)))
    except yaml.YAMLError as error:
        raise UserError(f"{config}: {error}") from error
    tests = otava_tests(loaded, str(config))
    for name in set(wanted) - {test.name for test in tests}:
        raise UserError(f"{config}: no test {name!r}; there are: {', '.join(test.name for test in tests)}")
    found = []
    for test in tests:
        if wanted and test.name not in wanted:
            continue
        path = Path(test.file) if Path(test.file).exists() else config.parent / test.file
        if not path.exists():
            raise UserError(f"{config}: test {test.name}: no file {test.file}")
        columns = {one.name: one for one in read_series(_text(str(path)), str(path), test.columns)}
        for metric in test.metrics:
            if metric.column not in columns:
                continue  # the column is there, but empty
            raw = columns[metric.column]
            runs = [[value * metric.scale for value in head] for head in raw.runs]
            kpi = Kpi(f"{test.name}.{metric.name}", better=metric.better, least_effect=least_effect)
            found.append(Found(Series(kpi.name, runs, raw.labels), kpi, find_steps(runs, kpi=kpi)))
    return found


def _text(file: str) -> str:
    try:
        with click.open_file(file, "r", encoding="utf-8") as stream:
            text: str = stream.read()
            return text
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: no UTF-8 text at byte {error.start}") from error


def _since(one: Found, since: str) -> list[Step]:
    labels = one.series.labels
    at = next((place for place, label in enumerate(labels) if label.startswith(since)), None)
    if at is None and since.isdigit() and int(since) < len(labels):
        at = int(since)
    if at is None:
        raise UserError(f"--since {since}: {one.series.name} has no such head")
    return [step for step in one.steps if step.interval[1] >= at]


def _table(one: Found) -> str:
    series = one.series
    lines = [f"{series.name}: {len(series.runs)} heads, {_count(len(one.steps), 'step')}", _sparkline(one)]
    if one.steps:
        rows = [("head", "at", "before", "after", "change", "sure", "may be at", "")]
        for step in one.steps:
            low, high = step.interval
            rows.append(
                (
                    series.labels[step.index][:25],
                    str(step.index),
                    _number(step.before),
                    _number(step.after),
                    "" if step.percent is None else f"{step.percent:+.2f}%",
                    f"{100 * min(step.probability, 0.999):.1f}%",
                    str(low) if low == high else f"{low}…{high}",
                    "" if step.direction.value == "unknown" else step.direction.value,
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        for row in rows:
            cells = [
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join([*cells[:-1], row[-1]]).rstrip())
    return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:.6g}"


def _sparkline(one: Found, width: int = 72) -> str:
    """Medians of equal stretches of heads between the lowest and the highest, steps as ┊."""
    from statistics import median

    heads = [median(runs) for runs in one.series.runs]
    cells = min(width, len(heads))
    stretches = [heads[at * len(heads) // cells : (at + 1) * len(heads) // cells] for at in range(cells)]
    values = [median(stretch) for stretch in stretches]
    low, high = min(values), max(values)
    marks = {step.index * cells // len(heads) for step in one.steps}
    line = ""
    for at, value in enumerate(values):
        line += "┊" if at in marks else ""
        line += BARS[int((value - low) / (high - low) * (len(BARS) - 1) + 0.5)] if high > low else BARS[3]
    return line


def _twin(one: Found) -> dict[str, Any]:
    return {
        "name": one.series.name,
        "heads": len(one.series.runs),
        "better": one.kpi.better.value,
        "steps": [
            {
                "head": one.series.labels[step.index],
                "first_head": one.series.labels[step.interval[0]],
                "last_head": one.series.labels[step.interval[1]],
                **asdict(step),
            }
            for step in one.steps
        ],
    }
