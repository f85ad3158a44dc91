"""Reading LKP's result roots: a directory with one sub-directory per run becomes a run matrix with its axes.

    …/aim9/exec_test-300s/lkp-ivb-2ep1/debian-11/x86_64-rhel-8.3/gcc-12/31255e072b…/     the result root (`_rt`)
        0/ 1/ 2/ …         runs: job.yaml, raw logs, <program>.json (series), stats.json
        matrix.json        all runs' stats as LKP joined them

Any file may be plain or compressed (.gz .zst .xz). ``exact`` takes matrix.json, in which LKP has made what is missing
a 0; otherwise the runs themselves are read, each from the first of: stats.json, series, raw logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import yaml

from bisectbot.errors import UserError
from bisectbot.results.logs import PACKED, has_parser, open_plain, read_logs
from bisectbot.results.matrix import MatrixSet, Number, RunMatrix, decode
from bisectbot.results.parsers.rawlog import READ_ERRORS
from bisectbot.results.series import Series
from bisectbot.results.stats import Window, run_matrix, run_stats, with_dropped_zeros

_NO_SERIES = frozenset(("stats.json", "matrix.json", "avg.json", "stddev.json", "job.json"))
_COMMIT = re.compile(r"[0-9a-f]{40}|v\d[\w.-]*")
# What follows the result directory in a path: /result/<testcase>/<path params>/…/<commit>
_PATH_AXES = ("testcase", "path_params", "tbox_group", "rootfs", "kconfig", "compiler")
_UNSAFE = re.compile(r"[^-a-zA-Z0-9+=:.%]")
_LONGEST_PARAM = 31


@dataclass(frozen=True, slots=True)
class ResultRoot:
    """All runs of one build under one job. ``warnings`` say what was there and could not be read."""

    path: Path
    commit: str
    axes: Mapping[str, str]
    matrix: RunMatrix
    warnings: tuple[str, ...] = ()


def read(path: Path, *, exact: bool = False) -> ResultRoot:
    """Read a result root, a single run's directory, or a matrix.json. Raises UserError if it is none of these."""
    reader = _Reader(exact)
    if path.is_file():
        matrix = reader.matrix_file(path)
        return ResultRoot(path, path.name, {}, matrix, tuple(reader.warnings))
    runs = _run_directories(path)
    matrix_file = _find(path, "matrix.json")
    matrix = reader.matrix_file(matrix_file) if matrix_file and exact else reader.matrix_of(runs)
    if not matrix.runs and matrix_file:
        matrix = reader.matrix_file(matrix_file)
    if not matrix.runs:
        why = reader.warnings[0] if reader.warnings else "expected run directories 0, 1, … or matrix.json"
        raise UserError(f"{path}: no result root: {why}")
    root = path.resolve().parent if runs == [path] else path.resolve()
    axes = _axes(root, _job(runs[0]) if runs else {})
    return ResultRoot(path, root.name, axes, matrix, tuple(reader.warnings))


def read_set(paths: Sequence[Path], *, exact: bool = False) -> tuple[MatrixSet, tuple[str, ...]]:
    """Read several result roots as the columns of one comparison, and all warnings.

    The axes are those on which all roots agree. Columns are named by commit, or by path where that is not unique.
    """
    roots = [read(path, exact=exact) for path in paths]
    unique = len({root.commit for root in roots}) == len(roots)
    matrices = {root.commit if unique else str(root.path): root.matrix for root in roots}
    shared = {key: value for key, value in roots[0].axes.items() if all(root.axes.get(key) == value for root in roots)}
    return MatrixSet(matrices, shared), tuple(warning for root in roots for warning in root.warnings)


@dataclass
class _Reader:
    exact: bool
    warnings: list[str] = field(default_factory=list)

    def matrix_file(self, path: Path) -> RunMatrix:
        try:
            matrix = RunMatrix.from_json(_json(path), str(path))
        except READ_ERRORS as error:
            raise UserError(f"{path}: cannot be read: {error}") from None
        return matrix.zero_filled() if self.exact else matrix

    def matrix_of(self, directories: Sequence[Path]) -> RunMatrix:
        runs: list[Mapping[str, Number]] = []
        sources: list[str] = []
        zeroless: list[int] = []  # runs of which LKP has left out what was 0
        for directory in directories:
            stats, without_zeros = self.run(directory)
            if not stats:
                self.warnings.append(f"{directory}: nothing to read")
                continue
            if without_zeros:
                zeroless.append(len(runs))
            runs.append(stats)
            sources.append(str(directory / "stats.json"))
        if not self.exact:
            runs = with_dropped_zeros(runs, zeroless)
        return run_matrix(runs, sources, exact=self.exact)

    def run(self, directory: Path) -> tuple[dict[str, Number], bool]:
        """Give a run's stats, and whether LKP made them."""
        if path := _find(directory, "stats.json"):
            try:
                return self._numbers(path), True
            except (UserError, *READ_ERRORS) as error:
                self.warnings.append(f"{path}: cannot be read, looking further: {error}")
        window = _window(_job(directory))
        if series := list(self._series(directory)):
            return run_stats(series, window=window, exact=self.exact), True
        logs = {_plain_name(path): path for path in _files(directory)}
        read_now = read_logs(logs, window=window, exact=self.exact)
        self.warnings += read_now.warnings
        return dict(read_now.stats), False

    def _numbers(self, path: Path) -> dict[str, Number]:
        data = _json(path)
        if not isinstance(data, dict):
            raise UserError(f"expected an object of stat: number, found {type(data).__name__}")
        stats = {name: value for name, value in data.items() if type(value) in {int, float} and isfinite(value)}
        if len(stats) < len(data):
            self.warnings.append(f"{path}: {len(data) - len(stats)} values that are no numbers are left out")
        return stats

    def _series(self, directory: Path) -> Iterator[Series]:
        for path in _files(directory):
            name = _plain_name(path)
            if not name.endswith(".json") or name in _NO_SERIES:
                continue
            try:
                yield _series_of(name.removesuffix(".json"), _json(path))
            except (UserError, *READ_ERRORS) as error:
                self.warnings.append(f"{path}: cannot be read: {error}")


def _run_directories(path: Path) -> list[Path]:
    """Runs in order of their numbers; a directory that holds a run itself is its own only run."""
    if not path.is_dir():
        raise UserError(f"{path}: no such directory")
    runs = [entry for entry in path.iterdir() if entry.name.isdecimal() and entry.is_dir()]
    names = map(_plain_name, _files(path)) if not runs else ()
    if any(name in {"stats.json", "job.yaml"} or has_parser(name) for name in names):
        return [path]
    return sorted(runs, key=lambda run: int(run.name))


def _files(directory: Path) -> list[Path]:
    return sorted(entry for entry in directory.iterdir() if entry.is_file())


def _find(directory: Path, name: str) -> Path | None:
    paths = (directory / f"{name}{ending}" for ending in ("", *PACKED))
    return next((path for path in paths if path.is_file()), None)


def _plain_name(path: Path) -> str:
    return path.stem if path.suffix in PACKED else path.name


def _json(path: Path) -> object:
    with open_plain(path) as stream:
        return decode(stream.read(), str(path))


def _series_of(monitor: str, data: object) -> Series:
    if not isinstance(data, dict):
        raise UserError(f"expected an object of stat: [values], found {type(data).__name__}")
    matrix = RunMatrix.from_json(data, monitor)
    return Series(monitor, {name: row[: len(data[name])] for name, row in matrix.stats.items()})


def _job(directory: Path) -> Mapping[str, object]:
    try:
        data = yaml.load((directory / "job.yaml").read_text(errors="replace"), Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _window(job: Mapping[str, object]) -> Window | None:
    begin, end = job.get("stats_part_begin"), job.get("stats_part_end")
    if not isinstance(begin, (int, float)) and not isinstance(end, (int, float)):
        return None
    return Window(
        float(begin) if isinstance(begin, (int, float)) else 0.0,
        float(end) if isinstance(end, (int, float)) else float("inf"),
    )


def _axes(root: Path, job: Mapping[str, object]) -> dict[str, str]:
    """Read the axes off a result root's path, its parameters told apart with the help of the job file."""
    parts = root.parts[-len(_PATH_AXES) - 1 : -1]
    if len(parts) < len(_PATH_AXES) or not _COMMIT.fullmatch(root.name):
        return {}
    axes = dict(zip(_PATH_AXES, parts, strict=True))
    params = axes.pop("path_params")
    if params == "defaults":
        return axes
    named = _named(params, sorted(_scalars(job)), axes)
    return axes | (named if named is not None else {"path_params": params})


def _scalars(job: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in job.items():
        if isinstance(value, dict):
            yield from _scalars(value)
        elif isinstance(key, str) and not key.startswith(("#", ":#")) and isinstance(value, (str, int, float)):
            yield key, str(value)


def _named(params: str, keys: Sequence[tuple[str, str]], taken: Mapping[str, str]) -> dict[str, str] | None:
    """Find keys whose values, sorted by key and joined by `-`, are the parameters in the path.

    A parameter is its value, or `key=value`. Among several answers the first by name is taken; None if there is none.
    """
    candidates = [(key, value) for key, value in keys if value and key not in taken]
    dead_ends: set[tuple[int, int]] = set()

    def search(start: int, first: int) -> dict[str, str] | None:
        if start > len(params):
            return {}
        for index in range(first, len(candidates)):
            key, value = candidates[index]
            for end in _ends(params, start, key, value):
                if (end, index) not in dead_ends:
                    rest = search(end + 1, index + 1)
                    if rest is not None:
                        return {key: value, **rest}
                    dead_ends.add((end, index))
        return None

    return search(0, 0)


def _ends(params: str, start: int, key: str, value: str) -> Iterator[int]:
    """Where a parameter that starts there would end, at a `-` or with the path."""
    for text in (value, f"{key}={value}"):
        in_path = _UNSAFE.sub("_", text[:_LONGEST_PARAM])
        end = start + len(in_path)
        if params.startswith(in_path, start) and params[end : end + 1] in {"", "-"}:
            yield end
