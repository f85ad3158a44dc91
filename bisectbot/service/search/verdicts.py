"""What a bisection comes to: what the search says, and what the checks after it made of that."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bisectbot.bisect import State, Verdict
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.report.model import Check, Outcome
from bisectbot.service.search.candidates import Layout
from bisectbot.source.replay import Kind
from bisectbot.store.tables import Bisection, BisectionState

REVERT, ALIGNMENT, GROUP = "revert", "alignment", "group"
ITS_OWN = "what the rebuild itself brought: merges and their fix-ups"


@dataclass(frozen=True)
class Proof:
    """Two commits (40 digits) compared after the search, as a search with one candidate: ``good`` and ``bad``.

    ``job`` and ``kpi`` are rows. ``effect`` is bad minus good as the search claims it, None where it says nothing of
    it. ``check`` is how it went, once it is over.
    """

    name: str
    good: str
    bad: str
    recipe: BuildRecipe
    job: int
    kpi: int
    effect: float | None
    where: str = ""
    check: Check | None = None


@dataclass(frozen=True)
class Verification:
    """What was tried after the search. ``checks`` are those that needed no run.

    ``state`` is what the verdict becomes (None: as the search says), ``reason`` its words, ``hold`` why a person must
    look before anybody is told.
    """

    proofs: tuple[Proof, ...] = ()
    checks: tuple[Check, ...] = ()
    state: State | None = None
    reason: str = ""
    hold: str = ""

    @property
    def told(self) -> tuple[Check, ...]:
        """Every check that is over."""
        return (*self.checks, *(proof.check for proof in self.proofs if proof.check is not None))

    @property
    def over(self) -> bool:
        return all(proof.check is not None for proof in self.proofs)


def search_verdict(row: Bisection) -> Verdict | None:
    """What the search said, None while it runs."""
    return wire.from_plain(Verdict, row.verdict) if row.verdict else None


def verification_of(row: Bisection) -> Verification:
    """What was tried after the search; nothing yet, or nothing at all, is an empty one."""
    return wire.from_plain(Verification, row.verification) if row.verification else Verification()


def verdict_of(row: Bisection) -> Verdict | None:
    """What the bisection came to; None while it is not over, and where it has no verdict."""
    found = search_verdict(row)
    if found is None or row.state is BisectionState.RUNNING:
        return None
    return after(found, verification_of(row))


def after(found: Verdict, told: Verification) -> Verdict:
    """A search's verdict as the checks after it leave it. Nobody is the culprit who is not called so."""
    state = told.state or found.state
    culprit = found.culprit if state in {State.CULPRIT, State.CHANGE_ON_GOOD_SIDE} else None
    return replace(found, state=state, culprit=culprit, reason=told.reason or found.reason)


def words(verdict: Verdict, layout: Layout) -> tuple[State | None, str]:
    """What the history adds to a search's verdict: another state (or None), and its reason in full."""
    if verdict.state is State.CULPRIT_SET:
        return _of_set(verdict, layout)
    if verdict.culprit is None:
        return None, verdict.reason
    origin, reason = layout.origin(verdict.culprit), verdict.reason
    if origin is not None and verdict.state is State.CULPRIT:
        return _of_line(origin.kind, len(origin.shas), origin.tree, reason)
    if not layout.history.straight:
        if verdict.state is State.CHANGE_ON_GOOD_SIDE:
            return None, f"{reason}; good is no ancestor of bad, and the search turned round: the change is on its side"
        return None, f"{reason}; good is no ancestor of bad, their merge base was measured first"
    return None, reason


def _of_set(verdict: Verdict, layout: Layout) -> tuple[State | None, str]:
    """Steps that only the rebuild wrote are measured like any other, but it takes a commit to be blamed."""
    origins = [layout.origin(node) for node in verdict.suspects]
    if not any(layout.proposed(node) for node in verdict.suspects):
        return State.NO_SINGLE_CULPRIT, f"no single change made the step but {ITS_OWN}; {verdict.reason}"
    if any(origin is not None and origin.kind is Kind.REST for origin in origins):
        return None, f"{verdict.reason}; it may as well be {ITS_OWN}"
    return None, verdict.reason


def _of_line(kind: Kind, changes: int, tree: str, reason: str) -> tuple[State | None, str]:
    where = f" of {tree}" if tree else ""
    if kind is Kind.REVERT:
        lost = f"the search turned round: the rebuilt branch lost a change{where} that good had"
        return State.CHANGE_ON_GOOD_SIDE, f"{lost}, and nothing new made the step; {reason}"
    if kind is Kind.AMEND:
        return None, f"the new version of a change{where} made the step, the old one did not; {reason}"
    if changes == 0:
        return (
            State.NO_SINGLE_CULPRIT,
            f"no single change made the step but {ITS_OWN}; {reason}",
        )
    if kind is Kind.REST:
        held = f"{changes} change{'s' * (changes > 1)}{where} applied only together with {ITS_OWN}"
        return State.CULPRIT_SET, f"{held}: which of them made the step cannot be told; {reason}"
    if changes > 1:
        return None, f"{changes} changes{where} that apply only together made the step; {reason}"
    return None, reason


def concluded(found: Verdict, told: Verification) -> Verification:
    """What the checks come to. One that contradicts keeps the verdict from those whom it would name."""
    refuted = {proof.name: proof.check.what for proof in told.proofs if proof.check and _refuted(proof.check)}
    if REVERT in refuted:
        reason = f"the search names a commit with {found.probability:.1%}, but {refuted[REVERT]}: no culprit is told"
        return replace(told, state=State.NO_SINGLE_CULPRIT, reason=reason)
    if ALIGNMENT in refuted:
        hold = f"an effect of where the code lies, not of what it does: {refuted[ALIGNMENT]}"
        return replace(told, reason=f"{told.reason or found.reason}; {hold}", hold=hold)
    return told


def _refuted(check: Check) -> bool:
    return check.outcome is Outcome.REFUTED
