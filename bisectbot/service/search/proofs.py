"""What is tried once a search has named a commit: laid out here, measured in `verify`, judged here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from bisectbot.bisect import State, Verdict
from bisectbot.config import VerifyPolicy
from bisectbot.errors import Untestable
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.report.model import Check, Outcome
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.search.candidates import Layout
from bisectbot.service.search.experiments import idle_hosts
from bisectbot.service.search.verdicts import ALIGNMENT, GROUP, REVERT, Proof
from bisectbot.source.git import Git
from bisectbot.source.reverted import reapplied, reverted
from bisectbot.store.tables import Bisection

ALIGNED = "aligned"


@dataclass(frozen=True)
class Named:
    """The commit that a search names and the one below it, as they were measured; ``bad`` is what people know it by."""

    culprit: str
    parent: str
    bad: str
    last: bool  # the culprit is the bad end itself
    effect: float | None  # of the culprit alone, in KPI units
    percent: float | None


def named(verdict: Verdict, layout: Layout, bad: str) -> Named:
    """Gather it from a verdict with a culprit."""
    history = layout.history
    assert verdict.culprit is not None, "a verdict that names a commit"
    parents = history.parents[verdict.culprit]
    effect = verdict.effect * verdict.share if verdict.effect is not None else None
    level = next((one.level for one in verdict.evidence if one.commit == history.good), None)
    return Named(
        culprit=history.shas[verdict.culprit],
        parent=history.shas[parents[0] if parents else history.good],
        bad=bad,
        last=verdict.culprit == history.bad,
        effect=effect,
        percent=100 * effect / level if effect is not None and level else None,
    )


def revert_proof(git: Git, policy: VerifyPolicy, found: Named, row: Bisection, recipe: BuildRecipe) -> Proof | Check:
    """Take the culprit back on top of bad, and put it there again; a `Check` where that needs no run."""
    if not policy.revert:
        return Check(Outcome.NOT_DONE, "taking the commit back on top of the bad end")
    if found.last:
        return Check(Outcome.CONFIRMED, "the commit is the bad end itself: taking it back gives its parent")
    try:
        without = reverted(git, found.culprit, found.bad)
        again = reapplied(git, found.culprit, without) if policy.reapply else found.bad
    except Untestable as why:
        return Check(Outcome.NOT_DONE, f"taking the commit back on top of the bad end: {why}")
    return Proof(REVERT, without, again, recipe, row.job_id, row.kpi_id, found.effect)


def alignment_proof(policy: VerifyPolicy, found: Named, row: Bisection, recipe: BuildRecipe) -> Proof | Check | None:
    """Build parent and culprit so that no code moves; None where the effect is too large for that to matter."""
    if found.percent is None or abs(found.percent) >= policy.alignment_below:
        return None
    aligned = aligned_recipe(policy, recipe)
    if aligned is None:
        return Check(Outcome.NOT_DONE, "building both with forced alignment of functions: not configured")
    return Proof(ALIGNMENT, found.parent, found.culprit, aligned, row.job_id, row.kpi_id, found.effect)


def aligned_recipe(policy: VerifyPolicy, recipe: BuildRecipe) -> BuildRecipe | None:
    """The same build with forced alignment: a kernel's own variant, else what the policy adds to its environment."""
    if recipe.kernel is not None:
        return replace(recipe, kernel=replace(recipe.kernel, variant=ALIGNED))
    if not policy.alignment:
        return None
    return replace(recipe, environment=tuple(sorted({**dict(recipe.environment), **policy.alignment}.items())))


def group_proof(context: Context, session: Session, found: Named, row: Bisection, recipe: BuildRecipe) -> Proof | None:
    """The same job on another host group that has nothing to do; None if there is none. In a writing session."""
    mine = catalog.job_spec(row.job)
    for name in context.config.jobs:
        units = context.config.units(name)
        if not any(unit.name == mine.name and unit.group == mine.group for unit in units):
            continue
        for unit in units:
            if unit.group == mine.group or replace(unit, group=mine.group, params=mine.params) != mine:
                continue
            other = catalog.job_row(session, unit)
            kpi = next((kpi for kpi in other.kpis if kpi.name == row.kpi.name), None)
            if kpi is not None and idle_hosts(session, other.group_id):
                return Proof(GROUP, found.parent, found.culprit, recipe, other.id, kpi.id, None, unit.group)
    return None


WHAT = {
    REVERT: ("taken back on top of the bad end", "without it", "with it there again"),
    ALIGNMENT: ("built with forced alignment of functions", "parent", "commit"),
    GROUP: ("measured on another host group", "parent", "commit"),
}


def judge(proof: Proof, verdict: Verdict, sides: tuple[Sequence[float], Sequence[float]], wrong: str) -> Check | None:
    """How a proof went, None while it goes on. ``sides`` are the values of good and bad, ``wrong`` is why one of them
    cannot be measured, "" if it can."""
    what, before, after = WHAT[proof.name]
    place = f" ({proof.where})" if proof.where else ""
    if wrong:
        return Check(Outcome.UNDECIDED, f"{what}{place}: {wrong}")
    if verdict.state is State.RUNNING:
        return None
    runs = "; ".join(_level(name, values) for name, values in zip((before, after), sides, strict=True))
    text = f"{what}{place}: {runs}"
    moved = verdict.effect is not None and (proof.effect is None or verdict.effect * proof.effect > 0)
    match verdict.state:
        case State.CULPRIT if moved:
            return Check(Outcome.CONFIRMED, text)
        case State.CULPRIT:
            return Check(Outcome.REFUTED, f"{text}, which is the other way round")
        case State.NOT_REPRODUCED if proof.name == GROUP:
            return Check(Outcome.UNDECIDED, f"{text}: it is not seen there")
        case State.NOT_REPRODUCED:
            return Check(Outcome.REFUTED, f"{text}: no difference")
        case _:
            return Check(Outcome.UNDECIDED, f"{text}: {verdict.reason}")


def _level(name: str, values: Sequence[float]) -> str:
    if not values:
        return f"{name} no runs"
    return f"{name} {sum(values) / len(values):.6g} ({len(values)} run{'s' * (len(values) != 1)})"


def parts(laid_out: Sequence[Proof | Check | None]) -> tuple[tuple[Proof, ...], tuple[Check, ...]]:
    """What is to be measured, and what is settled without."""
    proofs = tuple(one for one in laid_out if isinstance(one, Proof))
    return proofs, tuple(one for one in laid_out if isinstance(one, Check))
