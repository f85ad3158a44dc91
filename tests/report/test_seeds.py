"""The two public reports that this robot was made after, from runs to mail, every row of their tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bisectbot.report import (
    Check,
    Commit,
    Direction,
    Evidence,
    Finding,
    Identity,
    Machine,
    Outcome,
    Report,
    Side,
    Tree,
    from_json,
    render_mail,
    to_json,
)
from bisectbot.report.explain import Traces, explain
from bisectbot.report.lkp import parse_report
from bisectbot.report.model import foreign_identity
from bisectbot.report.render import tables_text
from bisectbot.results.compare import Order, compare
from bisectbot.results.matrix import MatrixSet
from bisectbot.results.table_reader import read_row
from tests.report import made

GOLDEN = Path(__file__).parents[1] / "golden" / "report" / "seeds"

# The runs that the first report's mail lists by hand, parent and commit.
_PARENT = "72665 72628 72665 72656 72668 72642 72660 72642 72648 72661 72650 72648 72651 72639 72630 72641 72655 72650"
_COMMIT = "75636 75623 75642 75613 75592 75628 74016 75637 75622 75617 75605 74013 75629 75618 75595 75614 75611 75619"
OPEN1 = ((*map(int, _PARENT.split()), 72624, 72649), (*map(int, _COMMIT.split()), 75629, 75619))
# The second's, made: 1222 and 1251 loads per second.
EXEC = ((1221, 1223, 1222, 1222, 1224) * 4, (1251, 1252, 1250, 1251, 1252) * 4)


@dataclass(frozen=True)
class Seed:
    name: str
    order: Order
    axes: str
    parent: Commit
    commit: Commit
    tree: Tree
    finding: Finding
    runs: tuple[tuple[int, ...], tuple[int, ...]]
    subject: str
    boot_logs: tuple[str, str] = ("", "")


SEEDS = [
    Seed(
        "will-it-scale-open1",
        Order.TESTS,
        "compiler=gcc-11 cpufreq_governor=performance kconfig=x86_64-rhel-8.3 mode=process nr_task=50% "
        "rootfs=debian-11.1-x86_64-20220510.cgz tbox_group=lkp-icl-2sp2 test=open1 testcase=will-it-scale",
        Commit("318eb6d938484a5a5e771f22037fc2fb1e36d211", "printk: Convert console_drivers list to hlist"),
        Commit("8bdbdd7f43cd74c7faca6add8a62d541503ae21d", "printk: Prepare for SRCU console list protection"),
        Tree("https://git.kernel.org/cgit/linux/kernel/git/next/linux-next.git", "master", "linux-next"),
        Finding(
            "will-it-scale.per_process_ops",
            Direction.IMPROVEMENT,
            3.9,
            "will-it-scale",
            Machine("128 threads 2 sockets Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz (Ice Lake) with 256G memory"),
            (("nr_task", "50%"), ("mode", "process"), ("test", "open1"), ("cpufreq_governor", "performance")),
            "x86_64-rhel-8.3",
            "gcc-11",
        ),
        OPEN1,
        "[linux-next:master] [printk]  8bdbdd7f43:  will-it-scale.per_process_ops 3.9% improvement",
    ),
    Seed(
        "aim9-exec_test",
        Order.GROUPS,
        "compiler=gcc-12 cpufreq_governor=performance kconfig=x86_64-rhel-8.3 "
        "rootfs=debian-11.1-x86_64-20220510.cgz tbox_group=lkp-ivb-2ep1 test=exec_test testcase=aim9 testtime=300s",
        Commit(
            "31255e072b2e91f97645d792d25b2db744186dd1",
            "x86/shstk: Delay signal entry SSP write until after user accesses",
        ),
        Commit("ec9aedb2aa1ab7ac420c00b31f5edc5be15ec167", "x86/acpi: Ignore invalid x2APIC entries"),
        Tree("https://git.kernel.org/cgit/linux/kernel/git/torvalds/linux.git", "master", "linus"),
        Finding(
            "aim9.exec_test.ops_per_sec",
            Direction.IMPROVEMENT,
            2.4,
            "aim9",
            Machine("48 threads 2 sockets Intel(R) Xeon(R) CPU E5-2697 v2 @ 2.70GHz (Ivy Bridge-EP) with 112G memory"),
            (("testtime", "300s"), ("test", "exec_test"), ("cpufreq_governor", "performance")),
            "x86_64-rhel-8.3",
            "gcc-12",
        ),
        EXEC,
        "[linus:master] [x86/acpi]  ec9aedb2aa:  aim9.exec_test.ops_per_sec 2.4% improvement",
        (
            "[    1.311098][    T0] smpboot: Allowing 168 CPUs, 120 hotplug CPUs\n",
            "[    1.311075][    T0] smpboot: Allowing 48 CPUs, 0 hotplug CPUs\n",
        ),
    ),
]


def printed(seed: Seed) -> list[str]:
    return (GOLDEN / f"{seed.name}.table.txt").read_text(encoding="utf-8").splitlines()


def report(seed: Seed) -> Report:
    rows = [row for line in printed(seed) if (row := read_row(line, 2))]
    base, other = made.matrices(rows, {seed.finding.stat: seed.runs})
    axes = dict(pair.split("=", 1) for pair in seed.axes.split())
    pair = MatrixSet({seed.parent.id: base, seed.commit.id: other}, axes)
    names = {commit.id: commit.named for commit in (seed.parent, seed.commit)}
    table = compare(pair, order=seed.order, texts=names)
    boots = [tuple((float(value),) for value in side) for side in seed.runs]
    logs = [tuple([log, log] if log else []) for log in seed.boot_logs]
    return Report(
        seed.commit,
        seed.finding,
        seed.parent,
        seed.tree,
        evidence=Evidence(
            Side(seed.parent.id, boots[0]),
            Side(seed.commit.id, boots[1]),
            0.997,
            (
                Check(Outcome.CONFIRMED, "parent and commit again, in turns, each run in a fresh boot"),
                Check(Outcome.NOT_DONE, "reverted on the branch's head; second host group"),
            ),
        ),
        explanation=explain(Traces(logs[0]), Traces(logs[1]), table),
        tables=(table,),
        archive="https://bisectbot.example.org/reports/R1/",
        identity=Identity("bisectbot@example.org", "https://bisectbot.example.org"),
    )


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_every_row(seed: Seed):
    expected = printed(seed)
    rows = tables_text(report(seed)).splitlines()[-len(expected) :]
    for ours, theirs in zip(rows, expected, strict=True):
        assert ours == theirs


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_whole_mail(seed: Seed):
    mail = render_mail(report(seed))
    assert mail.subject == seed.subject
    assert foreign_identity(f"{mail.subject}\n{mail.body}") == []
    golden = GOLDEN / f"{seed.name}.mail.txt"
    assert f"Subject: {mail.subject}\n{mail.body}" == golden.read_text(encoding="utf-8")


def test_dmesg_difference():
    found = report(SEEDS[1]).explanation
    assert found is not None
    (difference,) = [each for each in found.differences if each.of == "boot logs"]
    assert difference.parent == ("[    1.311098][    T0] smpboot: Allowing 168 CPUs, 120 hotplug CPUs",)
    assert difference.culprit == ("[    1.311075][    T0] smpboot: Allowing 48 CPUs, 0 hotplug CPUs",)


def test_memory_moved_between_nodes():
    body = render_mail(report(SEEDS[0])).body
    assert "The two sides differ in their NUMA counters." in body
    assert "  numa_hit: node0 4929305, node1 4916699, node2 6074883, node3 6107989\n" in body


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_our_own_mail_is_read_back(seed: Seed):
    sent = report(seed)
    mail = render_mail(sent)
    read = parse_report(f"Subject: {mail.subject}\n\n{mail.body}".encode())
    assert read.commit == seed.commit
    assert replace(read.finding, machine=None) == replace(seed.finding, machine=None)
    assert tables_text(read) == tables_text(sent)
    assert from_json(to_json(sent)) == sent
