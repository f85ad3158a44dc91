# ruff: noqa: SIM905, UP031 - names as running text; %d cuts a float as LKP does
"""LKP's table once more, straight from the written rules and without the product's own pieces: both must agree.

Plain, slow, one function a rule. The rules' odd corners (trimming from 32 runs on, -1 for what was not measured,
thresholds that are met exactly, bases of zero, columns of unequal length) are what the made matrices aim at.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bisectbot.results.compare import Order, compare
from bisectbot.results.matrix import MatrixSet
from bisectbot.results.table import layout

Stats = dict[str, list[float]]
LOGS = ("dmesg.", "kmsg.", "last_state.", "stderr.")
NAMES = (
    "will-it-scale.per_process_ops will-it-scale.time.system_time aim9.time.minor_page_faults "
    "aim9.time.file_system_inputs perf-stat.i.cache-miss-rate% perf-stat.i.instructions iostat.sda.util "
    "iostat.sda.await iostat.cpu.user vmstat.cpu.id vmstat.cpu.sy vmstat.system.cs vmstat.memory.free "
    "proc-vmstat.nr_shmem proc-vmstat.pgfault proc-vmstat.allocstall meminfo.Percpu numa-meminfo.node0.Shmem "
    "numa-vmstat.node0.nr_shmem sched_debug.cfs_rq:/.spread0.min perf-c2c.HITM.total turbostat.PkgWatt turbostat.C6% "
    "perf-profile.children.cycles-pp.a perf-profile.children.cycles-pp.b perf-profile.self.cycles-pp.a cpuidle..time "
    "interrupts.CPU0.LOC slabinfo.x.num_objs xfstests.generic.001.seconds uptime.boot time.elapsed_time"
).split()
FAILURES = (
    "dmesg.BUG:a",
    "dmesg.boot_failures",
    "stderr.has_stderr",
    "ltp.x.fail",
    "ltp.x.pass",
    "last_state.OOM",
    "kmsg.a",
)
MONITORS = (
    "perf-stat iostat vmstat proc-vmstat meminfo numa-meminfo numa-vmstat sched_debug perf-c2c turbostat perf-profile "
    "cpuidle interrupts slabinfo uptime time dmesg kmsg stderr last_state"
).split()
THRESHOLDS: list[tuple[str, int]] = [
    (r".*\.time\.(elapsed_time.*|system_time|user_time)", 10),
    (r".*\.time\..*(context_switches|_page_faults|swaps)", 1000),
    (r".*\.time\.(file_system_.*|socket_messages_.*)", 10000),
    (r".*vmstat.*nr_.*", 100),
    (r"iostat.*\.await", 50),
    (r"iostat.*\.util", 10),
    (r"perf-c2c\.HITM\.total", 3000),
    (r"proc-vmstat\.allocstall", 100),
    (r"vmstat\.cpu\.(id|us|wa|st)", 10),
    (r"vmstat\.cpu\.sy", 50),
    (r"vmstat\.(io|system)\..*", 100),
    (r"xfstests\..*\.seconds", 10),
]
METRICS = r"(perf-stat|iostat|proc-vmstat|will-it-scale|aim9)\.|vmstat\.(cpu|io|swap|system)|perf-c2c\.HITM\.total"
METRICS += r"|turbostat\.PkgWatt|(.*\.)?time\.."


def failure(name: str) -> bool:
    return name.startswith(LOGS) or name.endswith((".fail", ".pass"))


def denied(name: str) -> bool:
    return name.startswith(("interrupts.", "slabinfo.", "dmesg.boot_failures"))


def owner(name: str) -> str:
    return name.partition(".")[0]


def column(stats: Stats, name: str, runs: list[int]) -> list[float]:
    row = stats.get(name, [])
    return [row[run] if run < len(row) else 0 for run in runs]


def sides(a: list[float], b: list[float], base_runs: int) -> tuple[list[float], list[float]]:
    result = []
    for values in (a, b):
        side = sorted(values)
        side = side[side.count(-1) :] if side and side[0] == -1 else side
        cut = min(len(side) // 32, 1 if base_runs <= 3 else 3)
        result.append(side[cut : len(side) - cut])
    return result[0], result[1]


def small(name: str, low: float, high: float, most: float) -> bool:
    if name.startswith("perf-profile."):
        return False
    ratio = min(high / low, 5) if low > 0 else 5
    if ratio <= 1.01 or (ratio <= 1.05 and not re.match(METRICS, name)):
        return True
    for pattern, threshold in THRESHOLDS:
        if re.fullmatch(pattern, name):
            return most < threshold or high - low < threshold / 2
    if name.startswith("iostat"):
        return most <= 1
    if name.startswith("proc-vmstat") or "meminfo" in name:
        return most <= 1000
    return False


def listed(name: str, a: Stats, b: Stats, a_runs: list[int], b_runs: list[int]) -> bool:
    if denied(name):
        return False
    new, old = column(a, name, a_runs), column(b, name, b_runs)
    if failure(name):
        sibling = {"ltp.x.fail": "ltp.x.pass", "ltp.x.pass": "ltp.x.fail"}.get(name)
        return (sibling is None or sibling in b) and max(new, default=0) != max(old, default=0)
    if max(len(new), len(old)) < 3:
        return False
    if name not in b and not (name.startswith("perf-profile.") and any(n.startswith("perf-profile.") for n in b)):
        return False
    new, old = sides(new, old, len(old))
    if not new or not old:
        return False
    low, high = (new, old) if old[len(old) // 2] > new[len(new) // 2] else (old, new)
    middle = low[len(low) // 2], high[len(high) // 2]
    if not (high[0] > middle[0] and middle[1] > low[-1]):
        return False
    return not small(name, *middle, max(low[-1], high[-1]))


def cell(values: list[float]) -> tuple[float, str]:
    mean = float(sum(map(Fraction, values)) / len(values))
    if abs(mean) < 1000:
        text = f"{mean:10.2f}"
    elif abs(mean) > 100000000:
        text = f"{mean:10.4g}"
    else:
        text = "%10d" % mean
    spread = statistics.pstdev(values, mean) if len(values) > 1 else -1
    percent = 100 * spread / mean if mean else spread
    return mean, text + (" ±%3d%%" % percent if len(values) > 1 and percent > 2 else " " * 6)


def perf_row(name: str, columns: list[list[float]]) -> tuple[list[float], str]:
    base, text = cell(columns[0])
    changes = []
    for values in columns[1:]:
        mean, shown = cell(values)
        points = name.startswith("perf-profile") or name.endswith("%")
        divisor = base or 1e-100
        change = mean - base if points else 100 * (mean - divisor) / divisor
        changes.append(change)
        number = f"{change:+10.2g}" if abs(change) >= 100000 else f"{change:+10.1f}"
        text += number + ("  " if points else "% ") + shown
    return changes, f"{text}  {name}"


def fail_row(name: str, columns: list[list[float]]) -> tuple[list[float], str]:
    text, changes = "", []
    for index, values in enumerate(columns):
        count = sum(values)
        if index:
            changes.append(100 * (count / len(columns[index - 1]) - sum(columns[0]) / len(columns[0])))
            text += f"{changes[-1]:10.0f}% "
        text += ("%11d" % count if count else " " * 11) + ":" + f"{len(values):<4}"
    return changes, f"{text}  {name}"


def table(matrices: dict[str, Stats], runs: dict[str, int], tests_first: bool) -> str:
    every = {key: list(range(runs[key])) for key in matrices}
    whole = {
        key: [run for run in every[key] if column(stats, "last_state.is_incomplete_run", every[key])[run] != 1]
        for key, stats in matrices.items()
    }
    base, *others = matrices
    names: list[str] = []
    for other in others:
        a, b = matrices[other], matrices[base]
        keys = [*a, *(name for name in b if name not in a)]
        names += [
            n
            for n in keys
            if n.startswith(("dmesg.", "stderr.", "last_state.")) and listed(n, a, b, every[other], every[base])
        ]
        names += [n for n in keys if listed(n, a, b, whole[other], whole[base])]
    names = list(dict.fromkeys(names))
    size = Counter(map(owner, names))
    fails: list[tuple[int, str, list[float], str]] = []
    rows: list[tuple[int, str, list[float], str]] = []
    for name in names:
        group = -10000 + size[owner(name)] if failure(name) else size[owner(name)]
        if tests_first and owner(name) not in MONITORS:
            group = 0
        key = ".".join(name.split(".")[:2]) if name.startswith("perf-profile.") else name
        use = every if failure(name) else whole
        make = fail_row if failure(name) else perf_row
        changes, line = make(name, [column(matrices[k], name, use[k]) for k in matrices])
        (fails if failure(name) else rows).append((group, key, changes, line))
    if not names:
        return ""
    more = len(matrices) - 1
    lines = ["commit: ", *(f"  {key}" for key in matrices), ""]
    lines.append(f"{base[:16]:>16} " + "".join(f"{key[:27]:>27} " for key in others))
    lines.append("-" * 16 + " " + ("-" * 27 + " ") * more)
    if fails:
        lines.append("       fail:runs" + "  %reproduction    fail:runs" * more)
        lines.append("           |    " + "         |             |    " * more)
        lines += [line for *_, line in sorted(fails)]
    if rows:
        lines.append("         %stddev" + "     %change         %stddev" * more)
        lines.append("             \\  " + "        |                \\  " * more)
        lines += [line for *_, line in sorted(rows)]
    return "\n".join(lines) + "\n"


LEVELS = st.sampled_from([0, 0.04, 0.999, 1, 4.9, 9.99, 10, 49.5, 98, 100, 999.995, 1000, 1e4, 123456.7, 1e8, 5.7e9])


@st.composite
def values(draw: st.DrawFn, runs: int) -> list[float]:
    level = draw(LEVELS) * draw(st.sampled_from([1, 1, 1, 1.009, 1.011, 1.04, 1.06, 2, -1]))
    noise = draw(st.lists(st.sampled_from([0, 0, 0.001, -0.001, 0.03, -0.03, 0.5]), min_size=runs, max_size=runs))
    row: list[float] = [level * (1 + part) for part in noise]
    if draw(st.booleans()):
        row = [int(value) for value in row]
    for run in draw(st.lists(st.integers(0, runs - 1), max_size=2)):
        row[run] = draw(st.sampled_from([-1, 0, row[run]]))
    return row[: runs - draw(st.sampled_from([0, 0, 0, 1]))]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Stats], dict[str, int]]:
    matrices: dict[str, Stats] = {}
    runs: dict[str, int] = {}
    pool = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    fails = draw(st.lists(st.sampled_from(FAILURES), max_size=3, unique=True))
    for label in ("b" * 40, "a" * 40, "v6.18-rc1")[: draw(st.integers(2, 3))]:
        runs[label] = draw(st.sampled_from([1, 2, 3, 4, 6, 6, 20, 33, 70]))
        stats: Stats = {"will-it-scale.x": [1.0] * runs[label]}
        for name in pool:
            if draw(st.integers(0, 9)):
                stats[name] = draw(values(runs[label]))
        for name in [*fails, "last_state.is_incomplete_run"]:
            if draw(st.booleans()):
                stats[name] = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=runs[label], max_size=runs[label]))
        incomplete = stats.get("last_state.is_incomplete_run")
        if incomplete and all(incomplete):
            incomplete[0] = 0
        matrices[label] = stats
    return matrices, runs


SIMPLE: tuple[dict[str, Stats], dict[str, int]] = (
    {"b" * 40: {"aim9.x.ops_per_sec": [1, 1, 1]}, "a" * 40: {"aim9.x.ops_per_sec": [2, 2, 2]}},
    {"b" * 40: 3, "a" * 40: 3},
)


@given(cases(), st.booleans())
@example(SIMPLE, True)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_written_rules(case: tuple[dict[str, Stats], dict[str, int]], tests_first: bool):
    matrices, runs = case
    sourced = {
        key: {**stats, "stats_source": [f"{run}/stats.json" for run in range(runs[key])]}
        for key, stats in matrices.items()
    }
    order = Order.TESTS if tests_first else Order.GROUPS
    read = MatrixSet.from_json({"axes": {}, "matrices": sourced})
    assert layout(compare(read, exact=True, order=order)) == table(matrices, runs, tests_first)
