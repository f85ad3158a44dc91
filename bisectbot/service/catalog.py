"""The rows that name things: trees, branches, groups, hosts, jobs, KPIs, commits. Made when first needed."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from bisectbot.config import Config
from bisectbot.jobs import assignment, wire
from bisectbot.source.history import Change as ChangeIdentity
from bisectbot.source.history import CommitInfo
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Base,
    Branch,
    Change,
    Commit,
    Environment,
    Host,
    HostGroup,
    Job,
    Kpi,
    Series,
    Tree,
)

T = TypeVar("T", bound=Base)


def find_or_add(session: Session, kind: type[T], identity: dict[str, Any], **rest: Any) -> T:
    """The row of ``kind`` with these values, added with ``rest`` if there is none; also when two add it at once."""
    query = select(kind).filter_by(**identity)
    found = session.execute(query).scalar_one_or_none()
    if found is not None:
        return found
    added = kind(**identity, **rest)
    try:
        with session.begin_nested():
            session.add(added)
    except IntegrityError:
        theirs = session.execute(query).scalar_one_or_none()
        if theirs is None:
            raise  # not somebody who was faster: the values themselves break a rule
        return theirs
    return added


def group_row(session: Session, name: str) -> HostGroup:
    return find_or_add(session, HostGroup, {"name": name})


def tree_row(session: Session, name: str, url: str) -> Tree:
    tree = find_or_add(session, Tree, {"name": name}, url=url)
    tree.url = url
    return tree


def branch_row(session: Session, tree: Tree, name: str) -> Branch:
    return find_or_add(session, Branch, {"tree_id": tree.id, "name": name})


def job_row(session: Session, job: assignment.Job) -> Job:
    """The job's row with its KPIs; a job whose benchmark, command or parameters differ is another job.

    KPIs' units, directions and least effects may be corrected later: they are not part of its identity.
    """
    told = [job.name, job.testcase, job.benchmark, job.group, job.command, [list(pair) for pair in job.parameters]]
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    group = group_row(session, job.group)
    spec = wire.to_plain(job)
    rest = {"name": job.name, "testcase": job.testcase, "group_id": group.id}
    row = find_or_add(session, Job, {"digest": digest}, spec=spec, **rest)
    if row.spec != spec:
        row.spec = spec
    for kpi in job.kpis:
        known = find_or_add(session, Kpi, {"job_id": row.id, "name": kpi.name}, better=kpi.better.value)
        known.unit, known.better, known.least_effect = kpi.unit, kpi.better.value, kpi.least_effect
    session.flush()
    return row


def job_spec(row: Job) -> assignment.Job:
    """The job as workers know it."""
    return wire.from_plain(assignment.Job, row.spec)


def series_row(session: Session, branch_id: int, kpi_id: int) -> Series:
    return find_or_add(session, Series, {"branch_id": branch_id, "kpi_id": kpi_id})


def commit_row(session: Session, info: CommitInfo, identity: ChangeIdentity, content: str = "") -> Commit:
    """The commit's row, with its change; ``content`` as `bisectbot.source.content` tells it, "" if nobody asked."""
    change = find_or_add(session, Change, {"key": identity.key}, patch_id=identity.patch_id or "")
    row = find_or_add(
        session,
        Commit,
        {"sha": info.sha},
        change_id=change.id,
        author_name=info.author_name,
        author_mail=info.author_mail,
        author_date=float(info.author_date),
        subject=info.subject,
    )
    row.content = row.content or content
    return row


def environment_row(session: Session, group_id: int, facts: tuple[tuple[str, str], ...]) -> Environment:
    """The epoch that these facts describe."""
    ordered = dict(sorted(facts))
    digest = hashlib.sha256(json.dumps(ordered).encode()).hexdigest()
    return find_or_add(
        session, Environment, {"group_id": group_id, "digest": digest}, facts=ordered, since=now(session)
    )


def host_row(session: Session, config: Config, name: str) -> Host | None:
    """The host's row, or None if the configuration does not know it."""
    if name not in config.hosts:
        return None
    group = group_row(session, config.hosts[name].group)
    host = find_or_add(session, Host, {"name": name}, group_id=group.id)
    host.group_id = group.id
    return host


def synchronise(session: Session, config: Config) -> None:
    """Make the rows of everything that the configuration names."""
    for name, tree in config.trees.items():
        row = tree_row(session, name, tree.url)
        for ref, branch in tree.branches.items():
            branch_row(session, row, ref)
            for job in config.jobs_of(branch):
                job_row(session, job)
    for name in config.hosts:
        host_row(session, config, name)
