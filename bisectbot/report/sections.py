"""The parts of a report mail, each a list of lines; empty when there is nothing to say.

Order and layout are those that kernel people know from LKP's mails, the sentences are our own. Prose ends at
column 78; what people copy or compare (log lines, addresses, tables) is never folded.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence

from bisectbot.report.model import (
    Check,
    Commit,
    Difference,
    Direction,
    Evidence,
    Explanation,
    Finding,
    Identity,
    Outcome,
    Report,
    Side,
    Still,
)
from bisectbot.results import occurrences
from bisectbot.results.occurrences import Box
from bisectbot.results.table import mean_text

WIDTH = 78
RULER = "-" * 98 + ">"
MOST_LINES = 20  # of one side's log, of a list of functions; the rest is in the twin
MOST_VALUES = 120  # of one side's runs

# What Documentation/admin-guide/reporting-regressions.rst says of newer kernels that are slower, in per cent.
MICRO_LIMIT, BROAD_LIMIT = 5.0, 1.0


def opening(report: Report) -> list[str]:
    """Greet, say what was noticed, where, and since which commit."""
    tree = f"{report.tree.url} {report.tree.branch}".strip()
    return [
        "",
        "",
        "Hello,",
        "",
        *_wrapped(f"bisectbot noticed {noticed(report.finding)} on:"),
        "",
        "",
        *_wrapped(f"commit: {report.commit.id} {_quoted(report.commit)}", hang=8),
        *([tree] if tree else []),
        "",
        *_still(report.still),
    ]


def noticed(finding: Finding) -> str:
    """Name a finding as a mail's first sentence does: ``a 2.4% improvement of aim9.exec_test.ops_per_sec``."""
    if finding.direction is Direction.FAILURE:
        return f'"{finding.stat}"'
    return f"a {change(finding)} of {finding.stat}"


def change(finding: Finding) -> str:
    """Give size and direction: ``2.4% improvement``; the size without sign, and only where there is one."""
    if finding.percent is None or not math.isfinite(finding.percent):
        return str(finding.direction)
    return f"{abs(finding.percent):.1f}% {finding.direction}"


def evidence(report: Report) -> list[str]:
    """Tell why to believe it: probability, runs and boots of both sides, what was confirmed and what was not."""
    found = report.evidence
    if found is None:
        return []
    return [
        f"Evidence: {_probability(found)}",
        "",
        "                      runs  boots        average  stddev",
        _side("parent", found.parent),
        _side("commit", found.culprit),
        "",
        *_size(found.interval),
        *_overlap(found.parent.values, found.culprit.values),
        *_checks(found.checks),
        *_suspects(found.suspects),
    ]


def run_values(report: Report) -> list[str]:
    """Give every run's value at both commits, compactly; a bar stands between boots that had several runs."""
    if report.evidence is None:
        return []
    sides = (report.evidence.parent, report.evidence.culprit)
    barred = any(len(boot) > 1 for side in sides for boot in side.boots)
    title = f"Runs of {report.finding.stat}{' (| between boots)' if barred else ''}:"
    return [*_wrapped(title), *_values(sides[0], barred), *_values(sides[1], barred), ""]


def job(finding: Finding) -> list[str]:
    """Describe testcase, config, compiler, machine and parameters."""
    description = hardware(finding.machine.description or finding.machine.group) if finding.machine else ""
    machine = [f"test machine: {description}"] if description else []
    facts = [
        ("testcase", finding.testcase),
        ("config", finding.config),
        ("compiler", finding.compiler),
    ]
    parameters = [f"\t{key}: {value}" for key, value in finding.parameters]
    return [
        *(f"{key}: {value}" for key, value in facts if value),
        *(line for text in machine for line in _wrapped(text, hang=8)),
        *(["parameters:", "", *parameters] if parameters else []),
        "",
        "",
    ]


def hardware(description: str) -> str:
    """Leave the processor's vendor out of a machine's description: nothing we write names another robot's owner."""
    return re.sub(r"\bIntel(\([RC]\)|®)?\s*", "", description)


def also(findings: Sequence[Finding]) -> list[str]:
    """Box what else the commit changed, one block per finding."""
    if not findings:
        return []
    blocks = [_box_rows(finding) for finding in findings]
    width = max(len(text) for rows in blocks for _, text in rows)
    ruler = f"+{'-' * 18}+{'-' * (width + 2)}+"
    boxed = [line for rows in blocks for line in [ruler, *(f"| {key:<16} | {text:<{width}} |" for key, text in rows)]]
    return ["In addition to that, the commit changed:", "", *boxed, ruler, "", ""]


def explanation(report: Report) -> list[str]:
    """Tell what might explain the change, or that nothing was found."""
    found = report.explanation
    if found is None:
        return []
    if not found.compared:
        return ["No mechanism was looked for: neither side left anything to compare.", ""]
    if not (found.differences or found.functions):
        return [*_wrapped(f"No mechanism found. Compared were {_listed(found.compared)}."), ""]
    return [
        *(line for difference in found.differences for line in _difference(report, difference)),
        *_functions(found),
    ]


def notes(report: Report) -> list[str]:
    """Give remarks, among them that the kernel's own rules would not call this a regression."""
    paragraphs = [*report.notes]
    if below_the_kernels_rule(report):
        paragraphs.append(
            "Note: by the kernel's own rules this hardly counts as a regression. They expect more than "
            f"{MICRO_LIMIT:.0f}% in a micro-benchmark or more than {BROAD_LIMIT:.0f}% in a broad one "
            "(Documentation/admin-guide/reporting-regressions.rst), which was not seen here. Please "
            "read it as a measured change."
        )
    return [line for paragraph in paragraphs for line in [*_wrapped(paragraph), ""]]


def boxes(found: Iterable[Box]) -> list[str]:
    """Lay out how many runs of each commit showed what failed."""
    return [line for box in found for line in [*occurrences.layout(box).split("\n"), ""]]


def below_the_kernels_rule(report: Report) -> bool:
    """Say whether every regression told is too small for the kernel's rules; False when none is told."""
    told = [f for f in (report.finding, *report.also) if f.direction is Direction.REGRESSION and f.percent is not None]
    limits = {True: BROAD_LIMIT, False: MICRO_LIMIT}
    return bool(told) and all(abs(f.percent or 0) <= limits[f.broad] for f in told)


def tags(report: Report) -> list[str]:
    """Ask for the trailers of a fix; improvements ask for nothing."""
    if report.identity is None or report.finding.direction not in {Direction.REGRESSION, Direction.FAILURE}:
        return []
    closes = [f"| Closes: {report.thread}"] if report.thread else []
    return [
        "If you fix this in a commit of its own (and not in a new version of this",
        "one), please add:",
        f"| Reported-by: bisectbot <{report.identity.address}>",
        *closes,
        "",
        "",
    ]


def details(report: Report) -> list[str]:
    """Lead to the archive and tell how to repeat the runs."""
    archive = ["", "Kernel config, job file, raw results of every run:", report.archive] if report.archive else []
    repeat = ["", "To repeat it:", "", *(f"        {line}".rstrip() for line in report.reproduce)]
    return ["Details are below:", RULER, "", *archive, *(repeat if report.reproduce else []), ""]


def footer(identity: Identity | None) -> list[str]:
    """Say what the figures hold for, who sends this, how to answer and how to stop it."""
    home = f" · {identity.home}" if identity and identity.home else ""
    return [
        "",
        "",
        "The figures hold for the machine and the configuration above; others may",
        "differ.",
        "",
        "",
        "-- ",
        f"bisectbot{home}",
        "Reply with `#bisectbot test` above a patch to have it measured here, with",
        "`#bisectbot mute` to get no more of these mails.",
    ]


def value_text(value: float) -> str:
    """Write one run's value as short as it stays exact enough: integers whole, others with four digits or more."""
    if value == int(value) and abs(value) < 1e12:
        return str(int(value))
    return f"{value:.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def _still(still: Iterable[Still]) -> list[str]:
    lines = [f"[{line.what} on {line.where:<17} {line.commit}".rstrip() + "]" for line in still]
    return [*lines, ""] if lines else []


def _probability(found: Evidence) -> str:
    if found.probability is None:
        return "both commits measured, no probability given."
    percent = "more than 99.9%" if found.probability > 0.999 else f"{100 * found.probability:.1f}%"
    who = "this commit or one of those below" if found.suspects else "this commit"
    return f"{who}, with a probability of {percent}."


def _side(name: str, side: Side) -> str:
    values = side.values
    boots = str(len(side.boots)) if side.booted else "-"
    if not values:
        return f"  {name} {side.commit[:10]:<10} {0:7d} {boots:>6}"
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    percent = f"{100 * spread / abs(mean):6.1f}%" if mean else ""
    average = mean_text(mean).strip()  # the digits that the table shows
    return f"  {name} {side.commit[:10]:<10} {len(values):7d} {boots:>6} {average:>14} {percent}".rstrip()


def _size(interval: tuple[float, float] | None) -> list[str]:
    """How large the change is, by more than the few runs of both sides."""
    if interval is None:
        return []
    low, high = sorted(interval, key=abs)
    return [*_wrapped(f"  All runs of the search: between {low:+.1f}% and {high:+.1f}%, with 95 %."), ""]


def _overlap(parent: Sequence[float], culprit: Sequence[float]) -> list[str]:
    """Say at a glance how far the sides' runs are apart."""
    if not (parent and culprit):
        return []
    within = sum(min(culprit) <= value <= max(culprit) for value in parent)
    within += sum(min(parent) <= value <= max(parent) for value in culprit)
    if within == 0:
        return ["  No run of one side lies within the other side's range.", ""]
    return [f"  {within} of {len(parent) + len(culprit)} runs lie within the other side's range.", ""]


def _checks(checks: Iterable[Check]) -> list[str]:
    ordered = sorted(checks, key=lambda check: list(Outcome).index(check.outcome))
    lines = [line for c in ordered for line in _wrapped(f"  {c.outcome + ':':<11}{c.what}", hang=13)]
    return [*lines, ""] if lines else []


def _suspects(suspects: Sequence[Commit]) -> list[str]:
    if not suspects:
        return []
    lines = [line for commit in suspects for line in _wrapped(f"  {commit.named}", hang=13)]
    return [*_wrapped("Not told apart from it, since what lies between could not be tested:"), *lines, ""]


def _values(side: Side, barred: bool) -> list[str]:
    boots = [" ".join(map(value_text, boot)) for boot in side.boots]
    words = (" | " if barred else " ").join(boots).split()
    if len(words) > MOST_VALUES:
        words = [*words[:MOST_VALUES], "…"]
    return _wrapped(f"  {side.commit[:10]}: {' '.join(words)}", hang=4)


def _box_rows(finding: Finding) -> list[tuple[str, str]]:
    parameters = sorted(f"{key}={value}" for key, value in finding.parameters)
    rows = [("testcase: change", f"{finding.testcase}: {finding.stat} {change(finding)}")]
    if finding.machine:
        rows.append(("test machine", hardware(finding.machine.description)))
    return rows + [("" if index else "test parameters", text) for index, text in enumerate(parameters)]


def _difference(report: Report, difference: Difference) -> list[str]:
    def side(name: str, short: str, lines: Sequence[str]) -> list[str]:
        shown = [f"  {line}" for line in lines[:MOST_LINES]]
        left = [f"  … {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
        return [f"{name} {short}:", "", *(shown or ["  (nothing)"]), *left, ""]

    parent = report.parent.short if report.parent else ""
    return [
        f"The two sides differ in their {difference.of}.",
        "",
        *side("this commit", report.commit.short, difference.culprit),
        *side("its parent", parent, difference.parent),
    ]


def _functions(found: Explanation) -> list[str]:
    if not found.functions:
        return []
    moved = sorted(found.functions, key=lambda function: -abs(function.culprit - function.parent))
    rows = [f"{m.parent:10.2f} {m.culprit - m.parent:+10.1f} {m.culprit:10.2f}  {m.stat}" for m in moved]
    return ["Functions that the commit touches and whose share of the profile moved (%):", "", *rows[:MOST_LINES], ""]


def _quoted(commit: Commit) -> str:
    return f'("{commit.subject}")' if commit.subject else ""


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _wrapped(text: str, hang: int = 0) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
