"""A suspected step is measured again at its two heads, as little as decides it, before a bisection may start.

Only boots made since the alarm count: those that raised it were selected and would confirm themselves.
"""

from __future__ import annotations

from itertools import pairwise

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.detect import Boot as FreshBoot
from bisectbot.detect import Outcome, Retest, retest
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service.context import Context
from bisectbot.service.detect import withdraw
from bisectbot.service.plan import Why, want_build, want_runs
from bisectbot.store.tables import (
    Branch,
    Build,
    BuildState,
    Head,
    Purpose,
    Run,
    RunState,
    Sample,
    Series,
    Step,
    StepState,
    Tree,
)

log = structlog.get_logger()

FALSE = 0.01
"""How often a step that is none may be called real, where one was as likely as not; a weaker suspicion gets less."""


def suspect(context: Context) -> int:
    """Take every suspected step one move further; returns how many were decided."""
    with context.database.read() as session:
        steps = list(session.execute(select(Step.id).where(Step.state == StepState.SUSPECTED)).scalars())
    decided = 0
    for step in steps:
        with context.database.write() as session:
            decided += _move(context, session, session.get_one(Step, step))
    return decided


def _odds(step: Step) -> float:
    """How much likelier than not the step was before it was measured again."""
    return step.probability / max(1 - step.probability, 1e-3)


def _move(context: Context, session: Session, step: Step) -> bool:
    if step.state is not StepState.SUSPECTED or _open(session, step):
        return False
    recipe = _recipe(context, session, step)
    if recipe is None:
        withdraw(session, step, "its branch is no longer watched")
        return True
    sides = [_boots(session, step, head) for head in (step.parent_head_id, step.head_id)]
    if not any(sides) and not _possible(session, step, recipe):
        withdraw(session, step, "its heads are all the same build", StepState.REFUTED)
        return True
    effect = step.new_level - step.old_level
    answer = retest(sides[0], sides[1], effect=effect, noise=step.noise, false=FALSE * min(1.0, _odds(step)))
    match answer.outcome:
        case Outcome.REAL:
            step.state = StepState.REAL
            step.reason = f"{len(sides[0])} + {len(sides[1])} runs after the alarm agree"
            log.info("step is real", step=step.id, effect=answer.effect, runs=[len(side) for side in sides])
            return True
        case Outcome.NOT_REAL:
            why = f"{len(sides[0])} + {len(sides[1])} runs after the alarm do not show it"
            withdraw(session, step, why, StepState.REFUTED)
            return True
        case Outcome.MORE:
            return _ask(session, step, answer, recipe)


def _open(session: Session, step: Step) -> bool:
    states = [state for state in RunState if state.open]
    query = select(Run.id).where(Run.step_id == step.id, Run.state.in_(states)).limit(1)
    return session.execute(query).first() is not None


def _boots(session: Session, step: Step, head: int) -> list[FreshBoot]:
    """The boots of a head's build that were made for this step; a run without a boot is one of its own."""
    query = (
        select(Run, Sample.value)
        .join(Sample, Sample.run_id == Run.id)
        .join(Build, Build.id == Run.build_id)
        .join(Head, Head.commit_id == Build.commit_id)
        .where(
            Head.id == head,
            Run.step_id == step.id,
            Run.state == RunState.DONE,
            Sample.kpi_id == step.series.kpi_id,
        )
        .order_by(Run.finished, Run.id)
    )
    found: dict[tuple[str, str], list[float]] = {}
    for run, value in session.execute(query):
        key = (run.host.name if run.host else "", str(run.boot_id or f"run {run.id}"))
        found.setdefault(key, []).append(value)
    return [FreshBoot(host, boot, values) for (host, boot), values in found.items()]


def _recipe(context: Context, session: Session, step: Step) -> BuildRecipe | None:
    """How the heads of the step's branch are built; None if it is no longer watched."""
    branch = session.get_one(Branch, session.get_one(Series, step.series_id).branch_id)
    tree = context.config.trees.get(session.get_one(Tree, branch.tree_id).name)
    spec = tree.branches.get(branch.name) if tree else None
    return context.config.builds[spec.build].recipe(spec.build) if spec else None


def _possible(session: Session, step: Step, recipe: BuildRecipe) -> bool:
    """Whether anything that is built changes where the step may lie. Where it was thought to be nothing does, it moves
    to the nearest head at which something does."""
    branch = session.get_one(Series, step.series_id).branch_id
    parent = session.get_one(Head, step.parent_head_id).number
    query = (
        select(Head.number, Head.id, Build.signature)
        .join(Build, Build.commit_id == Head.commit_id)
        .where(
            Head.branch_id == branch,
            Head.number.between(min(parent, step.first - 1), step.last),
            Build.recipe_digest == recipe.digest(),
            Build.state == BuildState.READY,
        )
        .order_by(Head.number)
    )
    heads = session.execute(query).all()
    changing = [(one, two) for one, two in pairwise(heads) if not two.signature or one.signature != two.signature]
    if not changing:
        return len(heads) < 2
    thought = session.get_one(Head, step.head_id).number
    before, after = min(changing, key=lambda pair: abs(pair[1].number - thought))
    step.parent_head_id, step.head_id = before.id, after.id
    return True


def _ask(session: Session, step: Step, answer: Retest, recipe: BuildRecipe) -> bool:
    """Plan the boots that the re-test asks for, alternating between the two heads."""
    series = session.get_one(Series, step.series_id)
    why = Why(Purpose.RETEST, branch_id=series.branch_id, step_id=step.id)
    left = {step.parent_head_id: answer.more_before, step.head_id: answer.more_after}
    planned = 0
    while any(left.values()):
        for head_id, count in left.items():
            if count == 0:
                continue
            left[head_id] -= 1
            build = want_build(session, session.get_one(Head, head_id).commit_id, recipe, Purpose.RETEST)
            planned += len(want_runs(session, build, series.kpi.job, 1, why, fresh_boot=True))
    if planned == 0:
        withdraw(session, step, "its two heads can no longer be measured")
    return planned == 0
