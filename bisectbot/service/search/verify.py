"""After the search has named a commit: it is taken back, put there again, built with forced alignment, tried elsewhere.

Each proof compares two commits, which is a search with one candidate: the same engine plans its boots, in turn on
both sides, and says with what certainty they differ.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.bisect import CommitGraph, Search, State, Verdict
from bisectbot.bisect import Session as Boot
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.search.experiments import Wanted, idle_hosts, record
from bisectbot.service.search.proofs import alignment_proof, group_proof, judge, named, parts, revert_proof
from bisectbot.service.search.searches import (
    ENGINE,
    Epochs,
    Known,
    Loaded,
    Settings,
    close,
    experiments_of,
    lost_in_a_row,
    tell_run,
)
from bisectbot.service.search.verdicts import Proof, Verification, concluded, search_verdict, verification_of, words
from bisectbot.source.content import contents
from bisectbot.source.history import Change, CommitInfo, changes, facts
from bisectbot.store.tables import Bisection, Commit, ExperimentState, Job

STAGE = "verify"
LOST = 3
"""So many experiments of a proof without any result end it, undecided."""


def begin(context: Context, bisection: int, loaded: Loaded, verdict: Verdict) -> Verification:
    """Store what the search said, and lay out what is tried next; nothing is, where nobody was named."""
    state, reason = words(verdict, loaded.layout)
    told = Verification(state=state, reason=reason)
    commits: dict[str, tuple[CommitInfo, Change, str]] = {}
    if verdict.state is State.CULPRIT and state is None:
        told = _laid_out(context, bisection, loaded, verdict, told)
        commits = _facts(context, told)
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        for found in commits.values():
            catalog.commit_row(session, *found)
        row.verdict, row.engine, row.verification = wire.to_plain(verdict), ENGINE, wire.to_plain(told)
        if told.proofs:
            tried = ", ".join(proof.name for proof in told.proofs)
            row.stage, row.reason = STAGE, f"a commit is named with {verdict.probability:.1%}; being checked: {tried}"
    return told


def _laid_out(context: Context, bisection: int, loaded: Loaded, verdict: Verdict, told: Verification) -> Verification:
    policy = context.config.bisection.verify
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        found, recipe = named(verdict, loaded.layout, row.bad), wire.from_plain(BuildRecipe, row.recipe)
        elsewhere = group_proof(context, session, found, row, recipe) if policy.second_group else None
        session.flush()
    proofs, checks = parts(
        [
            revert_proof(context.mirror.git, policy, found, row, recipe),
            alignment_proof(policy, found, row, recipe),
            elsewhere,
        ]
    )
    return replace(told, proofs=proofs, checks=checks)


def _facts(context: Context, told: Verification) -> dict[str, tuple[CommitInfo, Change, str]]:
    git = context.mirror.git
    infos = facts(git, sorted({sha for proof in told.proofs for sha in (proof.good, proof.bad)}))
    built_from = contents(git, infos)
    return {
        info.sha: (info, change, built_from[info.sha]) for info, change in zip(infos, changes(git, infos), strict=True)
    }


def advance_proofs(context: Context, bisection: int) -> Verification:
    """Take each proof as far as it goes now; what is over has its check."""
    with context.database.write() as session:
        row = session.get_one(Bisection, bisection)
        told = verification_of(row)
        taken: set[int] = set()
        proofs = []
        for number, proof in enumerate(told.proofs):
            proofs.append(proof if proof.check else _advance(context, session, row, proof, number, taken))
        told = replace(told, proofs=tuple(proofs))
        verdict = search_verdict(row)
        if told.over and verdict is not None:
            told = concluded(verdict, told)
        row.verification = wire.to_plain(told)
    return told


def _advance(context: Context, session: Session, row: Bisection, proof: Proof, number: int, taken: set[int]) -> Proof:
    """One proof, one step. Proofs of one host group take turns; ``taken`` are the groups that have one."""
    known, runs = experiments_of(session, row, proof.name)
    close(known)
    settings = wire.from_plain(Settings, row.settings)
    search = Search(
        CommitGraph.linear(2),
        [0],
        1,
        effect=proof.effect,
        history=[Boot(host, boot, values, at) for host, boot, values, at in settings.history],
        confidence=settings.confidence,
        costs=settings.costs,
        budget_s=context.config.bisection.verify.budget,
        seed=settings.seed + number + 1,
    )
    sides: tuple[list[float], list[float]] = ([], [])
    nodes, keys = {item.experiment.id: int(item.experiment.nodes[0]) for item in known}, Epochs(runs)
    for run in runs:
        node = nodes[run.experiment_id or 0]
        value = tell_run(search, node, run, proof.kpi, keys)
        if value is not None:
            sides[node].append(value)
    check = judge(proof, search.verdict(), sides, _wrong(known, settings.since))
    if check is not None:
        return replace(proof, check=check)
    job = session.get_one(Job, proof.job)
    pending = [item.planned for item in known if item.state is ExperimentState.PENDING]
    if job.group_id not in taken and (idle := idle_hosts(session, job.group_id)):
        for planned in search.plan(idle, pending=pending):
            sha = (proof.good, proof.bad)[int(planned.commit)]  # type: ignore[arg-type]  # of two, no merge is made
            commit = session.execute(select(Commit).where(Commit.sha == sha)).scalar_one()
            record(session, row, planned, Wanted(commit, proof.recipe, job, proof.name), {"check": proof.name})
    taken.add(job.group_id)
    return proof


def _wrong(known: tuple[Known, ...], since: int) -> str:
    """Why a proof cannot go on, "" if it can."""
    skipped = next((item.reason for item in known if item.state is ExperimentState.SKIPPED), "")
    if skipped:
        return skipped
    return "the machinery gave no result" if lost_in_a_row(known, since) >= LOST else ""
