"""What might explain a change."""

from __future__ import annotations

from bisectbot.report.explain import Traces, explain, touched_functions
from bisectbot.report.model import Difference, Moved
from bisectbot.results.table import Cell, Column, Row, Table

LOG = """\
[    0.000000][    T0] Linux version 6.7.0-rc2-{commit} (gcc-12) #1 SMP {seconds}
[    0.000000][    T0] Command line: commit={commit} nokaslr
[    0.{seconds}1075][    T0] smpboot: Allowing {cpus} CPUs, {hotplug} hotplug CPUs
[    0.{seconds}1090][    T0] tsc: Detected 2693.{seconds} MHz processor
kern  :info  : [    1.{seconds}][    T1] Mountpoint-cache hash table entries: 262144 at 0xffff88{seconds}
[    2.{seconds}][    T1] e1000: link is up after {seconds} ms
"""


def logs(commit: str, cpus: int, hotplug: int, *seconds: int) -> tuple[str, ...]:
    return tuple(LOG.format(commit=commit, cpus=cpus, hotplug=hotplug, seconds=s) for s in seconds)


def table(*rows: tuple[str, float, float]) -> Table:
    made = [Row(name, (Cell(a), Cell(b, None, 100 * (b - a) / a))) for name, a, b in rows]
    return Table((Column("a"), Column("b")), rows=tuple(made))


def test_boot_logs_differ_in_what_every_boot_of_one_side_says():
    parent, culprit = logs("aaa", 168, 120, 311, 322), logs("bbb", 48, 0, 318, 344)
    found = explain(Traces(parent), Traces(culprit))
    assert found.differences == (
        Difference(
            "boot logs",
            ("[    0.3111075][    T0] smpboot: Allowing 168 CPUs, 120 hotplug CPUs",),
            ("[    0.3181075][    T0] smpboot: Allowing 48 CPUs, 0 hotplug CPUs",),
        ),
    )
    assert found.compared == ("boot logs",)


def test_a_single_boot_says_nothing_about_numbers():
    parent = Traces(logs("aaa", 168, 120, 311))
    culprit = Traces(tuple(f"{log}[    3.1] mm: new line {3}\n" for log in logs("bbb", 48, 0, 318)))
    assert explain(parent, culprit).differences == (Difference("boot logs", (), ("[    3.1] mm: new line 3",)),)


def test_configs_and_command_lines():
    parent = Traces((), "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m\n", "BOOT_IMAGE=/a nokaslr mitigations=off")
    culprit = Traces((), "CONFIG_A=y\nCONFIG_B=y\n", "BOOT_IMAGE=/b nokaslr RESULT_ROOT=/r")
    found = explain(parent, culprit)
    assert found.differences == (
        Difference("kernel configs", ("CONFIG_C=m",), ("CONFIG_B=y",)),
        Difference("kernel command lines", ("mitigations=off",), ()),
    )
    assert found.compared == ("kernel configs", "kernel command lines")


def test_memory_that_moved_between_nodes():
    made = table(
        ("numa-numastat.node0.numa_hit", 1644243, 4929305),
        ("numa-numastat.node2.numa_hit", 8729078, 6074883),
        ("numa-meminfo.node0.SUnreclaim", 86566, 113460),
        ("numa-meminfo.node1.SUnreclaim", 65513, 92118),
        ("meminfo.SUnreclaim", 346119, 390049),
    )
    (found,) = explain(Traces(), Traces(), made).differences
    assert found.of == "NUMA counters"
    assert found.parent == ("numa_hit: node0 1644243, node2 8729078",)
    assert found.culprit == ("numa_hit: node0 4929305, node2 6074883",)


def test_functions_that_the_commit_touches():
    made = table(
        ("perf-profile.self.cycles-pp.mm_init", 0.26, 0.04),
        ("perf-profile.children.cycles-pp.mm_init", 1.38, 0.67),
        ("perf-profile.calltrace.cycles-pp.mm_init.alloc_bprm.do_execve", 1.0, 0.5),
        ("perf-profile.self.cycles-pp.pcpu_alloc", 0.18, 0.08),
        ("perf-profile.odd", 1, 2),
    )
    found = explain(Traces(), Traces(), made, {"mm_init", "bprm_execve"})
    assert found.functions == (
        Moved("perf-profile.self.cycles-pp.mm_init", 0.26, 0.04),
        Moved("perf-profile.children.cycles-pp.mm_init", 1.38, 0.67),
    )


def test_nothing_found_says_where_it_looked():
    same = Traces(logs("aaa", 48, 0, 311, 322), "CONFIG_A=y\n", "nokaslr")
    changed = table(("meminfo.Slab", 1, 2))
    found = explain(same, same, changed, {"f"}, ["numa-meminfo.node0.MemFree", "perf-profile.self.cycles-pp.f"])
    assert (found.differences, found.functions) == ((), ())
    assert len(found.compared) == 5
    assert explain(same, same, changed, {"f"}).compared == ("boot logs", "kernel configs", "kernel command lines")
    assert explain(Traces(), Traces()).compared == ()


def test_functions_of_a_patch():
    patch = """\
diff --git a/mm/slub.c b/mm/slub.c
@@ -2001,7 +2001,7 @@ static struct slab *get_partial_node(struct kmem_cache *s,
-	a;
+	b;
@@ -10 +10 @@ int __init mm_init(void)
@@ -20 +21 @@ SYSCALL_DEFINE1(open, int, fd)
@@ -30 +31 @@ struct slab {
@@ -40,0 +42 @@
"""
    assert touched_functions(patch) == {"get_partial_node", "mm_init", "SYSCALL_DEFINE1"}
