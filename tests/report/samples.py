"""Reports for the tests: a complete one, and any."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from bisectbot.report import (
    Check,
    Commit,
    Difference,
    Direction,
    Evidence,
    Explanation,
    Finding,
    Identity,
    Machine,
    Moved,
    Outcome,
    Person,
    Report,
    Side,
    Still,
    Tree,
)
from bisectbot.results.table import Cell, Column, FailCell, FailRow, Row, Table

PARENT = Commit(
    "5f0c1e27a9b34d6688d1f2ab90c37e5546a1b2c3", "mm/slub: count frees per node", Person("A", "a@example.org")
)
CULPRIT = Commit(
    "93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5",
    "mm/slub: keep partial slabs of other nodes on the list they came from",
    Person("Ann Author", "ann@example.org"),
)
MACHINE = Machine("64 threads 2 sockets Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz (Ice Lake) with 256G memory", "icl")
PARAMETERS = (("nr_task", "50%"), ("mode", "process"), ("test", "open1"), ("cpufreq_governor", "performance"))


def finding(percent: float | None = -3.2, direction: Direction = Direction.REGRESSION, **more: bool) -> Finding:
    return Finding(
        "will-it-scale.per_process_ops",
        direction,
        percent,
        "will-it-scale",
        MACHINE,
        PARAMETERS,
        "x86_64-rhel-9.4",
        "gcc-14",
        **more,
    )


def table(rows: int = 3) -> Table:
    cells = (Cell(53967.4), Cell(52560.9, 2, -3.2))
    labels = (PARENT.id, CULPRIT.id)
    return Table(
        tuple(Column(label, f'{label[:10]} ("subject")') for label in labels),
        (("kconfig", "x86_64-rhel-9.4"), ("test", "open1")),
        (FailRow("stderr.has_stderr", (FailCell(0, 6), FailCell(6, 6, 100.0))),),
        tuple(Row(f"proc-vmstat.counter_{index:04d}", cells) for index in range(rows)),
    )


def report() -> Report:
    return Report(
        CULPRIT,
        finding(),
        PARENT,
        Tree("https://git.example.org/linux.git", "master", "linus"),
        still=(Still("still regression", "linux-next/master", "6" * 40),),
        evidence=Evidence(
            Side(PARENT.id, ((53961.0, 53972.0), (53970.0, 53958.0))),
            Side(CULPRIT.id, ((52561.0, 52555.0), (52570.0, 52549.5))),
            0.9934,
            (
                Check(Outcome.NOT_DONE, "second host group"),
                Check(Outcome.CONFIRMED, "reverted on v7.1-rc2: back at 53966 (4 runs in 2 boots)"),
            ),
            interval=(-2.71, -2.49),
        ),
        also=(finding(12.0, Direction.IMPROVEMENT),),
        explanation=Explanation(
            (Difference("boot logs", ("smpboot: Allowing 168 CPUs",), ("smpboot: Allowing 48 CPUs",)),),
            (Moved("perf-profile.self.cycles-pp.get_partial_node", 0.12, 0.41),),
            ("boot logs", "the profile of the functions that the commit touches"),
        ),
        tables=(table(), replace(table(2), machine=f"icl: {MACHINE.description}")),
        archive="https://bisectbot.example.org/reports/R1234/",
        thread="https://lore.example.org/all/202611302100.93b7d0a2-bisectbot@example.org/",
        reproduce=("bisectbot jobs expand job.yaml",),
        identity=Identity("bisectbot@example.org", "https://bisectbot.example.org"),
    )


_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
_finite = st.floats(-1e99, 1e99)
_commits = st.builds(Commit, st.text("0123456789abcdef", min_size=10, max_size=40), _texts)
_pairs = st.lists(st.tuples(_texts, _texts), max_size=3).map(tuple)


def _tuples(of: st.SearchStrategy, most: int = 2):
    return st.lists(of, max_size=most).map(tuple)


_findings = st.builds(
    Finding,
    _texts,
    st.sampled_from(Direction),
    st.none() | _finite,
    _texts,
    st.none() | st.builds(Machine, _texts, _texts),
    _pairs,
    _texts,
    _texts,
    st.booleans(),
)
_sides = st.builds(Side, _texts, _tuples(_tuples(_finite)))
_rows = st.builds(Row, _texts, _tuples(st.builds(Cell, st.none() | _finite, st.none() | st.integers(2, 9999), _finite)))
_fails = st.builds(FailRow, _texts, _tuples(st.builds(FailCell, _finite, st.integers(1, 999), st.none() | _finite)))
_two = st.builds(Column, _texts, st.none() | _texts)
_tables = st.builds(Table, st.tuples(_two, _two), _pairs, _tuples(_fails), _tuples(_rows), st.none() | _texts)
reports = st.builds(
    Report,
    _commits,
    _findings,
    st.none() | _commits,
    st.builds(Tree, _texts, _texts, _texts),
    still=_tuples(st.builds(Still, _texts, _texts, _texts)),
    evidence=st.none()
    | st.builds(
        Evidence,
        _sides,
        _sides,
        st.none() | st.floats(0, 1),
        _tuples(st.builds(Check, st.sampled_from(Outcome), _texts)),
        _tuples(_commits),
    ),
    also=_tuples(_findings),
    explanation=st.none()
    | st.builds(
        Explanation,
        _tuples(st.builds(Difference, _texts, _tuples(_texts), _tuples(_texts))),
        _tuples(st.builds(Moved, _texts, _finite, _finite)),
        _tuples(_texts),
    ),
    notes=_tuples(_texts),
    tables=_tuples(_tables),
    archive=_texts,
    thread=_texts,
    reproduce=_tuples(_texts),
)
