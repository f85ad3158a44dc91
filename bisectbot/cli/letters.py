"""How a report's page and the state of mail look in a terminal."""

from __future__ import annotations

import datetime as dt

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bisectbot.service.post.overview import MailOverview
from bisectbot.service.post.page import LetterLine, ReportPage


def report_page(seen: ReportPage) -> None:
    """One report, from top to bottom."""
    console = Console(highlight=False)
    console.print(f"[bold]{seen.id}[/bold] {seen.state}{': ' + escape(seen.reason) if seen.reason else ''}")
    console.print(escape(seen.subject), soft_wrap=True)
    console.print(f"commit {seen.commit}, {', '.join(seen.bisections)}, {when(seen.created)}")
    for place in seen.places:
        console.print(f"also in {escape(place)}")
    if seen.untold:
        console.print(f"{seen.untold} more findings wait for the next letter of the thread")
    for letter in seen.letters:
        _letter(console, letter)
    for line in seen.bounced:
        console.print(f"bounced: {escape(line)}")
    for reply in seen.replies:
        console.print(f"\n[bold]{reply.kind}[/bold] from {escape(reply.sender)}, {when(reply.received)}")
        console.print(escape(reply.subject))
        if reply.text:
            console.print(escape("\n".join(f"    {line}" for line in reply.text.splitlines())))
    for opinion in seen.opinions:
        why = f": {escape(opinion.why)}" if opinion.why else ""
        console.print(f"judged {opinion.judged} by {escape(opinion.who)}, {when(opinion.at)}{why}")


def _letter(console: Console, letter: LetterLine) -> None:
    sent = f", {when(letter.sent)}" if letter.sent is not None else ""
    way = {"mail": "", "file": ", a file only", "digest": ", for the digest"}[letter.way]
    console.print(f"\n[bold]{letter.kind}[/bold] M{letter.id} {letter.state}{way}{sent}  {escape(letter.message_id)}")
    for reason in letter.held:
        console.print(f"    held: {escape(reason)}")
    if letter.approved_by:
        console.print(f"    approved by {escape(letter.approved_by)}")
    if letter.error:
        console.print(f"    {escape(letter.error)}")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for entry in letter.addressees:
        state = "has it" if entry.address in letter.reached else ""
        kind = "list" if entry.list else ""
        table.add_row("   ", escape(entry.place), escape(str(entry.mailbox)), kind, escape(entry.why), state)
    console.print(table)


def mail_overview(seen: MailOverview) -> None:
    """The state of mail."""
    console = Console(highlight=False)
    if seen.stopped:
        console.print(f"[bold]Stopped[/bold]: {escape(seen.stopped)}")
    right, window = seen.right, seen.window
    console.print(
        f"Goes as far as: {seen.policy}. Judged of the last {window}: {seen.judged}, right {right}; "
        f"{'lists need no approval' if seen.proven else 'lists need approval'}."
    )
    console.print(
        f"Within the last hour {seen.last_hour} of {seen.hourly_cap}, day {seen.last_day} of {seen.daily_cap}."
    )
    for line in seen.open:
        console.print(f"M{line.id} {line.kind} {line.state} {escape(', '.join(line.waiting))}  {escape(line.error)}")
    for address, how in seen.opted_out:
        console.print(f"opted out: {escape(address)} ({escape(how)})")
    for address in seen.suppressed:
        console.print(f"bounces: {escape(address)}")


def when(at: float) -> str:
    """A stored time for people."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
