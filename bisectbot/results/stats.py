"""From series to stats: one number per stat and run (LKP's stats.json), and from runs to the run matrix.

The first rule that matches gives the value of a series:

    one sample                                    that sample
    perf-stat.overall. .ps. .total., time. …      the sum
    event counters (since boot)                   last - first
    everything else                               the mean

LKP divides a mean by the records of the whole monitor, which is too much for a series that is shorter (``exact``);
mended, a series is divided by its own number of values. Units are the parser's; counters become events per run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bisectbot.results.matrix import Number, RunMatrix
from bisectbot.results.series import Samples, Series
from bisectbot.results.stat_names import MONITORS, program

_INDEPENDENT = re.compile(
    r"perf-stat\.(?:overall|ps|total)\.|pmu-tools\."
    r"|time\.(?:file_system_|percent_of_cpu|socket_messages_|swaps|system_time|user_time"
    r"|\w+_context_switches|\w+_page_faults)"
)
_WHOLE_RUN = re.compile(r"perf-stat\.(?:overall|ps|total)\.")  # no window can be cut out of these
_EVENTS = re.compile(
    r"(?:cpuidle|energy|ethtool|interrupts|softirq|numa-numastat)\."  # LKP: softirq, so softirqs are averaged
    r"|diskstats\.(?:.*\.)?(?:io_ticks|read_|write_)"
    r"|proc-vmstat\.(?:allocstall|compact_|htlb_buddy_alloc_|kswapd_|nr_dirtied|nr_written|nr_promote"
    r"|nr_vmscan_immediate_reclaim|numa_|pageoutrun|pg|pswp|slabs_scanned|thp_|unevictable_pgs_|zone_reclaim_failed)"
    r"|numa-vmstat\.(?:node\d+\.)?(?:nr_dirtied|nr_vmscan_immediate_reclaim|nr_written|numa_|pg)"
)
_MAXIMUM = re.compile(
    r".*time\.elapsed_time$|iostat\..*\.(?:await|r_await|w_await|svctm|avgqu-sz)$|numa-meminfo\.node\d\.AnonPages$"
)
_PER_CPU = re.compile(r"sched_debug\..*\.\d+$")
# Where a stat that a run lacks was not 0: what was not seen to wait has no waiting time.
_UNSEEN = frozenset(("perf-sched",))


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that counts: seconds since the monitor's first record, both ends included."""

    begin: float = 0.0
    end: float = float("inf")

    def cut(self, series: Series) -> Series:
        """Keep the records within; a monitor that prints no time is taken to print every second."""
        times = series.samples.get(f"{series.monitor}.time", ())
        start = next((time for time in times if time is not None), 0)
        inside = [
            self.begin
            <= (record if record >= len(times) or (time := times[record]) is None else time - start)
            <= self.end
            for record in range(series.longest)
        ]
        samples = {
            name: values
            if _WHOLE_RUN.match(name) or len(values) == 1
            else tuple(value for value, keep in zip(values, inside, strict=False) if keep)
            for name, values in series.samples.items()
        }
        return Series(series.monitor, samples, series.warnings)


def run_stats(monitors: Iterable[Series], *, window: Window | None = None, exact: bool = False) -> dict[str, Number]:
    """Give every stat of one run its number; derived ones come last."""
    stats: dict[str, Number] = {}
    for whole in monitors:
        series = window.cut(whole) if window else whole
        for name, samples in series.samples.items():
            if name == f"{series.monitor}.time":
                continue
            values = [value for value in samples if value is not None]
            if not values:
                continue
            stats[name] = _value(name, values, series.longest if exact else len(values))
            if _MAXIMUM.match(name):
                stats[f"{name}.max"] = max(values)
    stats.update(_derived(stats))
    return stats


def _value(name: str, values: Sequence[Number], records: int) -> Number:
    if len(values) == 1:
        return values[0]
    if _INDEPENDENT.match(name):
        return sum(values)
    if _EVENTS.match(name):
        return values[-1] - values[0]
    return sum(values) / records


def _derived(stats: Mapping[str, Number]) -> dict[str, Number]:
    """Instructions per unit of work, if exactly one benchmark said how much work it did."""
    workloads = [value for name, value in stats.items() if name.endswith(".workload")]
    instructions = stats.get("perf-stat.total.instructions")
    if instructions is None or len(workloads) != 1 or not workloads[0]:
        return {}
    return {"perf-stat.overall.path-length": instructions / workloads[0]}


def run_matrix(runs: Iterable[Mapping[str, Number]], sources: Sequence[str] = (), *, exact: bool = False) -> RunMatrix:
    """Put runs side by side. Values per CPU of sched_debug are left out.

    ``exact`` fills every gap with 0 and drops stats that are the integer 0 in all runs.
    """
    matrix = RunMatrix.from_runs(runs, sources)
    stats = {name: row for name, row in matrix.stats.items() if not _PER_CPU.match(name)}
    if not exact:
        return RunMatrix(matrix.runs, stats, matrix.sources)
    filled = RunMatrix(matrix.runs, stats, matrix.sources).zero_filled()
    kept = {name: row for name, row in filled.stats.items() if not all(type(v) is int and v == 0 for v in row)}
    return RunMatrix(matrix.runs, kept, matrix.sources)


def with_dropped_zeros(runs: Sequence[Mapping[str, Number]], zeroless: Iterable[int]) -> list[Mapping[str, Number]]:
    """Put back the zeros that LKP's stats.json leaves out: where a monitor ran, a stat of it that is absent was 0.

    ``zeroless`` are the runs that lack them. A monitor that gave nothing at all in a run stays missing there, and so
    does every benchmark's stat.
    """
    monitors = MONITORS - _UNSEEN
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if program(name) in monitors]
    filled = list(runs)
    for index in zeroless:
        ran = {program(name) for name in runs[index]}
        filled[index] = {**{name: 0 for name in names if program(name) in ran}, **runs[index]}
    return filled


def averages(matrix: RunMatrix) -> dict[str, float]:
    """Give LKP's avg.json: the arithmetic mean of every stat over all runs, what is missing counting as 0."""
    if not matrix.runs:
        return {}
    return {name: sum(_numbers(row)) / matrix.runs for name, row in matrix.zero_filled().stats.items()}


def deviations(matrix: RunMatrix) -> dict[str, float]:
    """Give LKP's stddev.json: the population standard deviation of the same values."""
    means = averages(matrix)
    return {
        name: (sum((value - means[name]) ** 2 for value in _numbers(row)) / matrix.runs) ** 0.5
        for name, row in matrix.zero_filled().stats.items()
        if name in means
    }


def _numbers(row: Samples) -> list[Number]:
    return [value for value in row if value is not None]
