"""`bisectbot bisect`: the search of the service for the repository you stand in, without the service."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bisectbot.bisect import State, Verdict
from bisectbot.cli.options import json_option, print_json
from bisectbot.errors import UserError
from bisectbot.local import Bench, Kind, LocalSearch, Log, Record, Task
from bisectbot.report.lkp import parse_report
from bisectbot.report.model import Direction
from bisectbot.results.output import check_chosen
from bisectbot.source.git import Git, GitError
from bisectbot.source.history import History, commits, facts
from workers.lock import alone
from workers.measure import What

HELP = """Find the commit between GOOD and BAD that changed a benchmark, in the repository you stand in.

Noise is expected: commits are run as often as their spread asks for, and the culprit and its parent are compared
again before anything is said. Every script for `git bisect run` works unchanged.

\b
CMD prints a number, lines `name: value`, or JSON; or nothing, then its exit status judges:
0 good, 1-127 bad, 125 cannot be tested, 128 and more ends the search.

Interrupt it whenever you like: the same command goes on where it was. Exit status 0 names a commit, 1 says why not.
"""


@click.command(help=HELP)
@click.argument("good", required=False)
@click.argument("bad", required=False)
@click.option("--build", default="", metavar="CMD", help="Build a commit, at the root of its work tree.")
@click.option("--run", "run_", metavar="CMD", required=True, help="Measure or judge a built commit.")
@click.option("--kpi", default="", metavar="NAME", help="The number to look at: NAME, /REGEX/ or $.json.path[0].")
@click.option("--lower-is-better", is_flag=True, help="An increase is a regression.")
@click.option(
    "--measure",
    type=click.Choice([what.value for what in What]),
    help="Measure CMD itself instead of reading what it prints.",
)
@click.option("--runner", default="", metavar="CMD", help="Run through this program, e.g. 'ssh box'.")
@click.option(
    "--log", "log_path", type=click.Path(path_type=Path), help="Where the search is recorded, and found again."
)
@click.option("--runs-max", type=click.IntRange(min=1), default=300, show_default=True, help="Give up after so many.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds after which a run or a build is ended.")
@click.option("--confidence", default=0.99, show_default=True, help="How sure a verdict must be.")
@click.option("--seed", default=0, help="Of the search's own choices.")
@click.option(
    "--from-report", type=click.Path(path_type=Path), metavar="MAIL", help="Check an LKP report: its commits."
)
@json_option
def bisect(
    good: str | None,
    bad: str | None,
    build: str,
    run_: str,
    kpi: str,
    lower_is_better: bool,
    measure: str | None,
    runner: str,
    log_path: Path | None,
    runs_max: int,
    timeout: float,
    confidence: float,
    seed: int,
    from_report: Path | None,
    as_json: bool,
) -> None:
    git = _here()
    if from_report:
        good, bad, lower = _reported(from_report, git)
        lower_is_better = lower_is_better or lower
    if not good or not bad:
        raise UserError("bisect needs GOOD and BAD: two commits, the older first")
    if measure and (kpi or runner):
        raise UserError("--measure goes with neither --kpi nor --runner: let the command print its number there")
    check_chosen(kpi)
    history = commits(git, good, bad)
    good, bad = history.shas[history.good], history.shas[history.bad]
    task = Task(
        good=good,
        bad=bad,
        run=_with_own_files(run_, Path.cwd(), git, bad),
        build=_with_own_files(build, Path.cwd(), git, bad),
        kpi=kpi,
        measure=What(measure) if measure else None,
        runner=runner,
        runs_max=runs_max,
        timeout_s=timeout,
        confidence=confidence,
        seed=seed,
    )
    home = Path(git.run("rev-parse", "--path-format=absolute", "--git-common-dir")) / "bisectbot"
    with alone(home / "lock", "another search in this repository"):
        display = Display(git, history, lower_is_better=lower_is_better or measure is not None)
        log = _open_log(log_path, home / "log.jsonl", task)
        search = LocalSearch(task, history, log, lambda record: display.step(search, record))
        display.begin(search, log)
        try:
            verdict = search.go(Bench(git, home, task))
        except KeyboardInterrupt:
            sys.stderr.write(f"\ninterrupted after {search.runs} runs; the same command goes on from there\n")
            sys.exit(130)
    if as_json:
        print_json(display.as_json(search, verdict))
    else:
        display.verdict(search, verdict)
    sys.exit(0 if verdict.state in {State.CULPRIT, State.CULPRIT_SET} else 1)


def _here() -> Git:
    git = Git(Path.cwd())
    try:
        git.run("rev-parse", "--git-dir")
    except GitError:
        raise UserError(f"{Path.cwd()} is in no git repository; go to one") from None
    return git


def _reported(mail: Path, git: Git) -> tuple[str, str, bool]:
    """The parent and the commit that an LKP report names, and whether its benchmark is better when lower."""
    try:
        data = sys.stdin.buffer.read() if str(mail) == "-" else mail.read_bytes()
    except OSError as error:
        raise UserError(f"--from-report {mail}: {error.strerror}") from None
    report = parse_report(data, str(mail))
    bad = git.resolve(report.commit.id)
    good = git.resolve(report.parent.id if report.parent else f"{bad}^")
    finding = report.finding
    lower = finding.percent is not None and (finding.percent > 0) == (finding.direction is Direction.REGRESSION)
    return good, bad, lower


def _open_log(given: Path | None, usual: Path, task: Task) -> Log:
    """The log that was asked for, or the usual one, which begins anew when it belongs to another or an ended search."""
    if given:
        return Log(given, task)
    try:
        log = Log(usual, task)
    except UserError:
        usual.replace(usual.with_suffix(".old.jsonl"))
        log = Log(usual, task)
    return log


class Display:
    """Tells on stderr how the search goes, and on stdout what it found."""

    def __init__(self, git: Git, history: History, *, lower_is_better: bool) -> None:
        self._git = git
        self._history = history
        self._lower = lower_is_better
        self._err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def begin(self, search: LocalSearch, log: Log) -> None:
        count = len(self._history.candidates())
        self._err.print(f"{_count(count, 'commit')} between good and bad; recorded in {log.file}")
        if search.verdict().state is not State.RUNNING:
            self._err.print("decided already; remove the log to search again")
        elif log.records:
            self._err.print(f"going on: {_count(search.runs, 'run')} are known already")

    def step(self, search: LocalSearch, record: Record) -> None:
        """One line for what just happened and what it means."""
        name = "+".join(sha[:10] for sha in record.commits)
        match record.kind:
            case Kind.BUILT:
                self._err.print(f"  built   {name}  {record.seconds:.1f} s")
            case Kind.SKIPPED:
                self._err.print(f"  skipped {name}  {record.message}")
            case Kind.FAILED:
                self._err.print(f"  failed  {name}  {record.message}")
            case Kind.WARMED:
                self._err.print(f"  warm-up {name}  {_numbers(record.values)}")
            case Kind.RAN | Kind.KNOWN:
                if record.judged and search.runs == 1:
                    self._err.print("it prints no bare number, so its exit status judges; --kpi names a number")
                said = ["good", "bad"][bool(record.values[0])] if record.judged else _numbers(record.values)
                known = " (known)" if record.kind is Kind.KNOWN else ""
                self._err.print(f"  run {search.runs:<3} {name}  {said}{known}  {self._outlook(search)}")

    def verdict(self, search: LocalSearch, verdict: Verdict) -> None:
        """The answer for people."""
        sure = f"{100 * verdict.probability:.4g} %"
        match verdict.state:
            case State.CULPRIT:
                assert verdict.culprit is not None
                self._tell(f"{self._named(verdict.culprit)} made the change ({sure})")
            case State.CULPRIT_SET:
                self._tell(f"one of {_count(len(verdict.suspects), 'commit')} made the change ({sure}):")
                for commit in verdict.suspects:
                    self._tell(f"  {self._named(commit)}")
            case state:
                self._tell(f"no commit named: {state.value.replace('_', ' ')} ({sure})")
        if verdict.effect is not None:
            self._tell(self._effect(search, verdict))
        if verdict.reason:
            self._tell(verdict.reason)
        for commit in verdict.others:
            self._tell(f"also changed it: {self._named(commit)}")
        if verdict.state is not State.CULPRIT:
            likely = [(commit, p) for commit, p in verdict.ranking[:5] if p >= 0.005]
            for commit, probability in likely:
                self._tell(f"  {100 * probability:5.1f} %  {self._named(commit)}")
        self._evidence(search)
        cost = f"{_count(search.runs, 'run')}, {_count(search.builds, 'build')}"
        self._tell(cost + (", deterministic: one run each was enough" if search.deterministic else ""))

    def as_json(self, search: LocalSearch, verdict: Verdict) -> dict[str, object]:
        """The answer for programs; commits as 40 hex digits."""
        sha = self._history.shas
        return {
            "state": verdict.state.value,
            "culprit": None if verdict.culprit is None else sha[verdict.culprit],
            "probability": verdict.probability,
            "suspects": [sha[commit] for commit in verdict.suspects],
            "others": [sha[commit] for commit in verdict.others],
            "effect": verdict.effect,
            "interval": verdict.interval,
            "improvement": None if verdict.effect is None else (verdict.effect < 0) == self._lower,
            "reason": verdict.reason,
            "runs": search.runs,
            "builds": search.builds,
            "deterministic": search.deterministic,
            "ranking": [{"commit": sha[commit], "probability": p} for commit, p in verdict.ranking],
        }

    def _outlook(self, search: LocalSearch) -> str:
        engine = search.search
        if engine is None or search.verdict().state is not State.RUNNING:
            return ""
        best = sorted(engine.posterior(), key=lambda pair: -pair[1])[:3]
        top = ", ".join(f"{self._history.shas[commit][:10]} {100 * p:.0f} %" for commit, p in best)
        still = engine.estimate()
        return f"likely: {top}; about {_count(still.runs, 'run')}, {_duration(still.wall_s)} to go"

    def _effect(self, search: LocalSearch, verdict: Verdict) -> str:
        effect = verdict.effect
        assert effect is not None
        between = f" (95 %: {verdict.interval[0]:+.4g} to {verdict.interval[1]:+.4g})" if verdict.interval else ""
        if search.judged:
            return f"failures: {100 * effect:+.3g} % of the runs"
        word = "improvement" if (effect < 0) == self._lower else "regression"
        return f"the number changes by {effect:+.4g}{between}: {word if effect else 'no change'}"

    def _evidence(self, search: LocalSearch) -> None:
        table = Table(box=None, pad_edge=False)
        for column in ("commit", "runs", "level", "side", "bad : good"):
            table.add_column(column)
        for item in search.search.evidence() if search.search else []:
            commits_ = item.commit if isinstance(item.commit, tuple) else (item.commit,)
            name = "+".join(self._history.shas[commit][:10] for commit in commits_)
            odds = f"{item.odds:.3g}" if 1e-9 < item.odds < 1e9 else ("certain" if item.odds > 1 else "0")
            table.add_row(name, str(item.runs), f"{item.level:.6g}", item.side.value, odds)
        self._out.print(table)

    def _named(self, commit: int) -> str:
        (info,) = facts(self._git, [self._history.shas[commit]])
        return info.short

    def _tell(self, line: str) -> None:
        self._out.print(line)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _numbers(values: tuple[float, ...]) -> str:
    shown = " ".join(f"{value:.6g}" for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} … ({len(values)} numbers)"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _with_own_files(line: str, folder: Path, git: Git, bad: str) -> str:
    """``line`` with the files of ``folder`` that ``bad`` does not hold (an untracked ``./test.sh``) by absolute paths:
    the line is run in a work tree of ours, where they are missing."""

    prefix = git.run("rev-parse", "--show-prefix")

    def placed(match: re.Match[str]) -> str:
        word = match[0]
        file = folder / word
        if ("/" not in word and match.start() == 0) or not file.is_file():
            return word
        name = os.path.normpath(prefix + word)
        outside = name.startswith(("/", ".."))
        tracked = not outside and git.run("ls-tree", "--full-tree", "--name-only", bad, "--", name)
        return word if tracked else str(file.absolute())

    return re.sub(r"(?<![^\s;&|()])[\w./-]+(?![^\s;&|()<>])", placed, line)
