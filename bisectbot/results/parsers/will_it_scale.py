"""will-it-scale: runtest.py's CSV. Operations per second, idle in percent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bisectbot.results.parsers.error_id import error_id
from bisectbot.results.parsers.rawlog import Pair, RawLog, is_number, number, printed

_COLUMNS = ("processes", "processes_idle", "threads", "threads_idle", "linear")


@dataclass
class _Summary:
    rows: int = 0
    scalability: float | None = None
    per_process: float = 0
    per_thread: float = 0
    workload: float = 0

    def add(self, tasks: float, processes: float, threads: float, linear: float) -> None:
        if linear and tasks != 1:
            self.scalability = processes / linear
        self.rows += 1
        self.per_process += processes / tasks
        self.per_thread += threads / tasks
        self.workload += processes + threads

    def pairs(self) -> Iterator[Pair]:
        if self.scalability is not None:
            yield "scalability", printed(self.scalability)
        yield "per_process_ops", str(int(self.per_process / self.rows))
        yield "per_thread_ops", str(int(self.per_thread / self.rows))
        yield "workload", printed(self.workload)


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the columns of every row as `TASKS.COLUMN`, then the summary over all rows.

    `scalability` = processes / linear of the last row that has both a linear value and tasks other than 1;
    `per_process_ops`, `per_thread_ops` = mean over rows of processes (threads) / tasks, truncated;
    `workload` = sum of processes and threads. An assertion that failed gives an error id with the value 1.
    """
    summary = _Summary()
    for line in raw:
        row = [word.strip() for word in line.split(",")]
        if len(row) == 1 + len(_COLUMNS) and all(map(is_number, row)):
            tasks, processes, _, threads, _, linear = map(number, row)
            if tasks == 0 or processes == threads == 0:
                continue
            for column, value in zip(_COLUMNS, row[1:], strict=True):
                yield f"{row[0]}.{column}", value
            summary.add(tasks, processes, threads, linear)
        elif "Assertion" in line and line.rstrip(" .").endswith("failed"):
            yield error_id(line[line.index("Assertion") :]), "1"
        elif not line.startswith(("tasks,", "real", "user", "sys")):
            raw.warn_line(line)
    if summary.rows:
        yield from summary.pairs()
