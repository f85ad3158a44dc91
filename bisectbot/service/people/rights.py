"""Whose code it is: the addresses that may speak for a commit without being listed anywhere."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.mail.maintainers import parse as parse_maintainers
from bisectbot.service.commands import number
from bisectbot.service.context import Context
from bisectbot.source.history import facts
from bisectbot.source.relevance import touched_files
from bisectbot.store.tables import Bisection, Finding, Report, Request


def speakers(context: Context, sha: str) -> frozenset[str]:
    """The author of a commit (40 hex digits) and the maintainers of what it touches, addresses in lower case."""
    git = context.mirror.git
    [info] = facts(git, [sha])
    there = git.run("--literal-pathspecs", "ls-tree", "--name-only", sha, "--", "MAINTAINERS")
    maintainers = parse_maintainers(git.run("show", f"{sha}:MAINTAINERS") if there else "")
    files = touched_files(git, [sha]).get(sha, frozenset())
    people = {box.key for box in maintainers.concerned(sorted(files)).people}
    return frozenset({info.author_mail.lower(), *people})


def commit_of(context: Context, word: str) -> str:
    """The commit that a report, bisection or request is about: the culprit, or the bad end; "" if there is none."""
    with context.database.read() as session:
        match word[:1].upper():
            case "R":
                report = session.get(Report, number(word, "R"))
                return report.sha if report else ""
            case "B":
                return _of_bisection(session, session.get(Bisection, number(word, "B")))
            case "Q":
                query = select(Bisection).filter_by(request_id=number(word, "Q")).limit(1)
                return _of_bisection(session, session.execute(query).scalar_one_or_none())
    return ""


def _of_bisection(session: Session, row: Bisection | None) -> str:
    if row is None:
        return ""
    query = select(Report.sha).join(Finding, Finding.report_id == Report.id).where(Finding.bisection_id == row.id)
    return session.execute(query.limit(1)).scalar_one_or_none() or row.bad


def asker_of(context: Context, word: str) -> str:
    """Who asked for a bisection or request; "" if nobody did."""
    with context.database.read() as session:
        request: int | None = None
        if word[:1].upper() == "Q":
            request = number(word, "Q")
        elif word[:1].upper() == "B" and (row := session.get(Bisection, number(word, "B"))) is not None:
            request = row.request_id
        found = session.get(Request, request) if request is not None else None
        return found.asker if found else ""
