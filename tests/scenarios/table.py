"""The scenarios: how bisections went wrong elsewhere, and what must come out here.

Each is a history, what the hosts do, and the outcome; ``needs`` is the rule, or the rules, without which it comes out
wrong. Commits are numbered in the order in which a history adds them. Effects are in percent of the good level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bisectbot.bisect import State
from tests.scenarios.driver import Rule
from tests.scenarios.lab import Faults, Noise
from tests.scenarios.world import World


@dataclass(frozen=True)
class Ends:
    """Numbers of commits: the ends, and what must be named: nothing, a commit, or a set."""

    good: int
    bad: int
    named: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()  # further changes that must be announced


@dataclass(frozen=True)
class Case:
    """One scenario. ``effect`` is what the alarm claimed, in units of the KPI (100 is the level without any)."""

    name: str
    history: Callable[[World], Ends]
    needs: Rule | tuple[Rule, ...]
    state: State = State.CULPRIT
    kind: str = "come"
    noise: Noise = field(default_factory=Noise)
    faults: Faults = field(default_factory=Faults)
    hosts: int = 1
    effect: float | None = -8.0
    budget: float | None = None
    rebuilt: bool = False
    verify: bool = False  # who is named is taken back, and small effects are built with forced alignment
    label: str = ""
    seed: int = 1


# -- histories: lines ---------------------------------------------------------------------------------------


def line(count: int, culprit: int | None, percent: float = -8.0, **others: float) -> Callable[[World], Ends]:
    """A line; its n-th commit is the culprit (None: there is none); ``c3=-2`` gives the third an effect, too."""

    def build(world: World) -> Ends:
        effects = {int(name[1:]): value for name, value in others.items()}
        if culprit is not None:
            effects[culprit] = percent
        named = frozenset() if culprit is None else frozenset({culprit})
        return Ends(1, world.line(count, effects=effects), named)

    return build


def already_bad(world: World) -> Ends:
    """The culprit is older than the good end."""
    old = world.effect([world.line(3)], -8.0)
    return Ends(old, world.line(15, old))


def unbuildable_block(world: World) -> Ends:
    """40 commits; 7 do not build, the culprit is among them: the block and the first that builds again."""
    tip = world.line(15)
    tip = world.commit([tip], {"broken": "x\n"})
    tip = world.line(6, tip, effects={3: -8.0})
    mended = world.commit([tip], {"broken": None})
    return Ends(1, world.line(17, mended), frozenset(range(16, 24)))


def unbuildable_elsewhere(world: World) -> Ends:
    """Two blocks that do not build; the culprit is in neither."""
    tip = world.commit([world.line(5)], {"broken": "x\n"})
    culprit = world.effect([world.commit([world.line(4, tip)], {"broken": None})], -8.0)
    tip = world.commit([world.line(3, culprit)], {"broken": "y\n"})
    return Ends(1, world.line(6, world.commit([world.line(2, tip)], {"broken": None})), frozenset({culprit}))


def panic_beside(world: World) -> Ends:
    """The commit before the culprit panics at boot, alone: that one and the culprit cannot be told apart."""
    tip = world.commit([world.line(11)], {"panic": "x\n"})
    culprit = world.commit([tip], {"panic": None, "perf/x": "-8\n"})
    return Ends(1, world.line(9, culprit), frozenset({tip, culprit}))


def panic_around(world: World) -> Ends:
    """Commits panic some way before the culprit and right after it: the culprit is the culprit, alone."""
    tip = world.line(2, world.commit([world.line(5)], {"panic": "x\n"}))
    culprit = world.effect([world.line(1, world.commit([tip], {"panic": None}))], -8.0)
    tip = world.commit([culprit], {"panic": "x\n"})
    return Ends(1, world.line(11, world.commit([tip], {"panic": None})), frozenset({culprit}))


def comments_around(world: World) -> Ends:
    """Comment-only commits around the culprit; three of them before it do not boot by a whim of the host."""
    tip = world.line(8)
    for number in range(5):
        tip = world.commit([tip], {f"doc/{number}": "x\n"})
    culprit = world.effect([tip], -8.0)
    tip = culprit
    for number in range(5, 9):
        tip = world.commit([tip], {f"doc/{number}": "x\n"})
    return Ends(1, world.line(6, tip), frozenset({culprit}))


def moved_code(world: World) -> Ends:
    """A commit moves code; another build, in which everything lies on a boundary, is as fast as before."""
    culprit = world.commit([world.line(9)], {"perf/moved": "-3 unless aligned\n"})
    return Ends(1, world.line(8, culprit), frozenset({culprit}))


def shared_cache_line(world: World) -> Ends:
    """A commit moves two fields onto one cache line: nothing that it touches got slower, and alignment helps not."""
    culprit = world.effect([world.line(12)], -3.0)
    return Ends(1, world.line(5, culprit), frozenset({culprit}))


def option_appears(world: World) -> Ends:
    """A commit in mid-range adds an option, on by default; further back the configuration cannot have it."""
    culprit = world.commit([world.line(7)], {"option/DEBUG_LOCKS": "y\n", "perf/locks": "-8\n"})
    return Ends(1, world.line(9, culprit), frozenset({culprit}))


def kept_down(world: World) -> Ends:
    """A commit slows, a later one does the same in another way: taking the first back helps nobody."""
    culprit = world.commit([world.line(6)], {"perf/first": "-8 unless rework\n"})
    rework = world.commit([world.line(5, culprit)], {"part/rework": "x\n", "perf/rework": "-8\n"})
    return Ends(1, world.line(4, rework))


def prerequisite(world: World) -> Ends:
    """Patch A prepares, patch B uses it: the effect needs both and appears with B."""
    a = world.commit([world.line(8)], {"part/a": "a\n", "perf/pair": "-8 needs a b\n"})
    b = world.commit([world.line(4, a)], {"part/b": "b\n"})
    return Ends(1, world.line(7, b), frozenset({b}))


def undone_later(world: World) -> Ends:
    """Patch 3 of a series slows, patch 8 restores; the range ends between them."""
    slow = world.commit([world.line(9)], {"perf/series": "-8\n"})
    bad = world.line(4, slow)
    world.line(5, world.commit([bad], {"perf/series": None}))
    return Ends(1, bad, frozenset({slow}))


def two_changes(first: float, second: float) -> Callable[[World], Ends]:
    """Two commits change the level; the larger one is named, the other announced."""

    def build(world: World) -> Ends:
        one = world.effect([world.line(7)], first)
        other = world.effect([world.line(8, one)], second)
        named, further = (one, other) if abs(first) > abs(second) else (other, one)
        return Ends(1, world.line(8, other), frozenset({named}), frozenset({further}))

    return build


def last_is_culprit(world: World) -> Ends:
    bad = world.effect([world.line(17)], -8.0)
    return Ends(1, bad, frozenset({bad}))


def first_is_culprit(world: World) -> Ends:
    culprit = world.effect([world.line(3)], -8.0)
    return Ends(3, world.line(18, culprit), frozenset({culprit}))


def one_commit(world: World) -> Ends:
    culprit = world.effect([world.line(2)], -8.0)
    return Ends(2, culprit, frozenset({culprit}))


def one_innocent(world: World) -> Ends:
    return Ends(2, world.line(3))


# -- histories: graphs --------------------------------------------------------------------------------------


def culprit_in_branch(world: World) -> Ends:
    """Merged by the merge that everybody would blame."""
    fork = world.line(6)
    culprit = world.effect([world.line(3, fork)], -8.0)
    branch, main = world.line(3, culprit), world.line(5, fork)
    return Ends(1, world.line(5, world.merge(main, branch)), frozenset({culprit}))


def interaction(world: World) -> Ends:
    """Each branch alone is good; what they make together is not."""
    fork = world.line(5)
    left = world.line(3, world.commit([fork], {"part/a": "a\n", "perf/pair": "-8 needs a b\n"}))
    right = world.line(3, world.commit([fork], {"part/b": "b\n"}))
    merge = world.merge(left, right)
    return Ends(1, world.line(5, merge), frozenset({merge}))


def merge_itself(world: World) -> Ends:
    """The merge brings an effect of its own (a wrongly solved conflict)."""
    fork = world.line(5)
    left, right = world.line(4, fork), world.line(6, fork)
    merge = world.merge(left, right, files={"perf/evil": "-8\n"})
    return Ends(1, world.line(5, merge), frozenset({merge}))


def octopus(world: World) -> Ends:
    """Behind the third arm of an octopus."""
    fork = world.line(4)
    arms = [world.line(4, fork), world.line(3, fork)]
    culprit = world.effect([world.line(2, fork)], -8.0)
    return Ends(1, world.line(4, world.merge(*arms, world.line(2, culprit))), frozenset({culprit}))


def two_roots(world: World) -> Ends:
    """In a project with a root of its own that was merged in."""
    main = world.line(5)
    culprit = world.effect([world.line(3)], -8.0)
    other = world.line(3, culprit)
    return Ends(1, world.line(4, world.merge(world.line(3, main), other)), frozenset({culprit}))


def criss_cross(world: World) -> Ends:
    """Two branches that merged each other twice."""
    fork = world.line(3)
    left, right = world.line(2, fork), world.line(2, fork)
    for _ in range(2):
        left, right = world.line(1, world.merge(left, right)), world.line(1, world.merge(right, left))
    culprit = world.effect([right], -8.0)
    return Ends(1, world.line(3, world.merge(world.line(2, left), culprit)), frozenset({culprit}))


def nested_merges(world: World) -> Ends:
    """A branch of a branch of a branch."""
    main = world.line(4)
    sub = world.line(2, main)
    subsub = world.line(2, sub)
    culprit = world.effect([subsub], -8.0)
    sub = world.merge(world.line(2, sub), world.line(1, culprit))
    main = world.merge(world.line(3, main), world.line(1, sub))
    return Ends(1, world.line(4, main), frozenset({culprit}))


def stale_branch(world: World) -> Ends:
    """A long branch that forked before good lacks an older speed-up that both ends have: it only looks guilty."""
    fork = world.line(3)
    good = world.line(3, world.effect([fork], 7.0))
    branch = world.line(14, fork)
    culprit = world.effect([world.line(2, world.merge(world.line(3, good), branch))], -8.0)
    return Ends(good, world.line(5, culprit), frozenset({culprit}))


def stale_branch_is_guilty(world: World) -> Ends:
    """An old branch that lacks an older slow-down is guilty, and does not look so."""
    fork = world.line(3)
    good = world.line(3, world.effect([fork], -6.4))
    culprit = world.effect([world.line(6, fork)], -8.0)
    branch = world.line(5, culprit)
    return Ends(good, world.line(3, world.merge(world.line(6, good), branch)), frozenset({culprit}))


def good_aside(world: World) -> Ends:
    """Good is no ancestor of bad; the culprit is on bad's side."""
    fork = world.line(4)
    good = world.line(5, fork)
    culprit = world.effect([world.line(4, fork)], -8.0)
    return Ends(good, world.line(4, culprit), frozenset({culprit}))


def improved_on_good_side(world: World) -> Ends:
    """Good is no ancestor of bad, the merge base is as bad as bad: good's side has what made the difference."""
    fork = world.line(4)
    gift = world.effect([world.line(3, fork)], 8.0)
    return Ends(world.line(3, gift), world.line(6, fork), frozenset({gift}))


def dormant_branch(world: World) -> Ends:
    """Two culprit-free branches and one with the culprit, all merged on one day."""
    fork = world.line(3)
    arms = [world.line(5, fork) for _ in range(2)]
    culprit = world.effect([world.line(2, fork)], -8.0)
    main = fork
    for arm in (*arms, world.line(2, culprit)):
        main = world.merge(world.line(1, main), arm)
    return Ends(1, world.line(2, main), frozenset({culprit}))


# -- histories: a branch that is rebuilt every day ------------------------------------------------------------


def _next(world: World, mainline: int, **trees: int) -> int:
    """A day's next: the trees merged onto mainline, and the file that says of what it was made."""
    head = mainline
    for tip in trees.values():
        head = world.merge(head, tip)
    heads = {"origin": mainline, **trees}
    return world.commit(
        [head], {"Next/SHA1s": lambda sha: "".join(f"{name}\t\t{sha(tip)}\n" for name, tip in heads.items())}
    )


def _series(world: World, base: int, *patches: str, **effects: str) -> int:
    for patch in patches:
        base = world.patch(
            base,
            patch,
            {f"src/{patch}": f"{patch}\n", **({f"perf/{patch}": effects[patch]} if patch in effects else {})},
        )
    return base


def wrong_base(world: World) -> Ends:
    """All trees forked before a speed-up of mainline that both days have; the culprit is new in one of them."""
    fork = world.line(3)
    mainline = world.line(2, world.effect([fork], 7.0))
    alpha, beta = (_series(world, fork, *(f"{name}{n}" for n in range(3))) for name in "ab")
    good = _next(world, mainline, alpha=alpha, beta=beta)
    alpha = _series(world, alpha, *(f"a{n}" for n in range(3, 9)))
    culprit = _series(world, beta, "b3", "b4", "b5", b5="-8\n")
    beta = _series(world, culprit, "b6", "b7", "b8")
    return Ends(good, _next(world, world.line(1, mainline), alpha=alpha, beta=beta), frozenset({culprit}))


def lost_by_rebuild(world: World) -> Ends:
    """A quilt tree dropped a patch that was a speed-up; nothing that is new slows anything."""
    mainline = world.line(4)
    quilt = _series(world, mainline, "q0", "q1")
    gift = _series(world, quilt, "q2", q2="8\n")
    good = _next(world, mainline, quilt=_series(world, gift, "q3", "q4"), tree=_series(world, mainline, "t0"))
    quilt = _series(world, mainline, "q0", "q1", "q3", "q4", "q5")
    bad = _next(world, mainline, quilt=quilt, tree=_series(world, mainline, "t0", "t1", "t2"))
    return Ends(good, bad, frozenset({gift}))


def rebased_tree(world: World) -> Ends:
    """A quilt tree is made anew in another order, on an older mainline; one of its two new patches is the culprit."""
    fork = world.line(3)
    mainline = world.line(2, world.effect([fork], 7.0))
    good = _next(world, mainline, quilt=_series(world, fork, *(f"q{n}" for n in range(8))))
    quilt = _series(world, world.line(1, fork), "q3", "q1", "q0", "q8", "q2")
    culprit = _series(world, quilt, "q9", q9="-8\n")
    quilt = _series(world, culprit, "q7", "q6", "q5", "q4")
    return Ends(good, _next(world, world.line(2, mainline), quilt=quilt), frozenset({culprit}))


def amended_patch(world: World) -> Ends:
    """The second version of a patch slows; its subject was there before. The tree is on an older mainline."""
    fork = world.line(3)
    mainline = world.line(2, world.effect([fork], 7.0))
    good = _next(world, mainline, quilt=_series(world, fork, "q0", "q1", "q2", "q3"))
    culprit = _series(world, _series(world, fork, "q0"), "q1", q1="-8\n")
    quilt = _series(world, culprit, "q2", "q3", "q4")
    return Ends(good, _next(world, world.line(1, mainline), quilt=quilt), frozenset({culprit}))


# -- the table ----------------------------------------------------------------------------------------------

NOISY = Noise(run=2.2)
SHIFTY = Noise(run=0.5, boot=2.0)
SPELL = Faults(neighbour=("host-1", 0.0, 12_000.0, -8.0))

CASES = [
    Case("a bad commit passed by luck", line(30, 17), Rule.NOISE, noise=Noise(run=0.5, lucky=0.2), seed=2),
    Case("the change is older than the range", already_bad, Rule.ENDS, state=State.NOT_REPRODUCED, kind=""),
    Case("the alarm was noise", line(20, None), Rule.ENDS, state=State.NOT_REPRODUCED, kind=""),
    Case("culprit in a block that does not build", unbuildable_block, Rule.SKIP, state=State.CULPRIT_SET),
    Case("blocks that do not build elsewhere", unbuildable_elsewhere, (Rule.SKIP, Rule.NOISE), seed=3),
    Case("culprit after a commit that panics", panic_beside, Rule.SKIP, state=State.CULPRIT_SET),
    Case("commits panic around the culprit", panic_around, (Rule.SKIP, Rule.NOISE)),
    Case("comments around the culprit", comments_around, Rule.NOISE, noise=NOISY, seed=4),
    Case("trouble of hosts in a fifth of the boots", line(25, 13), Rule.TROUBLE, faults=Faults(lost=0.2)),
    Case("the wrong kernel booted silently", line(25, 9), Rule.KERNEL, faults=Faults(wrong=0.25), seed=6),
    Case("results delivered twice", line(25, 20), Rule.ONCE, faults=Faults(twice=1.0), noise=Noise(run=4.0), seed=1),
    Case(
        "the environment changed half-way",
        line(25, 18),
        (Rule.EPOCHS, Rule.NOISE),
        faults=Faults(epoch=1_600.0, shift=-8.0),
        seed=1,
    ),
    Case("code moved, and with it its alignment", moved_code, Rule.ALIGNED, verify=True, label="layout", effect=-3.0),
    Case(
        "two fields share a cache line", shared_cache_line, Rule.ALIGNED, verify=True, label="no mechanism", effect=-3.0
    ),
    Case("an option appears in mid-range", option_appears, Rule.OPTIONS, verify=True, label="option/DEBUG_LOCKS"),
    Case(
        "a later commit keeps the level down",
        kept_down,
        Rule.REVERT,
        verify=True,
        state=State.NO_SINGLE_CULPRIT,
        kind="",
        seed=2,
    ),
    Case("patch B needs patch A", prerequisite, Rule.NOISE, noise=NOISY, seed=9),
    Case("undone later in its own series", undone_later, Rule.NOISE, noise=NOISY, seed=9),
    Case("a second, opposite change is taken for ours", two_changes(-8.0, 5.0), Rule.NOISE, effect=-3.0, seed=3),
    Case("two changes that partly cancel", two_changes(6.0, -4.0), Rule.NOISE, effect=2.0),
    Case("two changes that add up", two_changes(-3.0, -6.0), Rule.NOISE, effect=-9.0),
    Case(
        "every boot rolls dice wider than the step",
        line(20, 10),
        Rule.NOISE,
        state=State.GAVE_UP,
        noise=Noise(run=0.5, boot=20.0),
        budget=12_000.0,
    ),
    Case("a neighbour's load on one of two hosts", line(25, 8), Rule.NOISE, hosts=2, faults=SPELL),
    Case("the polarity was wrong", line(25, 12, 8.0), Rule.NOISE, effect=8.0, noise=NOISY, seed=7),
    Case("two modes per boot", line(25, 18), Rule.BOOTS, noise=Noise(run=0.3, modes=0.3, mode=6.0), seed=2),
    Case("drift as large as the step", line(25, 7), Rule.DRIFT, noise=Noise(run=0.5, drift=1.4)),
    Case("heavy tails", line(25, 21), Rule.NOISE, noise=Noise(run=2.0, tails=3.0), seed=2),
    Case(
        "outliers half as large as the step",
        line(30, 11),
        Rule.NOISE,
        noise=Noise(run=0.5, outliers=0.1, outlier=-5.0),
        seed=3,
    ),
    Case("boots differ more than runs", line(25, 16), Rule.BOOTS, noise=SHIFTY, seed=6),
    Case("a small step in plain noise", line(16, 6, -2.0), Rule.NOISE, effect=-2.0, noise=Noise(run=1.5)),
    Case(
        "a failure that comes in a third of the runs",
        line(20, 9, 30.0),
        Rule.NOISE,
        effect=None,
        noise=Noise(flaky=True),
    ),
    Case("the culprit is the bad end itself", last_is_culprit, Rule.NOISE, noise=NOISY, seed=5),
    Case("the culprit is the first after good", first_is_culprit, Rule.NOISE, noise=NOISY, seed=8),
    Case(
        "a range of one commit, on a host that often boots another kernel",
        one_commit,
        Rule.KERNEL,
        faults=Faults(wrong=0.75),
        seed=2,
    ),
    Case("a range of one innocent commit", one_innocent, Rule.ENDS, state=State.NOT_REPRODUCED, kind=""),
    Case("the merge would be blamed for its branch", culprit_in_branch, Rule.NOISE, noise=NOISY, seed=2),
    Case("the effect exists only in the merge", interaction, Rule.NOISE, kind="merge", noise=NOISY, seed=9),
    Case("the merge itself is the culprit", merge_itself, Rule.NOISE, kind="merge", noise=NOISY, seed=9),
    Case("behind an octopus", octopus, Rule.NOISE, noise=NOISY, seed=2),
    Case("behind a second root", two_roots, Rule.NOISE, noise=NOISY, seed=9),
    Case("behind criss-cross merges", criss_cross, Rule.NOISE, noise=NOISY, seed=2),
    Case("behind nested merges", nested_merges, Rule.NOISE, noise=NOISY, seed=2),
    Case("three branches on one day", dormant_branch, Rule.NOISE, noise=NOISY, seed=7),
    Case("a branch lacks what both ends have", stale_branch, Rule.MERGED, seed=2),
    Case("such a branch is guilty", stale_branch_is_guilty, Rule.MERGED),
    Case("good is no ancestor of bad", good_aside, Rule.NOISE, noise=NOISY, seed=9),
    Case(
        "good's side has made the difference",
        improved_on_good_side,
        Rule.NOISE,
        state=State.CHANGE_ON_GOOD_SIDE,
        kind="gone",
    ),
    Case("wrong base in a rebuilt next", wrong_base, (Rule.REPLAY, Rule.MERGED, Rule.NOISE), rebuilt=True, seed=2),
    Case("lost by the rebuild", lost_by_rebuild, (Rule.REPLAY, Rule.MERGED), kind="gone", rebuilt=True),
    Case("a tree rebased whole", rebased_tree, (Rule.REPLAY, Rule.MERGED), rebuilt=True, seed=2),
    Case("the second version of a patch", amended_patch, (Rule.REPLAY, Rule.MERGED), rebuilt=True, seed=2),
]
