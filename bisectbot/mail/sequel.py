"""What is written later in a report's thread: more that was found, and that the report was wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from bisectbot.mail.message import reply_subject
from bisectbot.report import Commit, Finding, Identity, MailText, Report, Still
from bisectbot.report.render import subject
from bisectbot.report.sections import also, footer, noticed


def addendum(report: Report, found: Sequence[Finding], seen: Sequence[Still] = ()) -> MailText:
    """More about the change of ``report``, which people have: other stats, jobs and hosts, where it has arrived."""
    lines = [
        *_greeting(f"more was found about the commit of the first mail in this thread, {noticed(report.finding)}."),
        *_commit(report.commit),
        "",
        "",
        *_places(seen),
        *also(found),
        *_archive(report),
        *footer(report.identity),
    ]
    return MailText(reply_subject(subject(report)), _text(lines))


def _places(seen: Sequence[Still]) -> list[str]:
    if not seen:
        return []
    width = max(len(one.where) for one in seen)
    return ["The same change is now in:", "", *(f"  {one.where:<{width}}  {one.commit}" for one in seen), "", ""]


def correction(report: Report, why: str) -> MailText:
    """``report`` was wrong, for everybody who got it; ``why`` is one paragraph."""
    lines = [
        *_greeting(
            f"the first mail in this thread was wrong. It said that bisectbot noticed {noticed(report.finding)} on:"
        ),
        *_commit(report.commit),
        "",
        *textwrap.wrap(" ".join(why.split()), 78),
        "",
        *textwrap.wrap(
            "Please disregard that mail, and do not add its tags to any commit. Nothing else needs to be done. "
            "We are sorry for the time that it took you.",
            78,
        ),
        *_archive(report),
        *_signature(report.identity),
    ]
    return MailText(f"{reply_subject(subject(report))} (withdrawn)", _text(lines))


def _greeting(sentence: str) -> list[str]:
    return ["", "", "Hello,", "", *textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False), ""]


def _commit(commit: Commit) -> list[str]:
    return textwrap.wrap(
        f'commit: {commit.id} ("{commit.subject}")', 78, subsequent_indent=" " * 8, break_on_hyphens=False
    )


def _archive(report: Report) -> list[str]:
    return ["", "Everything about this change is at:", report.archive] if report.archive else []


def _signature(identity: Identity | None) -> list[str]:
    lines = footer(identity)
    return ["", "", *lines[lines.index("-- ") :]]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
