"""The search on one machine, without a service: any git repository, any command that measures or judges it.

The repository is only read: work trees and merges live in a repository of our own that borrows its objects. The
search's state is its log, JSON lines; reading them again brings the same search back, so it can be interrupted
anywhere.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance

from bisectbot.bisect import CommitGraph, Costs, Search, State, Verdict
from bisectbot.bisect.terms import Commit
from bisectbot.errors import InfraError, Untestable, UserError
from bisectbot.jobs import wire
from bisectbot.results.delivery import Outcome
from bisectbot.results.output import Plain, read_chosen, read_plain
from bisectbot.source.git import Checkout, Git
from bisectbot.source.history import History
from bisectbot.source.merged import merged
from workers.builders.command import OUTPUT_LIMIT, make
from workers.measure import Meter, What
from workers.process import Command, Cut
from workers.runner import Runner
from workers.slots import Slots

IDLE = 20  # known values that were wanted in a row: nothing new will come
STEADY = 2  # fresh trees in a row whose first run told nothing else than the second: no more first runs are wasted
SLIVER = 0.02  # of the difference between the ends
REPEATS = 3  # equal repetitions after which a command counts as deterministic


@dataclass(frozen=True)
class Task:
    """What was asked for. ``good`` and ``bad`` are commits, 40 hex digits; ``kpi`` as `read_chosen` takes it, "" for
    none; ``runs_max`` 0 is no limit; ``timeout_s`` bounds one run and one build."""

    good: str
    bad: str
    run: str
    build: str = ""
    kpi: str = ""
    measure: What | None = None
    runner: str = ""
    runs_max: int = 0
    timeout_s: float = 3600.0
    confidence: float = 0.99
    seed: int = 0

    def identity(self) -> dict[str, object]:
        """What two tasks must agree in to be one search."""
        plain = dataclasses.asdict(self)
        return {name: plain[name] for name in ("good", "bad", "run", "build", "kpi", "measure", "runner", "seed")}


class Kind(enum.StrEnum):
    BUILT = "built"
    WARMED = "warmed"
    """The first run in a fresh work tree, not counted: caches are cold, byte code is not yet compiled."""
    RAN = "ran"
    FAILED = "failed"
    """A run without a result."""
    SKIPPED = "skipped"
    """The commit cannot be tested."""
    KNOWN = "known"
    """The command is deterministic: a value that it gave before counts again."""


@dataclass(frozen=True)
class Record:
    """One line of the log. ``commits``: one commit, or those whose merge was measured; ``at`` seconds since 1970."""

    kind: Kind
    commits: tuple[str, ...]
    values: tuple[float, ...] = ()
    seconds: float = 0.0
    at: float = 0.0
    message: str = ""
    judged: bool = False
    """The values are verdicts of the command itself: 0 good, 1 bad."""


class Log:
    """The records of one search in ``file``. Raises UserError when the file belongs to another one."""

    def __init__(self, file: Path, task: Task) -> None:
        self.file = file
        self.records: list[Record] = []
        identity = {"search": task.identity()}
        try:
            lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
            whole = [line for line in lines if line.endswith(b"\n")]  # a killed writer leaves half a line
            if not whole:
                self._rewrite([json.dumps(identity).encode() + b"\n"])
                return
            if json.loads(whole[0]) != json.loads(json.dumps(identity)):
                raise UserError(f"{file} is the log of another search; give another --log, or remove it")
            self.records = [wire.decode(Record, line) for line in whole[1:]]
            if len(whole) < len(lines):
                self._rewrite(whole)
        except json.JSONDecodeError:
            raise UserError(f"{file} is no log of a search; give another --log") from None
        except OSError as error:
            raise UserError(f"--log {file}: {error.strerror}") from None

    def add(self, record: Record) -> None:
        self.records.append(record)
        with self.file.open("ab") as out:
            out.write(wire.encode(record) + b"\n")

    def _rewrite(self, lines: Sequence[bytes]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(b"".join(lines))


class Bench:
    """Builds commits in work trees below ``home`` and runs the task's command in them."""

    def __init__(self, git: Git, home: Path, task: Task) -> None:
        self._task = task
        self._home = home
        self._checkout = Checkout(home)
        self._checkout.git.init_bare()
        objects = git.run("rev-parse", "--path-format=absolute", "--git-path", "objects")
        (self._checkout.git.path / "objects" / "info" / "alternates").write_text(objects + "\n", encoding="utf-8")
        self._meter = Meter.of(task.measure) if task.measure else None
        name = f"bisectbot-{os.getuid()}-{hashlib.sha256(str(home.absolute()).encode()).hexdigest()[:8]}"
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self._runner = Runner(task.runner, name, self._environment, task.timeout_s)
        self._slots = Slots(home, task.build)
        self._there = ""

    def commit(self, shas: Sequence[str]) -> str:
        """The one commit that contains ``shas``. Raises Untestable when they do not merge."""
        return shas[0] if len(shas) == 1 else merged(self._checkout.git, shas)

    def build(self, sha: str) -> float | None:
        """Make ``sha`` ready to run: the seconds that its build took, None if it was built already.

        Raises Untestable, InfraError.
        """
        if self._slots.find(sha):
            return None
        slot = self._slots.take()
        tree = self._checkout.tree(sha, slot)
        seconds = 0.0
        if self._task.build:
            command = Command(
                ("/bin/sh", "-c", self._task.build),
                tree,
                {**self._environment, "BISECTBOT_COMMIT": sha},
                self._task.timeout_s,
                OUTPUT_LIMIT,
            )
            seconds = make(command, self._home / "build.log").seconds
        self._slots.fill(slot, sha)
        return seconds

    def run(self, sha: str) -> tuple[Plain, float]:
        """One run of a built commit: what it said, and the seconds that it took. Raises InfraError."""
        slot = self._slots.find(sha)
        assert slot, "it has been built"
        tree = self._home / slot
        if self._there != sha:
            self._runner.bring(tree, self._home / "copy.log")
            self._there = sha
        meter_folder = self._home / "meter"
        meter_folder.mkdir(exist_ok=True)
        for file in meter_folder.iterdir():
            file.unlink()
        line = self._meter.wrap(self._task.run, meter_folder) if self._meter else self._task.run
        stdout, stderr = self._home / "stdout", self._home / "stderr"
        ended = self._runner.run(line, tree, stdout, stderr)
        if ended.cut is Cut.TIMEOUT:
            return Plain(Outcome.FAILED, message=f"no end after {self._task.timeout_s:g} s, killed"), ended.seconds
        if ended.cut is not Cut.NONE:
            return Plain(Outcome.FAILED, message="too much output, killed"), ended.seconds
        text = stdout.read_text(encoding="utf-8", errors="replace")
        if self._task.kpi:
            return read_chosen(text, ended.status, self._task.kpi), ended.seconds
        said = read_plain(text, ended.status)
        if self._meter and said.outcome is Outcome.DONE:
            if ended.status:
                return Plain(Outcome.FAILED, message=f"exit status {ended.status}"), ended.seconds
            said = Plain(Outcome.DONE, values=(self._meter.value(ended, meter_folder),))
        return said, ended.seconds


class LocalSearch:
    """The engine's plans, carried out one by one. ``tell`` hears of every record after it has been taken in."""

    def __init__(self, task: Task, history: History, log: Log, tell: Callable[[Record], None]) -> None:
        self._task = task
        self._history = history
        self._log = log
        self._tell = tell
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._said: dict[tuple[str, ...], tuple[float, ...]] = {}
        self._repeats = 0  # -1: the same commit gave two different answers
        self._cold: Record | None = None
        self._cold_steps: list[float] = []  # first run in a fresh tree against the second
        self._levels: dict[tuple[str, ...], list[float]] = {}
        self._idle = 0
        self._build_s = 0.0
        self._judged: bool | None = None
        self.runs = 0
        self.builds = 0
        self.search: Search | None = None
        for record in log.records:
            self._take_in(record)

    @property
    def judged(self) -> bool:
        """Whether the command says good or bad itself instead of giving numbers."""
        return self._judged is True

    @property
    def deterministic(self) -> bool:
        """Whether the command has shown that it always gives the same numbers."""
        return self._repeats >= REPEATS and not self._judged

    def verdict(self) -> Verdict:
        """The answer so far."""
        if self.search is None:
            return Verdict(State.RUNNING, None, 0.0)
        verdict = self.search.verdict()
        if verdict.state is not State.RUNNING:
            return verdict
        ends = [self._said.get(self._shas(end)) for end in (self._history.good, self._history.bad)]
        if self.deterministic and ends[0] == ends[1]:
            reason = "the command gives the same numbers every time, and the same at both ends"
            return dataclasses.replace(verdict, state=State.NOT_REPRODUCED, probability=1.0, reason=reason)
        if self._spent():
            reason = f"stopped after {self.runs} runs (--runs-max)"
            return dataclasses.replace(verdict, state=State.GAVE_UP, reason=reason)
        if self._idle >= IDLE:
            reason = "the command gives the same numbers every time, and they fit no single change"
            return dataclasses.replace(verdict, state=State.GAVE_UP, reason=reason)
        return verdict

    def go(self, bench: Bench) -> Verdict:
        """Search to the end. Raises UserError when an end cannot be tested, InfraError when the machine fails."""
        if self.search is None:
            self._experiment(bench, self._history.good, 1)
        assert self.search
        while (verdict := self.verdict()).state is State.RUNNING:
            plan = self.search.plan(idle=1)
            if not plan:
                raise InfraError("the search is not over, but there is nothing left to try")
            self._experiment(bench, plan[0].commit, plan[0].runs)
        return verdict

    def _experiment(self, bench: Bench, commit: Commit, runs: int) -> None:
        """Run ``commit`` until it has ``runs`` more results, or cannot be tested."""
        shas = self._shas(commit)
        if self.deterministic and shas in self._said:
            self._add(Record(Kind.KNOWN, shas, self._said[shas], at=time.time()))
            return
        try:
            sha = bench.commit(shas)
            seconds = bench.build(sha)
            if seconds is not None and self._task.build:
                self._add(Record(Kind.BUILT, shas, seconds=round(seconds, 6), at=time.time()))
        except Untestable as error:
            self._skip(shas, str(error))
            return
        fresh = seconds is not None and self._cold_counts()
        for _ in range(runs):
            if not self._run(bench, shas, sha, fresh=fresh) or self._spent():
                return
            fresh = False

    def _run(self, bench: Bench, shas: tuple[str, ...], sha: str, *, fresh: bool) -> bool:
        """One result for the commit; False when it cannot be tested. In a ``fresh`` tree the first does not count."""
        while True:
            said, seconds = bench.run(sha)
            record = self._record(said, shas, round(seconds, 6))
            if fresh and record.kind is Kind.RAN and not record.judged:
                fresh = False
                self._add(dataclasses.replace(record, kind=Kind.WARMED))
                if self._spent():
                    return False
                continue
            if record.kind is Kind.SKIPPED:
                self._skip(shas, record.message)
                return False
            self._add(record)
            if record.kind is Kind.RAN:
                return True
            if self._failures[shas] > 1:
                self._skip(shas, record.message)
                return False

    def _record(self, said: Plain, shas: tuple[str, ...], seconds: float) -> Record:
        at = time.time()
        if said.outcome is Outcome.UNTESTABLE:
            return Record(Kind.SKIPPED, shas, message=said.message)
        plain = not self._task.kpi and self._task.measure is None
        if said.outcome is Outcome.FAILED:
            if plain and "aborted" in said.message:
                raise InfraError(f"the command gave up on {shas[0][:12]}: {said.message}; run again to go on")
            return Record(Kind.FAILED, shas, seconds=seconds, at=at, message=said.message)
        if said.good is None and not self._judged:
            return Record(Kind.RAN, shas, said.values, seconds, at)
        if self._judged is False:
            return Record(Kind.FAILED, shas, seconds=seconds, at=at, message="it printed no number, or failed")
        value = 0.0 if said.good is not False else 1.0
        return Record(Kind.RAN, shas, (value,), seconds, at, judged=True)

    def _skip(self, shas: tuple[str, ...], message: str) -> None:
        for end, number in (("good", self._history.good), ("bad", self._history.bad)):
            if shas == self._shas(number):
                raise UserError(f"the {end} end {shas[0][:12]} cannot be tested: {message}; give another commit")
        self._add(Record(Kind.SKIPPED, shas, message=message, at=time.time()))

    def _add(self, record: Record) -> None:
        self._log.add(record)
        self._take_in(record)
        self._tell(record)

    def _take_in(self, record: Record) -> None:
        commit = self._commit(record.commits)
        match record.kind:
            case Kind.BUILT:
                self.builds += 1
                self._build_s = self._build_s or record.seconds
            case Kind.FAILED:
                self.runs += 1
                self._failures[record.commits] += 1
            case Kind.SKIPPED:
                assert self.search, "the good end is measured first"
                self.search.skip(commit, record.message)
            case Kind.WARMED:
                self.runs += 1
                self._cold = record
            case Kind.RAN:
                self.runs += 1
                self._idle = 0
                self._levels.setdefault(record.commits, []).append(fmean(record.values))
                if self._cold and self._cold.commits == record.commits:
                    self._cold_steps.append(abs(fmean(self._cold.values) - fmean(record.values)))
                    self._cold = None
                self._judged = record.judged
                self._compare(record)
                self._observe(commit, record)
            case Kind.KNOWN:
                self._idle += 1
                self._observe(commit, record)

    def _observe(self, commit: Commit, record: Record) -> None:
        if self.search is None:
            self.search = self._begin(record.seconds)
        self.search.observe(commit, record.values, host="here", at=record.at)

    def _begin(self, run_s: float) -> Search:
        """The engine, with what the first build and run have cost; each run is a process, and so a boot, of its own."""
        costs = Costs(build_s=self._build_s, builders=1, boot_s=0.0, run_s=max(run_s, 1e-3), boot_failure_s=0.0)
        return Search(
            CommitGraph(self._history.parents),
            [self._history.good],
            self._history.bad,
            confidence=self._task.confidence,
            costs=costs,
            budget_s=self._task.runs_max * costs.run_s if self._task.runs_max else None,
            seed=self._task.seed,
        )

    def _cold_counts(self) -> bool:
        """Whether the first run in a fresh tree may differ from the others by more than noise or a sliver of the
        effect."""
        ends = [self._levels.get(self._shas(end)) for end in (self._history.good, self._history.bad)]
        effect = abs(fmean(ends[1]) - fmean(ends[0])) if ends[0] and ends[1] else 0.0
        repeated = [(len(runs) - 1, variance(runs)) for runs in self._levels.values() if len(runs) > 1]
        noise = math.sqrt(sum(n * v for n, v in repeated) / sum(n for n, _ in repeated)) if repeated else 0.0
        last = self._cold_steps[-STEADY:]
        return len(last) < STEADY or max(last) > max(noise, SLIVER * effect)

    def _compare(self, record: Record) -> None:
        before = self._said.setdefault(record.commits, record.values)
        if before != record.values:
            self._repeats = -1
        elif self._repeats >= 0 and before is not record.values:
            self._repeats += 1

    def _spent(self) -> bool:
        return 0 < self._task.runs_max <= self.runs

    def _shas(self, commit: Commit) -> tuple[str, ...]:
        numbers = commit if isinstance(commit, tuple) else (commit,)
        return tuple(self._history.shas[number] for number in numbers)

    def _commit(self, shas: Sequence[str]) -> Commit:
        numbers = tuple(self._history.index(sha) for sha in shas)
        return numbers[0] if len(numbers) == 1 else numbers
