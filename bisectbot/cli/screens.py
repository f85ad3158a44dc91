"""How answers look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table

from bisectbot.service.people.status import BisectionLine, BisectionStatus, HostStatus, Overview, ReportLine, StepStatus
from bisectbot.service.search.replay import Replay

SHORT = 12
_BARS = " ▁▂▃▄▅▆▇█"


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)  # subjects have [brackets] and :words: of their own


def _table(title: str, *columns: str) -> Table:
    """``>`` before a column: to the right; ``=``: names, which are never broken."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        side: JustifyMethod = "right" if column.startswith(">") else "left"
        table.add_column(column.lstrip(">="), justify=side, overflow="fold", no_wrap=column.startswith("="))
    return table


def duration(seconds: float | None) -> str:
    """``2 h 5 min``, ``42 s``; a dash for None."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def overview(seen: Overview) -> None:
    """The whole service at a glance."""
    console = _console()
    if not seen.leader:
        console.print("No scheduler is running: start `bisectbot serve`.")
    trees = _table("Trees", "tree", ">heads", "address", "problem")
    for tree in seen.trees:
        trees.add_row(tree.name, str(tree.heads), tree.url, tree.problem)
    console.print(trees)
    hosts(seen.hosts, console)
    work = [f"{count} {what} {state}" for what, counts in (("builds", seen.builds), ("runs", seen.runs))
            for state, count in counts.items()]  # fmt: skip
    console.print(f"Open: {', '.join(work) or 'nothing'}\n")
    _steps(console, seen.steps)
    _bisections(console, seen.bisections)
    _reports(console, seen.reports)


def hosts(seen: Iterable[HostStatus], console: Console | None = None) -> None:
    """Every host, what it does and how it is."""
    table = _table("Hosts", "=host", "=group", "state", "worker", "runs now", ">waiting", ">false alarms", "reason")
    for host in seen:
        spoke = f"spoke {duration(host.silent_s)} ago" if host.silent_s is not None else "never seen"
        worker = "attached" if host.attached else spoke
        alarms = f"{host.alarms} in {host.nights}" if host.nights else "-"
        does = (worker, host.run or "-", str(host.waiting), alarms)
        table.add_row(host.name, host.group, host.state, *does, host.reason)
    (console or _console()).print(table, "")


def _steps(console: Console, steps: Sequence[StepStatus]) -> None:
    if not steps:
        return
    table = _table("Steps", "step", "series", "at commit", ">change", ">probability", "state", "bisection")
    for step in steps:
        percent = "-" if step.percent is None else f"{step.percent:+.1f} %"
        where = f"{step.commit[:SHORT]} (head {step.head})"
        table.add_row(step.id, step.series, where, percent, odds(step.probability), step.state, step.bisection)
    console.print(table, "")


def _bisections(console: Console, bisections: Sequence[BisectionLine]) -> None:
    if not bisections:
        return
    table = _table("Bisections", "id", "kpi", "=host group", "good..bad", "state", "verdict")
    for row in bisections:
        verdict = f"{row.verdict} ({odds(row.probability)})" if row.probability is not None else row.reason
        ends = f"{row.good[:SHORT]}..{row.bad[:SHORT]}"
        table.add_row(row.id, row.kpi, row.group, ends, row.state, verdict)
    console.print(table, "")


def _reports(console: Console, reports: Sequence[ReportLine]) -> None:
    if not reports:
        return
    table = _table("Reports", "id", "subject", "state", "mail", "reason")
    for row in reports:
        table.add_row(row.id, row.subject, row.state, row.mail, row.reason)
    console.print(table, "")


def bisection(seen: BisectionStatus) -> None:
    """One bisection: its experiments as they came, the likeliest candidates, what is still to come."""
    console = _console()
    line = seen.line
    console.print(f"{line.id}: {line.kpi} of {line.job} on {line.group}, {seen.candidates} candidates")
    console.print(f"good {line.good[:SHORT]}, bad {line.bad[:SHORT]} in {line.tree}; {line.state}\n")
    table = _table("Experiments", ">#", "=commit", "subject", "=host", f"runs [{seen.unit}]", ">cost", "state")
    for row in seen.experiments:
        values = " ".join(f"{value:.6g}" for value in row.values)
        state = f"{row.state}: {row.reason}" if row.reason else row.state
        table.add_row(str(row.number), row.commit[:SHORT], row.subject, row.host, values, duration(row.host_s), state)
    console.print(table, "")
    table = _table("Likeliest", "=commit", ">probability", "subject")
    for candidate in seen.likeliest:
        table.add_row(candidate.commit[:SHORT], odds(candidate.probability), candidate.subject)
    console.print(table, "")
    for check in seen.checks:
        console.print(f"{check}")
    if line.verdict:
        culprit = f" {line.culprit[:SHORT]}" if line.culprit else ""
        certainty = f", probability {odds(line.probability)}" if line.probability is not None else ""
        console.print(f"Verdict: {line.verdict}{culprit}{certainty}: {line.reason}")
    elif seen.ends_in_s is not None:
        console.print(f"So far {duration(seen.host_s)} of host time; about {seen.runs_left} runs to go,")
        console.print(f"ends in about {duration(seen.ends_in_s)}.")
    elif line.reason:
        console.print(line.reason)


def replay(seen: Replay) -> None:
    """The search step by step; each line ends with the posterior over the candidates, one character each."""
    console = _console()
    console.print(f"{seen.id}, engine {seen.engine}: {len(seen.frames)} results, {len(seen.candidates)} candidates\n")
    table = _table("", ">#", "=commit", f">result [{seen.unit}]", "=likeliest", ">probability", "=posterior")
    for number, frame in enumerate(seen.frames, 1):
        result = "skipped" if frame.value is None else f"{frame.value:.6g}"
        bars = spark(frame.posterior)
        table.add_row(str(number), frame.commit[:SHORT], result, frame.likeliest[:SHORT], odds(frame.probability), bars)
    console.print(table, "")
    console.print(f"Stored verdict:     {seen.stored or 'none yet'}")
    console.print(f"Recomputed verdict: {seen.recomputed} (probability {odds(seen.probability)})")
    console.print("They agree." if seen.agrees else "They DIFFER: what was published stays; look into it.")


def odds(probability: float) -> str:
    """A probability in three digits that never claims certainty."""
    if probability >= 0.9995:
        return ">0.999"
    return "<0.001" if probability < 0.0005 else f"{probability:.3f}"


def spark(values: Sequence[float], width: int = 60) -> str:
    """Numbers in 0..1 as a row of bars, at most ``width``; several candidates then share one, with their sum."""
    per = -(-len(values) // width) if values else 1
    sums = [sum(values[i : i + per]) for i in range(0, len(values), per)]
    return "".join(_BARS[min(8, round(8 * value + 0.4))] if value > 0.001 else " " for value in sums)
