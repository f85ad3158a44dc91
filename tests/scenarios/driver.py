"""One bisection from end to end: history from git, plans from the search, measurements from the lab.

What the service does for years, in one loop. `Rule` are the rules that keep it from blaming the wrong commit; a
scenario is shown to need its own by a run without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import count
from typing import Any

from bisectbot.bisect import CommitGraph, Costs, Experiment, Search, State, Verdict
from bisectbot.bisect.terms import Commit
from bisectbot.errors import Untestable
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.report.model import Outcome as Told
from bisectbot.service.search.proofs import judge
from bisectbot.service.search.verdicts import ALIGNMENT, REVERT, Proof, Verification, after, concluded
from bisectbot.source.git import Git
from bisectbot.source.history import changes, commits, facts
from bisectbot.source.merged import merged
from bisectbot.source.replay import Kind, replay
from bisectbot.source.reverted import reapplied, reverted
from tests.scenarios.lab import BOOT, RUN, Lab, Lost
from tests.scenarios.naive import Naive
from tests.scenarios.world import Image

RECIPE = BuildRecipe("any", "command")
LIMIT = 400  # experiments; no scenario comes near


class Rule(Enum):
    """What protects. Without it: the search that believes every value, a zero for a failure, and so on."""

    NOISE = "a search that knows what noise is"
    DRIFT = "a level is compared with others of the same hours"  # without: each commit ten times, one after the other
    ENDS = "both ends are measured before anything is believed"
    SKIP = "what does not build or boot says nothing"
    TROUBLE = "trouble of a host is no result"
    KERNEL = "a run under another kernel than the wanted one is no result"
    ONCE = "a result counts once, however often it arrives"
    EPOCHS = "another environment is another host"
    BOOTS = "the runs of one boot share its luck"  # without: ten runs of one boot are ten
    IMAGES = "equal images are in one state"
    MERGED = "a commit that lacks what good has is measured together with good"
    REPLAY = "two days of a rebuilt branch are compared along the replay line"
    CHANGES = "results belong to what a commit does, not to its id"
    KEPT = "heads are kept under refs of our own"
    REVERT = "who is named is taken back on top of the bad end"
    ALIGNED = "small effects are measured again with forced alignment"
    OPTIONS = "the configurations of the two sides are compared"


@dataclass(frozen=True)
class Outcome:
    """The verdict, in commits; ``experiments`` are boots that were asked for, ``spent`` seconds of hosts."""

    verdict: Verdict
    named: tuple[str, ...]  # suspects, as ids of the history they were found in
    others: tuple[str, ...]  # further culprits
    kind: str  # "come", "gone" (from good's side) or "merge"
    experiments: int
    spent: float
    lost: dict[str, int]  # troubles per host
    label: str = ""  # what is to be said of the culprit besides

    @property
    def state(self) -> State:
        return self.verdict.state


@dataclass(frozen=True)
class _Node:
    """A commit of the searched graph: its id, and what survives a rebuild: its change and its tree or image."""

    sha: str
    identity: tuple[str, str]
    kind: str


@dataclass(frozen=True)
class Record:
    """What one experiment came to, in identities: values, or why there are none."""

    commit: tuple[tuple[str, str], ...]
    host: str
    boot: int
    values: tuple[float, ...]
    at: float
    reason: str = ""
    environment: int = 0


@dataclass
class Bisection:
    """The search between two commits of ``git``; ``image`` tells what a build of a commit would be."""

    git: Git
    good: str
    bad: str
    lab: Lab
    image: Callable[[str], Image]
    rules: frozenset[Rule] = frozenset(Rule)
    effect: float | None = None
    budget: float | None = None
    hosts: int = 1
    rebuilt: bool = False  # a branch like linux-next: compare along the replay line
    seed: int = 0
    aligned: Callable[[str], Image] | None = None  # a build with forced alignment; given: who is named is verified
    notebook: list[Record] = field(default_factory=list)

    def run(self, upto: int = LIMIT) -> Outcome:
        """Search until there is a verdict or ``upto`` experiments were made; a second call goes on."""
        search = self._open()
        hosts = [f"host-{number}" for number in range(self.hosts)]
        while search.verdict().state is State.RUNNING and len(self.notebook) < upto:
            plan = search.plan(idle=self.hosts, booted=dict(self._booted), built=set(self._built))
            if not plan:
                break
            before = self._environment()
            for turn, experiment in enumerate(plan):
                self._do(search, experiment, experiment.host or hosts[(len(self.notebook) + turn) % self.hosts])
            if self._environment() != before and Rule.EPOCHS in self.rules:
                for end in self._ends:  # nothing measured before can be compared with what comes
                    self._do(search, Experiment(end, 2), hosts[0])
        verdict = search.verdict()
        if verdict.state is State.CULPRIT and self.aligned is not None:
            return self._verified(verdict, self.aligned)
        return self._outcome(verdict)

    def _environment(self) -> int:
        return max((record.environment for record in self.notebook), default=0)

    # -- the graph ----------------------------------------------------------------------------------------

    @cached_property
    def _nodes(self) -> list[_Node]:
        if self.rebuilt and Rule.REPLAY in self.rules:
            line = replay(self.git, self.good, self.bad)
            kinds = ["come", *("gone" if step.kind is Kind.REVERT else "come" for step in line.steps)]
            keys = ["", *(step.changes[0].key if step.changes else "rest" for step in line.steps)]
            self.parents: Sequence[Sequence[int]] = [[n - 1] if n else [] for n in range(len(line.shas))]
            self.origin = {  # what people proposed: of an amended change its second version
                step.sha: [change.sha for change in step.changes][-1 if step.kind is Kind.AMEND else 0 :]
                for step in line.steps
            }
            # The Next/ files tell ids, so that no tree survives a rebuild; what is compiled does.
            return [
                _Node(sha, (key, self.image(sha).signature), kind)
                for sha, key, kind in zip(line.shas, keys, kinds, strict=True)
            ]
        history = commits(self.git, self.good, self.bad)
        infos = facts(self.git, history.shas)
        self.parents = history.parents
        self.origin = {}
        above = set(history.candidates())
        nodes: list[_Node] = []
        for number, (info, change) in enumerate(zip(infos, changes(self.git, infos), strict=True)):
            key = (
                change.key if not info.is_merge else repr([nodes[place].identity for place in history.parents[number]])
            )
            key = key if Rule.CHANGES in self.rules else info.sha
            kind = "merge" if info.is_merge else "come" if number in above else "gone"
            nodes.append(_Node(info.sha, (hashlib.sha256(key.encode()).hexdigest(), info.tree), kind))
        return nodes

    def _place(self, sha: str) -> int:
        return next(number for number, node in enumerate(self._nodes) if node.sha == sha)

    def _open(self) -> Search | Naive:
        """The search as it stands after everything in the notebook."""
        nodes = self._nodes
        last = len(nodes) - 1 if self.rebuilt and Rule.REPLAY in self.rules else self._place(self.bad)
        kwargs: dict[str, Any] = {
            "effect": self.effect,
            "hosts": self.hosts,
            "budget_s": self.budget,
            "seed": self.seed,
            "costs": Costs(boot_s=BOOT, run_s=RUN),
        }
        if {Rule.NOISE, Rule.ENDS, Rule.DRIFT, Rule.BOOTS} <= self.rules:
            engine: type[Search | Naive] = Search
        else:
            engine, kwargs["runs"] = Naive, 1 if {Rule.DRIFT, Rule.BOOTS} <= self.rules else 10
        self._ends = (self._place(self.good), last)
        search = engine(CommitGraph(self.parents), [self._ends[0]], last, **kwargs)
        self._boots = count(len(self.notebook))
        self._booted: dict[str, Commit] = {}
        self._built: dict[Commit, str] = {}
        where = {node.identity: number for number, node in enumerate(nodes)}
        for record in self.notebook:
            if all(identity in where for identity in record.commit):
                places = tuple(where[identity] for identity in record.commit)
                self._tell(search, places if len(places) > 1 else places[0], record)
        return search

    # -- an experiment ------------------------------------------------------------------------------------

    def _do(self, search: Search | Naive, experiment: Experiment, host: str) -> None:
        commit = experiment.commit
        identity = tuple(self._nodes[place].identity for place in _places(commit))
        boot = next(self._boots)

        def note(values: Sequence[float] = (), reason: str = "", environment: int = 0) -> None:
            record = Record(identity, host, boot, tuple(values), self.lab.now, reason, environment)
            self.notebook.append(record)
            self._tell(search, commit, record)

        try:
            sha = self._source(commit)
        except Untestable:
            note(reason="does not merge")
            return
        image = self.image(sha)
        if not (image.builds and image.boots):
            values = [] if Rule.SKIP in self.rules else [self.lab.good + (self.effect or 0.0)]  # "not good, then bad"
            note(values, "does not build" if not image.builds else "does not boot")
            return
        while True:
            try:
                got = self.lab.boot(host, image.level, experiment.runs)
            except Lost:
                self._lost[host] = self._lost.get(host, 0) + 1
                if Rule.TROUBLE in self.rules:
                    continue
                note([0.0] * experiment.runs)
                return
            if got.right_kernel or Rule.KERNEL not in self.rules:
                break
            self._lost[host] = self._lost.get(host, 0) + 1
        for delivery in range(got.deliveries):
            if delivery == 0 or Rule.ONCE not in self.rules:
                boot += 10_000 * delivery
                note(got.values, environment=got.environment)

    @cached_property
    def _lost(self) -> dict[str, int]:
        return {}

    def _source(self, commit: Commit) -> str:
        places = _places(commit)
        if Rule.MERGED not in self.rules:
            places = places[-1:]
        if len(places) == 1:
            return self._nodes[places[0]].sha
        return merged(self.git, [self._nodes[place].sha for place in places], history=(self.bad, self.good))

    def _tell(self, search: Search | Naive, commit: Commit, record: Record) -> None:
        if record.reason and not record.values:
            search.skip(commit, record.reason)
            return
        self._compare_image(search, commit)
        self._booted[record.host] = commit
        host = f"{record.host}@{record.environment}" if Rule.EPOCHS in self.rules else record.host
        search.observe(commit, record.values, host=host, boot=record.boot, at=record.at)

    def _compare_image(self, search: Search | Naive, commit: Commit) -> None:
        """Tell the search which built commits came out alike."""
        if commit in self._built or Rule.IMAGES not in self.rules:
            self._built.setdefault(commit, "")
            return
        if isinstance(commit, tuple):
            self._built[commit] = ""
            return
        for near in [commit, *self.parents[commit]]:  # the parent is built beside it, only to be compared
            image = self.image(self._nodes[near].sha)
            if near in self._built or not image.builds:
                continue
            for other, signature in list(self._built.items()):
                if signature == image.signature and isinstance(other, int):
                    search.identical(near, other)
                    break
            self._built[near] = image.signature

    # -- after the search -----------------------------------------------------------------------------------

    def _verified(self, verdict: Verdict, aligned: Callable[[str], Image]) -> Outcome:
        """What the service makes of a verdict: `bisectbot.service.search.proofs` and `verdicts`, on the lab's hosts."""
        assert verdict.culprit is not None
        assert verdict.effect is not None
        culprit = self._nodes[verdict.culprit].sha
        parent = self._nodes[self.parents[verdict.culprit][0]].sha
        proofs = []
        if Rule.REVERT in self.rules:
            without = reverted(self.git, culprit, self.bad)
            sides = (without, reapplied(self.git, culprit, without))
            proofs.append(self._prove(Proof(REVERT, *sides, RECIPE, 0, 0, verdict.effect), self.image))
        if Rule.ALIGNED in self.rules and abs(verdict.effect) < 5.0:
            proofs.append(self._prove(Proof(ALIGNMENT, parent, culprit, RECIPE, 0, 0, verdict.effect), aligned))
        told = concluded(verdict, Verification(proofs=tuple(proofs)))
        held = {proof.name for proof in proofs if proof.check and proof.check.outcome is Told.REFUTED}
        label = "layout" if ALIGNMENT in held else "no mechanism" if len(proofs) > 1 else ""
        options = self.image(culprit).options - self.image(parent).options
        if Rule.OPTIONS in self.rules and options:
            label = ", ".join(sorted(options))
        return replace(self._outcome(after(verdict, told)), label=label)

    def _prove(self, proof: Proof, image: Callable[[str], Image]) -> Proof:
        search = Search(
            CommitGraph.linear(2),
            [0],
            1,
            effect=proof.effect,
            budget_s=20_000.0,
            costs=Costs(boot_s=BOOT, run_s=RUN),
            seed=self.seed,
        )
        sides: tuple[list[float], list[float]] = ([], [])
        while (check := judge(proof, search.verdict(), sides, "")) is None:
            for planned in search.plan(idle=1):
                assert isinstance(planned.commit, int)
                got = self.lab.boot("host-0", image((proof.good, proof.bad)[planned.commit]).level, planned.runs)
                search.observe(planned.commit, got.values, host="host-0", boot=next(self._boots), at=self.lab.now)
                sides[planned.commit].extend(got.values)
        return replace(proof, check=check)

    def _outcome(self, verdict: Verdict) -> Outcome:
        told = verdict.suspects if verdict.state is not State.NO_SINGLE_CULPRIT else ()
        suspects = [self._nodes[place] for place in told]
        kinds = {node.kind for node in suspects}
        return Outcome(
            verdict=verdict,
            named=tuple(sha for node in suspects for sha in self.origin.get(node.sha, [node.sha])),
            others=tuple(self._nodes[place].sha for place in verdict.others),
            kind=kinds.pop() if len(kinds) == 1 else "",
            experiments=len(self.notebook),
            spent=self.lab.now,
            lost=self._lost,
        )


def _places(commit: Commit) -> tuple[int, ...]:
    return commit if isinstance(commit, tuple) else (commit,)
