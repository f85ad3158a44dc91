"""Trees are fetched; where a branch moved, a head is recorded."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.config import Branch as BranchSpec
from bisectbot.config import Tree as TreeSpec
from bisectbot.errors import InfraError, UserError
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.pace import policy_of
from bisectbot.service.sightings import look
from bisectbot.source.content import contents
from bisectbot.source.history import changes, facts, first_parents
from bisectbot.store.database import now
from bisectbot.store.tables import Branch, Head, HeadState, Tree

log = structlog.get_logger()


@dataclass(frozen=True)
class _Seen:
    """A commit that a branch points at, or pointed at before we watched it."""

    sha: str
    backfill: bool


def watch(context: Context) -> int:
    """Fetch every tree that is due and record the heads that are new; returns how many.

    A tree that cannot be fetched is noted, with the reason, and tried again at its next turn; nothing that was
    fetched before is lost, whatever upstream does.
    """
    found = 0
    for name, spec in context.config.trees.items():
        if not _due(context, name, spec):
            continue
        problem = ""
        try:
            found += _fetch(context, name, spec)
        except (InfraError, UserError) as error:
            problem = " ".join(str(error).split())
            log.warning("tree cannot be fetched", tree=name, url=spec.url, problem=problem)
        with context.database.write() as session:
            tree = catalog.tree_row(session, name, spec.url)
            tree.fetched, tree.problem = now(session), problem
    return found


def _due(context: Context, name: str, spec: TreeSpec) -> bool:
    with context.database.read() as session:
        fetched = session.execute(select(Tree.fetched).where(Tree.name == name)).scalar_one_or_none()
        passed = now(session) - (fetched or 0.0)  # below 0: the clock has been put back
        return passed < 0 or passed >= context.clock.real(spec.interval)


def _fetch(context: Context, name: str, spec: TreeSpec) -> int:
    if context.mirror.trees().get(name) != spec.url:
        context.mirror.add_tree(name, spec.url)
    fetched = context.mirror.fetch(name, list(spec.branches))
    for forced in fetched.forced:
        log.info("branch was rebuilt upstream; its former heads are kept", tree=name, branch=forced)
    found = 0
    for ref in spec.branches:
        gone = "" if ref in fetched.heads else "upstream no longer has this branch; its heads are kept"
        found += _record(context, name, spec, ref, fetched.heads.get(ref))
        with context.database.write() as session:
            branch = catalog.branch_row(session, catalog.tree_row(session, name, spec.url), ref)
            if branch.problem != gone:
                branch.problem = gone
                log.warning("branch", tree=name, branch=ref, problem=gone or "it is back")
    return found


def _record(context: Context, tree: str, spec: TreeSpec, ref: str, sha: str | None) -> int:
    """Record what the branch points at, if that is new. Its ref is kept first: a row never names a lost commit."""
    if sha is None:
        return 0
    with context.database.read() as session:
        last = _last_head(session, tree, ref)
    if last is not None and last.commit.sha == sha:
        return 0
    seen = _to_measure(context, spec.branches[ref], last.commit.sha if last else None, sha)
    start = 0 if last is None else last.number + 1
    for number, item in enumerate(seen, start):
        context.mirror.keep(tree, ref, number, item.sha)
    infos = facts(context.mirror.git, [item.sha for item in seen])
    identities = changes(context.mirror.git, infos)
    built_from = contents(context.mirror.git, infos)
    with context.database.write() as session:
        branch = catalog.branch_row(session, catalog.tree_row(session, tree, spec.url), ref)
        for number, (item, info, identity) in enumerate(zip(seen, infos, identities, strict=True), start):
            commit = catalog.commit_row(session, info, identity, built_from[info.sha])
            session.add(
                Head(
                    branch_id=branch.id,
                    number=number,
                    commit_id=commit.id,
                    state=HeadState.NEW,
                    seen=now(session),
                    backfill=item.backfill,
                )
            )
            log.info("head", tree=tree, branch=ref, number=number, commit=item.sha[:12], subject=info.subject)
    look(context, tree, ref, sha, last)
    return len(seen)


def _to_measure(context: Context, spec: BranchSpec, old: str | None, new: str) -> list[_Seen]:
    """The commits that count as heads now that the branch went from ``old`` to ``new``, oldest first."""
    git = context.mirror.git
    rebuilt = old is not None and not git.ok("merge-base", "--is-ancestor", old, new)
    heads = [_Seen(sha, backfill=False) for sha in policy_of(spec).heads(git, old, new, rebuilt=rebuilt)]
    if old is None and spec.backfill:
        past = first_parents(git, None, new)[-spec.backfill - 1 : -1]
        return [*(_Seen(sha, backfill=True) for sha in past), *heads]
    return heads


def _last_head(session: Session, tree: str, ref: str) -> Head | None:
    query = (
        select(Head)
        .join(Branch, Head.branch_id == Branch.id)
        .join(Tree, Branch.tree_id == Tree.id)
        .where(Tree.name == tree, Branch.name == ref)
        .order_by(Head.number.desc())
        .limit(1)
    )
    head = session.execute(query).scalar_one_or_none()
    if head is not None:
        _ = head.commit  # read while the session is open
    return head
