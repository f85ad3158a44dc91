"""perf-sched: `perf sched timehist` with call chains. Milliseconds, counts of switches.

A line is `time [cpu] task[tid/pid] wait sch-delay run  f1 <- f2 <- …`: how long the task had been off the CPU, how
long of that it was runnable and waited for one, how long it then ran, and where it had gone to sleep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bisectbot.results.parsers.rawlog import Pair, RawLog, printed

FRAMES = 5
COUNT_SHARE = 0.005  # of all switches: call chains that are rarer are listed only if they wait long

_MS = re.compile(r"\d{1,12}\.\d{1,9}", re.ASCII)
_HEADER = re.compile(r"\s*(time\s+cpu\s|\[tid/pid\]|-{5,}|Samples do not have callchains)")


@dataclass
class _Waits:
    """Sums over switches, in ms."""

    count: int = 0
    wait: float = 0.0
    delay: float = 0.0
    longest_wait: float = 0.0
    longest_delay: float = 0.0
    longest_both: float = 0.0

    def add(self, wait: float, delay: float) -> None:
        self.count += 1
        self.wait += wait
        self.delay += delay
        self.longest_wait = max(self.longest_wait, wait)
        self.longest_delay = max(self.longest_delay, delay)
        self.longest_both = max(self.longest_both, wait + delay)

    @property
    def mean_both(self) -> float:
        return (self.wait + self.delay) / self.count


def parse(raw: RawLog) -> Iterator[Pair]:
    """Yield the totals, then `wait_time`, `sch_delay` and `wait_and_delay` by call chain.

    A call chain's name has five dotted parts. `wait_and_delay` is listed for chains whose average reaches the
    overall one, or that make up at least 0.5 % of the switches.
    """
    total = _Waits()
    chains: dict[str, _Waits] = {}
    for line in raw:
        words = line.split()
        first = _first_time(words)
        if first is None:
            if not _HEADER.match(line):
                raw.warn_line(line)
            continue
        if words[2].startswith("<idle>"):
            continue
        wait, delay = float(words[first]), float(words[first + 1])
        total.add(wait, delay)
        if chain := " ".join(words[first + 3 :]):
            chains.setdefault(_chain(chain), _Waits()).add(wait, delay)
    if total.count:
        yield from _totals(total)
        for chain in sorted(chains):
            yield from _of_chain(chain, chains[chain], total)


def _first_time(words: list[str]) -> int | None:
    """Index of the wait time among a line's words: the first of three times in a row behind the task's name."""
    if len(words) < 6 or not _MS.fullmatch(words[0]) or not words[1].startswith("["):
        return None
    in_a_row = 0
    for index, word in enumerate(words[3:], 3):
        in_a_row = in_a_row + 1 if _MS.fullmatch(word) else 0
        if in_a_row == 3:
            return index - 2
    return None


def _totals(total: _Waits) -> Iterator[Pair]:
    yield "total_wait_time.max.ms", _ms(total.longest_wait)
    yield "total_wait_time.average.ms", _ms(total.wait / total.count)
    yield "total_sch_delay.max.ms", _ms(total.longest_delay)
    yield "total_sch_delay.average.ms", _ms(total.delay / total.count)
    yield "total_wait_and_delay.max.ms", _ms(total.longest_both)
    yield "total_wait_and_delay.average.ms", _ms(total.mean_both)
    yield "total_wait_and_delay.count.ms", str(total.count)


def _of_chain(chain: str, waits: _Waits, total: _Waits) -> Iterator[Pair]:
    yield f"wait_time.avg.ms.{chain}", _ms(waits.wait / waits.count)
    yield f"wait_time.max.ms.{chain}", _ms(waits.longest_wait)
    yield f"sch_delay.avg.ms.{chain}", _ms(waits.delay / waits.count)
    yield f"sch_delay.max.ms.{chain}", _ms(waits.longest_delay)
    if waits.mean_both >= total.mean_both or waits.count >= COUNT_SHARE * total.count:
        yield f"wait_and_delay.avg.ms.{chain}", _ms(waits.mean_both)
        yield f"wait_and_delay.max.ms.{chain}", _ms(waits.longest_both)
        yield f"wait_and_delay.count.{chain}", str(waits.count)


def _chain(text: str) -> str:
    """Join the frames by points and keep five parts: `do_poll.constprop.0` counts as three, as LKP has it."""
    joined = ".".join("_".join(frame.split()) for frame in text.split("<-"))
    return ".".join(joined.split(".")[:FRAMES])


def _ms(value: float) -> str:
    return printed(round(value, 3))
