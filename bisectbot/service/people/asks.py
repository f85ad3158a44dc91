"""What a person asks for, made definite before anything is ordered: commits, the KPI that is meant, what it costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bisectbot.bisect import Costs
from bisectbot.errors import UserError
from bisectbot.service import catalog
from bisectbot.service.bisections import costs, create
from bisectbot.service.commands import Asker, log, row_of
from bisectbot.service.context import Context
from bisectbot.service.people.requests import BISECT, MORE
from bisectbot.service.search import again
from bisectbot.service.search.again import More
from bisectbot.service.search.candidates import Layout
from bisectbot.service.search.searches import Settings, new_search
from bisectbot.source.history import commits
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    Branch,
    Build,
    Commit,
    Host,
    HostState,
    Kpi,
    Person,
    Purpose,
    Request,
    RequestState,
    Run,
    RunState,
    Tree,
)

SAME_ASK_S = 600.0
"""Real seconds within which the same person asking the same gets the same answer."""
_REV = re.compile(r"[0-9A-Za-z][\w./+-]{0,199}(?:[~^]\d{0,6}){0,9}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{4,40}")


@dataclass(frozen=True)
class Wanted:
    """Which benchmark is meant, in people's words; "" leaves it open. ``group`` may be a part of the name or a glob."""

    kpi: str = ""
    suite: str = ""
    job: str = ""
    group: str = ""
    tree: str = ""
    branch: str = ""


@dataclass(frozen=True)
class Target:
    """The KPI that was meant, and the branch whose build recipe is used."""

    kpi: int
    kpi_name: str
    job: str
    group: str
    tree: str
    branch: str


@dataclass(frozen=True)
class Limits:
    """What a person may have: requests at a time, host hours a day. None: no limit."""

    running: int
    daily_host_h: float


@dataclass(frozen=True)
class Quote:
    """What a bisection would take. Seconds: of hosts, of the clock, until it starts; all farm time."""

    target: Target
    good: str
    bad: str
    commits: int
    steps: int
    host_s: float
    wall_s: float
    measured: int
    """Candidates that this job has measured already."""
    ahead: int
    """Requests and bisections of the same host group that come first."""
    starts_in_s: float


def revision(context: Context, word: str) -> str:
    """The commit (40 hex digits) that ``word`` names: an id, a tag, a branch of a watched tree, ``rev~2``.

    Raises UserError; for an ambiguous id with the first few that it may mean.
    """
    git = context.mirror.git
    if not _REV.fullmatch(word) or ".." in word:
        raise UserError(f"{word[:60]!r} is no revision; give a commit id, a tag or a branch")
    name, steps = re.fullmatch(r"([^~^]*)(.*)", word).groups()  # type: ignore[union-attr]
    for candidate in (word, *(f"refs/remotes/{tree}/{name}{steps}" for tree in context.config.trees)):
        try:
            return git.resolve(candidate)
        except UserError:
            continue
    if _HEX.fullmatch(name):
        found = [sha for sha in git.run("rev-parse", f"--disambiguate={name}").split() if git.has(sha)]
        if len(found) > 1:
            raise UserError(f"{word!r} is ambiguous: {', '.join(sha[:16] for sha in found[:5])}")
    raise UserError(f"{word!r} names no commit that I know; check the spelling, or push it to a watched tree")


def target(context: Context, wanted: Wanted, contains: str = "") -> Target:
    """The one KPI that is meant; of several branches the first that has the commit ``contains``.

    Raises UserError with the choices if that is not clear.
    """
    with context.database.write() as session:
        every = list(_targets(context, session))
    fitting = [one for one in every if _fits(context, one, wanted)]
    kpis = {one.kpi for one in fitting}
    if len(kpis) != 1:
        shown = {f"{one.kpi_name} on {one.group} (job {one.job})": None for one in fitting or every}
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        raise UserError(f"{'which' if fitting else 'no such'} benchmark? there are: {'; '.join(list(shown)[:5])}{more}")
    for one in fitting if contains else ():
        ref = f"refs/remotes/{one.tree}/{one.branch}"
        git = context.mirror.git
        if git.ok("show-ref", "--verify", "--quiet", ref) and git.ok("merge-base", "--is-ancestor", contains, ref):
            return one
    return fitting[0]


def _targets(context: Context, session: Session) -> Iterator[Target]:
    for tree_name, tree in context.config.trees.items():
        for branch_name, branch in tree.branches.items():
            for configured in branch.jobs:
                for job in context.config.units(configured):
                    row = catalog.job_row(session, job)
                    for kpi in row.kpis:
                        yield Target(kpi.id, kpi.name, row.name, row.group.name, tree_name, branch_name)


def _fits(context: Context, one: Target, wanted: Wanted) -> bool:
    configured = [
        name
        for name in context.config.trees[one.tree].branches[one.branch].jobs
        if any(job.name == one.job for job in context.config.units(name))
    ]
    suites = {one.kpi_name.split(".")[0], *configured}
    return (
        wanted.kpi in {"", one.kpi_name}
        and (not wanted.suite or wanted.suite in suites)
        and (not wanted.job or wanted.job in {one.job, *configured})
        and (not wanted.group or wanted.group in one.group or fnmatchcase(one.group, wanted.group))
        and wanted.tree in {"", one.tree}
        and wanted.branch in {"", one.branch}
    )


def quote(context: Context, wanted: Target, good: str, bad: str) -> Quote:
    """What the search between two commits (40 hex digits) would take. Raises UserError for ends that cannot work."""
    history = commits(context.mirror.git, good, bad)
    with context.database.read() as session:
        kpi = session.get_one(Kpi, wanted.kpi)
        spent = _costs(context, session, wanted, kpi)
        hosts = _hosts(session, kpi.job.group_id)
        measured = set(session.execute(
            select(Commit.sha).join(Build, Build.commit_id == Commit.id).join(Run, Run.build_id == Build.id)
            .where(Run.job_id == kpi.job_id, Run.state == RunState.DONE).distinct()
        ).scalars())  # fmt: skip
        ahead, waiting = _ahead(session, kpi.job.group_id)
    policy = context.config.bisection
    settings = Settings(None, (), policy.confidence, spent, max(1, hosts), policy.budget, seed=0)
    estimate = new_search(settings, Layout(history)).estimate()
    candidates = history.candidates()
    return Quote(
        target=wanted,
        good=good,
        bad=bad,
        commits=len(candidates),
        steps=estimate.builds,
        host_s=estimate.host_s,
        wall_s=estimate.wall_s,
        measured=sum(history.shas[node] in measured for node in candidates),
        ahead=ahead,
        starts_in_s=waiting * (spent.run_s + spent.boot_s) / max(1, hosts),
    )


def _costs(context: Context, session: Session, wanted: Target, kpi: Kpi) -> Costs:
    build = context.config.trees[wanted.tree].branches[wanted.branch].build
    return costs(context, session, kpi.job, context.config.builds[build].recipe(build))


def _hosts(session: Session, group: int) -> int:
    states = [HostState.GOOD, HostState.UNKNOWN]
    query = select(func.count()).where(Host.group_id == group, Host.state.in_(states))
    return int(session.execute(query).scalar_one())


def _ahead(session: Session, group: int) -> tuple[int, int]:
    """What a new request of this host group waits for: requests and bisections, and their runs."""
    states = [state for state in RunState if state.open]
    query = select(Run.request_id, Run.experiment_id).where(
        Run.group_id == group, Run.state.in_(states), Run.purpose <= int(Purpose.REQUEST)
    )
    rows = session.execute(query).all()
    return len(set(rows)), len(rows)


def order_bisection(context: Context, asker: Asker, quoted: Quote, limits: Limits | None) -> tuple[str, str, bool]:
    """Order what was quoted; returns the request (``Q9``), the bisection (``B77``) and whether it is new.

    The same person asking the same again within ten minutes gets the same. Raises UserError beyond the limits.
    """
    wanted = quoted.target
    arguments = {"kpi": wanted.kpi, "tree": wanted.tree, "branch": wanted.branch, "good": quoted.good,
                 "bad": quoted.bad, "host_s": quoted.host_s}  # fmt: skip
    with context.database.write() as session:
        known = admit(context, session, asker, BISECT, arguments, limits)
        if known is not None:
            earlier = select(Bisection.id).filter_by(request_id=known.id)
            return f"Q{known.id}", f"B{session.execute(earlier).scalar_one()}", False
        kpi = session.get_one(Kpi, wanted.kpi)
        request = Request(kind=BISECT, asker=asker.name, arguments=arguments, created=now(session))
        request.state = RequestState.RUNNING
        session.add(request)
        session.flush()
        build = context.config.trees[wanted.tree].branches[wanted.branch].build
        branch = select(Branch.id).join(Tree).where(Tree.name == wanted.tree, Branch.name == wanted.branch)
        bisection = create(
            context,
            session,
            tree=wanted.tree,
            branch_id=session.execute(branch).scalar_one_or_none(),
            ends=(quoted.good, quoted.bad),
            kpi=kpi,
            recipe=context.config.builds[build].recipe(build),
            effect=None,
            history=[],
            automatic=False,
            request_id=request.id,
        )
        request.answer = f"B{bisection.id}"
        log(session, asker, f"bisect {quoted.good}..{quoted.bad}", f"Q{request.id} {request.answer}")
        return f"Q{request.id}", request.answer, True


def quote_more(context: Context, word: str, runs: int) -> More:
    """What ``runs`` more for the undecided commits of a bisection would take. Raises UserError if it has none."""
    with context.database.read() as session:
        return again.offer(context, session, row_of(session, Bisection, word, "B"), runs)


def order_more(context: Context, asker: Asker, more: More, limits: Limits | None) -> tuple[str, bool]:
    """Order them; returns the request (``Q9``) that the bisection is now, and whether it is new.

    Raises UserError as `admit`, and where the bisection has gone on meanwhile.
    """
    arguments: dict[str, object] = {"bisection": more.bisection, "runs": more.runs, "host_s": more.host_s}
    with context.database.write() as session:
        known = admit(context, session, asker, MORE, arguments, limits)
        if known is not None and known.state is RequestState.RUNNING:
            return f"Q{known.id}", False
        row = session.get_one(Bisection, more.bisection, with_for_update=True)
        request = Request(kind=MORE, asker=asker.name, arguments=arguments, created=now(session))
        request.state, request.answer = RequestState.RUNNING, f"B{row.id}"
        session.add(request)
        session.flush()
        if row.request_id is not None:
            before = session.get_one(Request, row.request_id)
            before.answer = f"{before.answer}; it goes on as Q{request.id}"
        row.request_id = request.id
        again.resume(session, row, more)
        log(session, asker, f"retry B{row.id} runs={more.runs}", f"Q{request.id}")
        return f"Q{request.id}", True


def admit(
    context: Context,
    session: Session,
    asker: Asker,
    kind: str,
    arguments: dict[str, object],
    limits: Limits | None,
) -> Request | None:
    """The request of ten minutes ago if this is the same again; None if a new one may be made.

    Holds the person's row, so that two requests of one person are looked at one after the other. ``arguments`` has
    ``host_s``, the estimate. Raises UserError for a person who has as much as they may.
    """
    person = catalog.find_or_add(session, Person, {"name": asker.name}, role="", identities={})
    session.execute(select(Person.id).where(Person.id == person.id).with_for_update())
    time = now(session)
    day_ago = time - context.clock.real(24 * 3600.0)
    mine = session.execute(select(Request).where(Request.asker == asker.name).order_by(Request.id.desc()))
    running, used = 0, 0.0
    for request in mine.scalars():
        live = request.state in {RequestState.OPEN, RequestState.RUNNING}
        alike = request.kind == kind and _meant(request.arguments) == _meant(arguments)
        if alike and request.created > time - SAME_ASK_S and (live or request.state is RequestState.DONE):
            return request
        running += live
        used += float(request.arguments.get("host_s", 0.0)) if request.created > day_ago else 0.0
    if limits is None:
        return None
    if running >= limits.running:
        raise UserError(f"you have {running} requests running, and {limits.running} is the limit; cancel one, or wait")
    estimate = float(str(arguments["host_s"]))
    if used + estimate > limits.daily_host_h * 3600:
        raise UserError(
            f"this takes about {estimate / 3600:.1f} host hours; with {used / 3600:.1f} asked for in the last day "
            f"that is beyond your {limits.daily_host_h:g} a day"
        )
    return None


def _meant(arguments: dict[str, object]) -> dict[str, object]:
    """What makes two requests the same: not what they are thought to cost."""
    return {key: value for key, value in json.loads(json.dumps(arguments)).items() if key != "host_s"}
