"""The weekly digest: what is below the bar for a mail of its own, in one text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from bisectbot.mail.policy import WEEK

MOST_LINES = 200


@dataclass(frozen=True)
class Entry:
    """One change in a digest. ``effect`` in % of the old level, signed; ``confidence`` 0..1; either may be None."""

    commit: str  # 40 hex
    title: str
    tree: str
    kpi: str
    host_group: str
    effect: float | None = None
    confidence: float | None = None
    url: str = ""


@dataclass(frozen=True)
class Digest:
    """Subject and body, and the key of its letter: one digest per week."""

    key: str
    subject: str
    body: str


def is_due(last: float | None, now: float) -> bool:
    """Whether a week has passed since the last digest (seconds since 1970 UTC)."""
    return last is None or now - last >= WEEK


def write(entries: Iterable[Entry], now: float) -> Digest | None:
    """The digest of the week that ends ``now``; None if there is nothing to tell. Largest effects first, by tree."""
    by_tree: dict[str, list[Entry]] = {}
    for entry in entries:
        by_tree.setdefault(entry.tree, []).append(entry)
    if not by_tree:
        return None
    total = sum(map(len, by_tree.values()))
    year, week, _ = dt.datetime.fromtimestamp(now, dt.UTC).isocalendar()
    lines = [
        f"{total} {'change' if total == 1 else 'changes'} of the last week that did not reach the bar for a report:",
        "too small, or not certain enough. Nothing needs to be done about them.",
    ]
    left = MOST_LINES
    for tree, found in sorted(by_tree.items()):
        found.sort(key=lambda entry: (-abs(entry.effect or 0.0), entry.commit))
        lines += ["", f"{tree}:"]
        for entry in found[: max(left, 0)]:
            lines += _lines(entry)
        if len(found) > left:
            lines.append(f"  and {len(found) - max(left, 0)} more")
        left -= len(found)
    subject = (
        f"bisectbot digest of week {week} of {year}: {total} {'change' if total == 1 else 'changes'} below the bar"
    )
    return Digest(f"digest/{year}-{week:02}", subject, "\n".join(lines) + "\n")


def _lines(entry: Entry) -> list[str]:
    effect = "" if entry.effect is None else f"  {entry.effect:+.1f}%"
    confidence = "" if entry.confidence is None else f"  probability {entry.confidence:.2f}"
    title = entry.title if len(entry.title) <= 60 else f"{entry.title[:59]}…"
    lines = [f'  {entry.commit[:10]} ("{title}")', f"    {entry.kpi} on {entry.host_group}{effect}{confidence}"]
    return lines + ([f"    {entry.url}"] if entry.url else [])
