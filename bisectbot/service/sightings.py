"""The same change in next, mainline and stable is one report: where else a reported change has arrived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.service.context import Context
from bisectbot.service.post import letters
from bisectbot.service.post.sequels import seen_in
from bisectbot.source.history import Change as ChangeIdentity
from bisectbot.source.history import CommitInfo, changes, facts
from bisectbot.source.sightings import find
from bisectbot.store.database import now
from bisectbot.store.tables import Change, Commit, Head, Report, ReportState, Sighting

log = structlog.get_logger()

FOLLOWED = 180 * 24 * 3600.0
"""So long (farm seconds) a reported change is looked for in other branches."""

ASTRAY = 25 * 3600.0
"""A clock (farm seconds) may go wrong by so much and come back; within it, times do not tell what came first."""


@dataclass(frozen=True)
class _Wanted:
    report: int
    sha: str
    since: str | None
    """A head of the branch that was looked through when the report was there already."""


def look(context: Context, tree: str, branch: str, head: str, before: Head | None) -> int:
    """Look for reported changes in a new head of a branch; ``before`` was its last one. Returns how many are new."""
    place, found = f"{tree}:{branch}", 0
    with context.database.read() as session:
        wanted = list(_wanted(context, session, place, before))
    for one in wanted:
        try:
            [info] = facts(context.mirror.git, [one.sha])
            [change] = changes(context.mirror.git, [info])
            seen = find(context.mirror.git, info, change, head, since=one.since)
        except UserError:
            continue  # neither it nor the head before can be read any more
        if seen is not None:
            with context.database.write() as session:
                found += seen_in(session, one.report, place, seen.sha, exact=seen.exact)
            log.info("a reported change has arrived", report=one.report, place=place, commit=seen.sha[:12])
    return found


def _wanted(context: Context, session: Session, place: str, before: Head | None) -> Iterator[_Wanted]:
    """The reports whose change may arrive here: not found in this branch, not seen in it yet."""
    seen = select(Sighting.report_id).where(Sighting.place == place)
    youngest = now(session) - context.clock.real(FOLLOWED)
    query = select(Report).where(
        Report.state != ReportState.REJECTED, Report.created > youngest, Report.id.not_in(seen)
    )
    for report in session.execute(query.order_by(Report.id)).scalars():
        where = letters.model_of(report).tree
        if f"{where.name}:{where.branch}" == place:
            continue
        looked = before is not None and report.created + context.clock.real(ASTRAY) < before.seen
        yield _Wanted(report.id, report.sha, before.commit.sha if looked and before is not None else None)


def report_of(session: Session, lineage: Sequence[tuple[CommitInfo, ChangeIdentity]], direction: str) -> Report | None:
    """The report on a change that is known by any of these (as `lineage` tells them), the nearest first.

    It is the same change under whatever id; or, adapted on its way, one that was sighted as that commit, or has its
    author, date and subject.
    """
    found = (_report_of(session, info, change, direction) for info, change in lineage)
    return next((report for report in found if report is not None), None)


def _report_of(session: Session, info: CommitInfo, change: ChangeIdentity, direction: str) -> Report | None:
    same = select(Report).where(Report.direction == direction)
    keyed = select(Change.id).where(Change.key == change.key).scalar_subquery()
    known = session.execute(same.where(Report.change_id == keyed)).scalar_one_or_none()
    if known is not None:
        return known
    seen = select(Sighting.report_id).where(Sighting.sha == info.sha)
    named = select(Commit.sha).where(
        Commit.author_mail == info.author_mail,
        Commit.author_date == float(info.author_date),
        Commit.subject == info.subject,
    )
    adapted = same.where(Report.id.in_(seen) | Report.sha.in_(named)).order_by(Report.id)
    return session.execute(adapted.limit(1)).scalar_one_or_none()
