"""The posterior over commits as a picture: text for terminals, SVG for pages and mails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from bisectbot.bisect.graph import members
from bisectbot.bisect.terms import Evidence, Side

BARS: Final = " ▁▂▃▄▅▆▇█"
MARKS: Final = {Side.GOOD: "+", Side.BAD: "-", Side.UNDECIDED: "?"}
COLOURS: Final = {Side.GOOD: "#2a7f62", Side.BAD: "#b3261e", Side.UNDECIDED: "#8a6d00"}
LISTED: Final = 3


def text(
    posterior: Sequence[tuple[int, float]],
    evidence: Sequence[Evidence],
    *,
    width: int = 72,
    name: Callable[[int], str] = str,
) -> str:
    """Three lines and the likeliest commits: bars of probability along the candidates in their order,

    below them what was tested (+ good, - bad, ? undecided). A column may stand for several commits: its bar
    is their sum.
    """
    if not posterior:
        return ""
    columns = min(width, len(posterior))
    place = {commit: i * columns // len(posterior) for i, (commit, _) in enumerate(posterior)}
    mass = [0.0] * columns
    for commit, p in posterior:
        mass[place[commit]] += p
    top = max(mass) or 1.0
    bars = "".join(BARS[0 if m < 1e-3 else 1 + min(int(7.999 * m / top), 7)] for m in mass)
    marks = [" "] * columns
    for e in evidence:
        column = place.get(members(e.commit)[-1])
        if column is not None:
            marks[column] = MARKS[e.side] if marks[column] in (" ", MARKS[e.side]) else "*"
    best = sorted(posterior, key=lambda cp: -cp[1])[:LISTED]
    listed = "  ".join(f"{name(commit)} {p:.3g}" for commit, p in best)
    return f"{bars}\n{''.join(marks)}\n{listed}"


def svg(
    posterior: Sequence[tuple[int, float]],
    evidence: Sequence[Evidence],
    *,
    width: int = 720,
    height: int = 200,
    name: Callable[[int], str] = str,
) -> str:
    """The same for a page: a bar per candidate (or per pixel), a dot per tested commit, titles to hover."""
    foot, head = 34, 18
    floor = height - foot
    step = width / max(len(posterior), 1)
    top = max((p for _, p in posterior), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="11">',
        "<title>Probability of each commit to be the culprit</title>",
        f'<line x1="0" y1="{floor}" x2="{width}" y2="{floor}" stroke="#888"/>',
    ]
    place = {commit: (i + 0.5) * step for i, (commit, _) in enumerate(posterior)}
    for commit, p in posterior:
        if p < 1e-3 * top:
            continue
        high = (floor - head) * p / top
        parts.append(
            f'<rect x="{place[commit] - max(step, 1) * 0.45:.1f}" y="{floor - high:.1f}" '
            f'width="{max(step, 1) * 0.9:.1f}" height="{high:.1f}" fill="#3b5b92">'
            f"<title>{escape(name(commit))}: {p:.3g}</title></rect>"
        )
    for e in evidence:
        x = place.get(members(e.commit)[-1])
        if x is None:
            continue
        what = f"{escape(name(members(e.commit)[-1]))}: {e.side}, level {e.level:.6g}, {e.runs} runs in {e.boots} boots"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{floor + 9}" r="3.5" fill="{COLOURS[e.side]}"><title>{what}</title></circle>'
        )
    if posterior:
        commit, p = max(posterior, key=lambda cp: cp[1])
        x = place[commit]
        anchor = "start" if x < width / 3 else "end" if x > 2 * width / 3 else "middle"
        label = f"{escape(name(commit))} {p:.3g}"
        parts.append(f'<text x="{x:.1f}" y="{head - 6}" text-anchor="{anchor}">{label}</text>')
    parts.append(
        f'<text x="0" y="{height - 6}">good</text><text x="{width}" y="{height - 6}" text-anchor="end">bad</text></svg>'
    )
    return "\n".join(parts) + "\n"
