"""How closely a branch is watched: which of its new heads are begun now, which wait, which are passed over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.config import Branch as BranchSpec
from bisectbot.service.context import Context
from bisectbot.source.watch import DAY, Every, Policy
from bisectbot.store.database import now
from bisectbot.store.tables import Head, HeadState


def policy_of(spec: BranchSpec) -> Policy:
    """The policy that a branch is configured with."""
    return Policy(Every(spec.every), spec.per_day, spec.quiet)


def spec_of(context: Context, head: Head) -> BranchSpec | None:
    """The configuration of a head's branch; None: it is no longer watched."""
    tree = context.config.trees.get(head.branch.tree.name)
    return tree.branches.get(head.branch.name) if tree else None


def begin_now(context: Context, session: Session, new: Sequence[Head]) -> list[Head]:
    """Of new heads (ordered by branch) those to plan now, each branch's newest first.

    Those that others stand for are coalesced: their commits stay candidates. Those that must wait for another day, or
    for the end of the quiet hours, stay new. A head of the past waits for neither.
    """
    begun: list[Head] = []
    for _, group in groupby(new, key=lambda head: head.branch_id):
        heads = sorted(group, key=lambda head: -head.number)
        spec = spec_of(context, heads[0])
        if spec is not None:
            present = _of_the_present(context, session, policy_of(spec), [head for head in heads if not head.backfill])
            begun += [*present, *(head for head in heads if head.backfill)]
    return begun


def _of_the_present(context: Context, session: Session, policy: Policy, heads: list[Head]) -> list[Head]:
    if not heads:
        return []
    waiting = heads[:1] if policy.every is Every.HEAD else heads
    room = policy.room(now(session), _begun(context, session, heads[0].branch_id))
    by_sha = {head.commit.sha: head for head in waiting}
    chosen = [by_sha[sha] for sha in policy.choose([head.commit.sha for head in reversed(waiting)], room)]
    for head in heads:
        if head not in chosen and (room != 0 or head not in waiting):
            head.state = HeadState.COALESCED
    return chosen[::-1]


def _begun(context: Context, session: Session, branch: int) -> list[float]:
    """When heads were begun within the last day, as on a clock that runs like the farm's."""
    time = now(session)
    query = select(Head.begun).where(
        Head.branch_id == branch,
        Head.state == HeadState.PLANNED,
        ~Head.backfill,
        Head.begun > time - context.clock.real(DAY),
    )
    return [time - context.clock.farm(time - begun) for begun in session.execute(query).scalars()]
