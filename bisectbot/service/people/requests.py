"""What people asked for becomes work; what cannot work is answered in one line."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.service import catalog
from bisectbot.service.bisections import create
from bisectbot.service.context import Context
from bisectbot.store.tables import Branch, Kpi, Request, RequestState, Tree

log = structlog.get_logger()

BISECT = "bisect"
MORE = "more runs"


@dataclass(frozen=True)
class BisectArguments:
    """A bisection that somebody asks for. ``job`` is the name of a configured job, a unit job or a testcase;
    ``job`` and ``kpi`` may be "" where there is only one to choose."""

    tree: str
    branch: str
    good: str
    bad: str
    job: str = ""
    kpi: str = ""


def requests(context: Context) -> int:
    """Take up every open request; returns how many."""
    with context.database.read() as session:
        query = select(Request).where(Request.state == RequestState.OPEN, Request.kind == BISECT).order_by(Request.id)
        waiting = list(session.execute(query).scalars())
    for request in waiting:
        try:
            _take_up(context, request.id, wire.from_plain(BisectArguments, request.arguments))
        except UserError as error:
            with context.database.write() as session:
                row = session.get_one(Request, request.id)
                row.state, row.answer = RequestState.FAILED, str(error)
    return len(waiting)


def _take_up(context: Context, request: int, asked: BisectArguments) -> None:
    tree = context.config.trees.get(asked.tree)
    if tree is None:
        raise UserError(f"tree {asked.tree!r} is not watched; there are: {', '.join(context.config.trees)}")
    branch = tree.branches.get(asked.branch)
    if branch is None:
        raise UserError(
            f"branch {asked.branch!r} of {asked.tree} is not watched; there are: {', '.join(tree.branches)}"
        )
    ends = (context.mirror.git.resolve(asked.good), context.mirror.git.resolve(asked.bad))
    with context.database.write() as session:
        row = session.get_one(Request, request)
        if row.state is not RequestState.OPEN:
            return
        bisection = create(
            context,
            session,
            tree=asked.tree,
            branch_id=_branch(session, asked),
            ends=ends,
            kpi=_kpi(context, session, asked),
            recipe=context.config.builds[branch.build].recipe(branch.build),
            effect=None,
            history=[],
            automatic=False,
            request_id=request,
        )
        row.state, row.answer = RequestState.RUNNING, f"B{bisection.id}"


def _branch(session: Session, asked: BisectArguments) -> int | None:
    query = select(Branch.id).join(Tree).where(Tree.name == asked.tree, Branch.name == asked.branch)
    return session.execute(query).scalar_one_or_none()


def _kpi(context: Context, session: Session, asked: BisectArguments) -> Kpi:
    """The KPI that is meant; raises UserError listing the choices if that is not clear."""
    branch = context.config.trees[asked.tree].branches[asked.branch]
    rows = [
        (configured, kpi)
        for configured in branch.jobs
        for job in context.config.units(configured)
        for kpi in catalog.job_row(session, job).kpis
    ]
    fitting = [
        kpi
        for configured, kpi in rows
        if asked.job in {"", configured, kpi.job.name, kpi.job.testcase} and asked.kpi in {"", kpi.name}
    ]
    if len(fitting) == 1:
        return fitting[0]
    choices = ", ".join(
        f"{kpi.job.name} on {kpi.job.group.name}: {kpi.name}" for kpi in fitting or [kpi for _, kpi in rows]
    )
    raise UserError(f"{'which' if fitting else 'no such'} job and KPI? there are: {choices}")
