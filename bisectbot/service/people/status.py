"""What the service is doing, as frozen answers for the command line, the web and chat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from bisectbot.errors import BisectbotError, UserError
from bisectbot.mail.message import Kind
from bisectbot.service.care import canary
from bisectbot.service.claims import host_lease
from bisectbot.service.commands import number
from bisectbot.service.context import Context
from bisectbot.service.search.searches import Loaded, load
from bisectbot.service.search.verdicts import verdict_of, verification_of
from bisectbot.source.history import facts
from bisectbot.store import leases
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Branch,
    Build,
    BuildState,
    Commit,
    Head,
    HeadState,
    Host,
    Outbox,
    Report,
    Run,
    RunState,
    Step,
    StepState,
    Tree,
)

NEWEST = 10
"""How many of the newest bisections, steps and reports an overview shows."""


@dataclass(frozen=True)
class TreeStatus:
    name: str
    url: str
    fetched: float
    """Seconds since 1970 UTC; 0 never."""
    problem: str
    heads: int


@dataclass(frozen=True)
class HostStatus:
    name: str
    group: str
    state: str
    reason: str
    silent_s: float | None
    """Real seconds since its worker spoke; None if it never did."""
    attached: bool
    """Whether a worker holds it now."""
    run: str
    """What it runs now, ``N12``; "" if nothing."""
    waiting: int
    """Runs that wait for its group."""
    alarms: int = 0
    nights: int = 0
    """So many alarms in so many sessions of the canary's commit against itself, in 30 days: all of them false."""


@dataclass(frozen=True)
class StepStatus:
    id: str
    series: str
    head: int
    commit: str
    percent: float | None
    probability: float
    state: str
    reason: str
    bisection: str


@dataclass(frozen=True)
class BisectionLine:
    id: str
    tree: str
    kpi: str
    job: str
    group: str
    good: str
    bad: str
    state: str
    verdict: str
    culprit: str
    probability: float | None
    reason: str


@dataclass(frozen=True)
class ReportLine:
    id: str
    subject: str
    state: str
    reason: str
    mail: str


@dataclass(frozen=True)
class Overview:
    """The whole service at a glance."""

    leader: str
    trees: tuple[TreeStatus, ...]
    hosts: tuple[HostStatus, ...]
    heads_waiting: int
    builds: dict[str, int]
    runs: dict[str, int]
    steps: tuple[StepStatus, ...]
    bisections: tuple[BisectionLine, ...]
    reports: tuple[ReportLine, ...]


@dataclass(frozen=True)
class ExperimentLine:
    """One experiment: which commit, what came back (KPI units), what it cost (farm seconds of the host)."""

    number: int
    commit: str
    subject: str
    state: str
    reason: str
    values: tuple[float, ...]
    host: str
    host_s: float


@dataclass(frozen=True)
class CandidateLine:
    commit: str
    subject: str
    probability: float


@dataclass(frozen=True)
class BisectionStatus:
    """A bisection in full. ``ends_in_s`` is the estimate of what is still to come, farm seconds of the clock."""

    line: BisectionLine
    unit: str
    candidates: int
    experiments: tuple[ExperimentLine, ...]
    likeliest: tuple[CandidateLine, ...]
    host_s: float
    runs_left: int
    ends_in_s: float | None
    checks: tuple[str, ...] = ()
    """What was tried after the search: the outcome of each, in words."""


def overview(context: Context) -> Overview:
    """Trees, hosts, what is open, the newest steps, bisections and reports."""
    with context.database.read() as session:
        open_builds = [state for state in BuildState if state.open]
        builds = select(Build.state, func.count()).where(Build.state.in_(open_builds)).group_by(Build.state)
        open_runs = [state for state in RunState if state.open]
        runs = select(Run.state, func.count()).where(Run.state.in_(open_runs)).group_by(Run.state)
        waiting = select(func.count()).where(Head.state == HeadState.NEW)
        newest = select(Bisection).order_by(Bisection.id.desc()).limit(NEWEST)
        return Overview(
            leader=leases.holder(session, "leader") or "",
            trees=_trees(session),
            hosts=_hosts(session, context.clock.scale),
            heads_waiting=int(session.execute(waiting).scalar_one()),
            builds={state.value: count for state, count in session.execute(builds)},
            runs={state.value: count for state, count in session.execute(runs)},
            steps=_steps(session),
            bisections=tuple(_line(row) for row in session.execute(newest).scalars()),
            reports=_reports(session),
        )


def hosts(context: Context) -> list[HostStatus]:
    """Every host: its state, what it does."""
    with context.database.read() as session:
        return list(_hosts(session, context.clock.scale))


def _trees(session: Session) -> tuple[TreeStatus, ...]:
    counted = select(Branch.tree_id, func.count(Head.id)).join(Branch, Head.branch_id == Branch.id)
    heads = dict(session.execute(counted.group_by(Branch.tree_id)).all())
    trees = session.execute(select(Tree).order_by(Tree.name)).scalars()
    return tuple(TreeStatus(t.name, t.url, t.fetched, t.problem, heads.get(t.id, 0)) for t in trees)


def _hosts(session: Session, scale: float) -> tuple[HostStatus, ...]:
    time = now(session)
    queued = select(Run.group_id, func.count()).where(Run.state == RunState.QUEUED).group_by(Run.group_id)
    waiting = dict(session.execute(queued).all())
    working = select(Run.host_id, Run.id).where(Run.state.in_([RunState.LEASED, RunState.RUNNING]))
    running = dict(session.execute(working).all())
    return tuple(
        HostStatus(
            name=host.name,
            group=host.group.name,
            state=host.state.value,
            reason=host.reason,
            silent_s=time - host.seen if host.seen else None,
            attached=leases.holder(session, host_lease(host)) is not None,
            run=f"N{running[host.id]}" if host.id in running else "",
            waiting=waiting.get(host.group_id, 0),
            alarms=known.alarms,
            nights=known.nights,
        )
        for host, known in (
            (host, canary.record(session, host, scale))
            for host in session.execute(select(Host).order_by(Host.name)).scalars()
        )
    )


def _steps(session: Session) -> tuple[StepStatus, ...]:
    query = (
        select(Step)
        .where(Step.state != StepState.WITHDRAWN)
        .order_by(Step.id.desc())
        .limit(NEWEST)
        .options(joinedload(Step.head).joinedload(Head.commit), joinedload(Step.series))
    )
    return tuple(
        StepStatus(
            id=f"S{step.id}",
            series=f"{step.series.kpi.name} on {step.series.kpi.job.group.name}",
            head=step.head.number,
            commit=step.head.commit.sha,
            percent=step.percent,
            probability=step.probability,
            state=step.state.value,
            reason=step.reason,
            bisection=f"B{step.bisection_id}" if step.bisection_id else "",
        )
        for step in session.execute(query).scalars()
    )


def _line(row: Bisection, culprit: str = "") -> BisectionLine:
    verdict = verdict_of(row)
    return BisectionLine(
        id=f"B{row.id}",
        tree=row.tree,
        kpi=row.kpi.name,
        job=row.job.name,
        group=row.job.group.name,
        good=row.good,
        bad=row.bad,
        state=row.state.value,
        verdict=verdict.state.value if verdict else "",
        culprit=culprit,
        probability=verdict.probability if verdict else None,
        reason=row.reason,
    )


def _reports(session: Session) -> tuple[ReportLine, ...]:
    rows = session.execute(select(Report).order_by(Report.id.desc()).limit(NEWEST)).scalars().all()
    posted = select(Outbox.report_id, Outbox.state).where(
        Outbox.report_id.in_([row.id for row in rows]), Outbox.kind == Kind.REPORT.value
    )
    mails = dict(session.execute(posted).all())
    return tuple(
        ReportLine(
            id=f"R{row.id}",
            subject=row.subject,
            state=row.state.value,
            reason=row.reason,
            mail=mails[row.id].value if row.id in mails else "",
        )
        for row in rows
    )


def bisection_status(context: Context, word: str) -> BisectionStatus:
    """One bisection, recomputed from its records. Raises UserError if there is none of that id."""
    with context.database.read() as session:
        row = session.get(Bisection, number(word, "B"))
        if row is None:
            raise UserError(f"there is no bisection {word.upper()}; see `bisectbot status`")
        if not row.history:
            return BisectionStatus(_line(row), row.kpi.unit, 0, (), (), 0.0, 0, None)
        loaded = load(context, session, row)
        verdict = verdict_of(row)
        name = loaded.layout.known_as
        culprit = name(verdict.culprit) if verdict and verdict.culprit is not None else ""
        estimate = loaded.search.estimate() if row.state is BisectionState.RUNNING else None
        ranking = sorted(loaded.search.posterior(), key=lambda pair: -pair[1])[:3]
        shown = [*(i.experiment.sha for i in loaded.experiments), *(name(node) for node, _ in ranking)]
        subjects = _subjects(context, session, shown)
        return BisectionStatus(
            line=_line(row, culprit),
            unit=row.kpi.unit,
            candidates=len(loaded.history.candidates()),
            experiments=tuple(_experiments(row, loaded, subjects)),
            likeliest=tuple(CandidateLine(name(node), subjects.get(name(node), ""), p) for node, p in ranking),
            host_s=sum(run.host_s for run in loaded.observed),
            runs_left=estimate.runs if estimate else 0,
            ends_in_s=estimate.wall_s if estimate else None,
            checks=tuple(f"{check.outcome}: {check.what}" for check in verification_of(row).told),
        )


def _subjects(context: Context, session: Session, shas: list[str]) -> dict[str, str]:
    """From the database, and for commits that nothing was measured of yet from the mirror, if it is on this machine."""
    query = select(Commit.sha, Commit.subject).where(Commit.sha.in_(shas))
    known: dict[str, str] = dict(session.execute(query).all())
    try:
        return known | {info.sha: info.subject for info in facts(context.mirror.git, sorted(set(shas) - {"", *known}))}
    except BisectbotError:
        return known


def _experiments(row: Bisection, loaded: Loaded, subjects: dict[str, str]) -> Iterator[ExperimentLine]:
    runs: dict[int | None, list[Run]] = {}
    for run in loaded.observed:
        runs.setdefault(run.experiment_id, []).append(run)
    for item in loaded.experiments:
        experiment = item.experiment
        mine = runs.get(experiment.id, [])
        yield ExperimentLine(
            number=experiment.number,
            commit=experiment.sha,
            subject=subjects.get(experiment.sha, ""),
            state=item.state.value,
            reason=item.reason,
            values=tuple(sample.value for run in mine for sample in run.samples if sample.kpi_id == row.kpi_id),
            host=next((run.host.name for run in mine if run.host), ""),
            host_s=sum(run.host_s for run in mine),
        )


def runs_done(context: Context) -> int:
    """How many runs have given a result."""
    with context.database.read() as session:
        return int(session.execute(select(func.count()).where(Run.state == RunState.DONE)).scalar_one())
