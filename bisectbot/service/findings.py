"""What a bisection found, as the report room's frozen record: evidence, run values, comparison table."""

from __future__ import annotations

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, joinedload, selectinload

from bisectbot.bisect import State, Verdict
from bisectbot.config import Config
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe, Job
from bisectbot.report.explain import Traces, explain, touched_functions
from bisectbot.report.model import (
    Check,
    Commit,
    Direction,
    Evidence,
    Explanation,
    Finding,
    Machine,
    Outcome,
    Person,
    Report,
    Side,
    Tree,
)
from bisectbot.report.model import Identity as ReportIdentity
from bisectbot.results.compare import compare
from bisectbot.results.matrix import MatrixSet, RunMatrix
from bisectbot.results.table import Table
from bisectbot.service import catalog
from bisectbot.service.comparison import stats_of
from bisectbot.service.context import Context
from bisectbot.service.search.blame import Blamed
from bisectbot.service.search.verdicts import verification_of
from bisectbot.service.series import kpi_spec
from bisectbot.service.surroundings import Surroundings, surroundings
from bisectbot.source.history import CommitInfo
from bisectbot.store.tables import Artifact, Bisection, Run, Step

BOOT_LOGS = ("dmesg", "kmsg")
COMMAND_LINE = ("cmdline",)
KCONFIG = "config"
"""Of a build: the kernel's configuration."""


def describe(context: Context, session: Session, row: Bisection, blamed: Blamed, message_id: str) -> Report:
    """The report on a bisection's culprit."""
    job = catalog.job_spec(row.job)
    config = context.config
    before, after = _load_runs(session, blamed.before), _load_runs(session, blamed.after)
    sides = (_side(row, blamed.parent, before), _side(row, blamed.commit, after))
    recipe = wire.from_plain(BuildRecipe, row.recipe)
    around = surroundings(session, config, job, recipe)
    finding = _finding(row, job, around, sides, blamed.verdict)
    tree = config.trees.get(row.tree)
    branch = row.branch.name if row.branch is not None else ""
    archive = config.mail.archive_url.rstrip("/")
    commit, parent = _commit(blamed.commit), _commit(blamed.parent)
    matrices = _matrices(context, session, blamed, around, (before, after))
    table = compare(matrices, texts={each.id: each.named for each in (parent, commit)}, always=(finding.stat,))
    return Report(
        commit=commit,
        finding=finding,
        parent=parent,
        tree=Tree(url=tree.url if tree else "", branch=branch, name=row.tree),
        evidence=Evidence(
            parent=sides[0],
            culprit=sides[1],
            probability=blamed.verdict.probability,
            interval=_interval(blamed.verdict, sides[0]),
            checks=_checks(session, row, blamed.verdict),
            suspects=tuple(_commit(info) for info in blamed.suspects),
        ),
        also=_also(session, config, row, recipe),
        notes=_notes(blamed),
        explanation=_explanation(context, session, blamed, (before, after), matrices, table),
        tables=(table,),
        archive=f"{archive}/{message_id.strip('<>')}" if archive else "",
        reproduce=tuple(_reproduce(recipe, job, blamed)),
        identity=ReportIdentity(address=_address(config.mail.sender), home=archive),
    )


def _notes(blamed: Blamed) -> tuple[str, ...]:
    reason = blamed.verdict.reason
    return (*blamed.notes, f"Why the search stopped: {reason}.") if reason else blamed.notes


def _address(sender: str) -> str:
    return sender.rpartition("<")[2].rstrip(">").strip()


def _commit(info: CommitInfo) -> Commit:
    return Commit(info.sha, info.subject, Person(info.author_name, info.author_mail))


def _load_runs(session: Session, ids: tuple[int, ...]) -> list[Run]:
    query = select(Run).where(Run.id.in_(ids)).order_by(Run.finished, Run.id)
    options = (selectinload(Run.samples), joinedload(Run.host), joinedload(Run.boot))
    return list(session.execute(query.options(*options)).scalars())


def _side(row: Bisection, info: CommitInfo, runs: list[Run]) -> Side:
    """The KPI's values by boot; runs without a boot are listed together."""
    boots: dict[int | None, list[float]] = {}
    for run in runs:
        values = [sample.value for sample in run.samples if sample.kpi_id == row.kpi_id]
        boots.setdefault(run.boot_id, []).extend(values)
    booted = any(run.boot_id is not None for run in runs)
    return Side(info.sha, tuple(tuple(values) for values in boots.values()), booted)


def _finding(row: Bisection, job: Job, around: Surroundings, sides: tuple[Side, Side], verdict: Verdict) -> Finding:
    before, after = (_mean(side.values) for side in sides)
    effect = after - before if before is not None and after is not None else (verdict.effect or 0.0)
    percent = 100 * effect / before if before else None
    return _told(row.kpi.name, _direction(effect, row), percent, job, around)


def _interval(verdict: Verdict, parent: Side) -> tuple[float, float] | None:
    """In percent of the parent; none where another commit made a part of the change."""
    base = _mean(parent.values)
    if verdict.interval is None or verdict.share < 1 or not base:
        return None
    low, high = (100 * end / base for end in verdict.interval)
    return low, high


def _told(stat: str, direction: Direction, percent: float | None, job: Job, around: Surroundings) -> Finding:
    return Finding(
        stat=stat,
        direction=direction,
        percent=percent,
        testcase=job.testcase,
        machine=Machine(description=around.machine, group=job.group),
        parameters=job.parameters,
        config=around.kconfig,
        compiler=around.compiler,
        broad=job.broad,
    )


def _mean(values: tuple[float, ...]) -> float | None:
    return sum(values) / len(values) if values else None


def _direction(effect: float, row: Bisection) -> Direction:
    match kpi_spec(row.kpi).better.value:
        case "more":
            return Direction.IMPROVEMENT if effect > 0 else Direction.REGRESSION
        case "less":
            return Direction.REGRESSION if effect > 0 else Direction.IMPROVEMENT
        case _:
            return Direction.CHANGE


def _checks(session: Session, row: Bisection, verdict: Verdict) -> tuple[Check, ...]:
    """What was tried beyond the search, and what was not."""
    steps = session.execute(select(Step).filter_by(bisection_id=row.id).order_by(Step.id)).scalars().all()
    checks = [
        Check(Outcome.CONFIRMED, f"step S{step.id} re-tested before the search: {step.reason}")
        for step in steps
        if step.reason
    ]
    if verdict.state is State.CULPRIT:
        checks.append(Check(Outcome.CONFIRMED, "parent and culprit measured again, in turn, after the search"))
    return (*checks, *verification_of(row).told)


def _also(session: Session, config: Config, row: Bisection, recipe: BuildRecipe) -> tuple[Finding, ...]:
    """What else moved at the same heads."""
    steps = session.execute(select(Step).filter_by(bisection_id=row.id).order_by(Step.id)).scalars().all()
    found = []
    for step in steps:
        kpi = step.series.kpi
        if kpi.id == row.kpi_id:
            continue
        job = catalog.job_spec(kpi.job)
        direction = Direction(step.direction) if step.direction != "unknown" else Direction.CHANGE
        around = surroundings(session, config, job, recipe)
        found.append(_told(kpi.name, direction, step.percent, job, around))
    return tuple(found)


def _matrices(
    context: Context, session: Session, blamed: Blamed, around: Surroundings, runs: tuple[list[Run], list[Run]]
) -> MatrixSet:
    """All stats of the runs of parent and commit."""
    matrices = {
        info.sha: RunMatrix.from_runs([stats_of(session, context.artifacts, run) for run in side])
        for info, side in zip((blamed.parent, blamed.commit), runs, strict=True)
    }
    return MatrixSet(matrices, around.axes)


def _explanation(
    context: Context,
    session: Session,
    blamed: Blamed,
    runs: tuple[list[Run], list[Run]],
    matrices: MatrixSet,
    table: Table,
) -> Explanation:
    """What might explain the change: what booted kernels logged and were told, their stats, and the patch itself."""
    measured = {name for matrix in matrices.matrices.values() for name in matrix.stats}
    parent, culprit = (_traces(context, session, side) for side in runs)
    patch = context.mirror.git.run("show", "--format=", "-U0", blamed.commit.sha)
    return explain(parent, culprit, table, touched_functions(patch), measured)


def _traces(context: Context, session: Session, runs: list[Run]) -> Traces:
    """What the kernels of one side left behind: of each boot what the first of its runs kept."""
    by_boot = {run.boot_id or -run.id: run.id for run in reversed(runs)}

    def kept(*where: ColumnElement[bool]) -> tuple[str, ...]:
        shas = session.execute(select(Artifact.sha256).where(*where).order_by(Artifact.run_id, Artifact.id)).scalars()
        return tuple(context.artifacts.read(sha).decode(errors="replace") for sha in shas)

    def first(texts: tuple[str, ...]) -> str:
        return texts[0] if texts else ""

    of_boots = Artifact.run_id.in_(by_boot.values())
    of_builds = Artifact.build_id.in_({run.build_id for run in runs})
    return Traces(
        boot_logs=kept(of_boots, Artifact.name.in_(BOOT_LOGS)),
        config=first(kept(of_builds, Artifact.name == KCONFIG)),
        command_line=first(kept(of_boots, Artifact.name.in_(COMMAND_LINE))),
    )


def _reproduce(recipe: BuildRecipe, job: Job, blamed: Blamed) -> list[str]:
    """How to see it for oneself."""
    lines = [f"git checkout {blamed.commit.sha[:12]}   # or {blamed.parent.sha[:12]}, its parent"]
    if recipe.command:
        lines.append(recipe.command)
    if job.command:
        lines.append(job.command)
    return lines
