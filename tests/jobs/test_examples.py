"""The job files and hosts that come along, and the names LKP's own tools give their unit jobs."""

import re
from pathlib import Path

import pytest

from bisectbot.jobs.jobfile import UnitJob, read_job
from bisectbot.jobs.library import Library
from bisectbot.jobs.names import axes_line

CONFIG = Path(__file__).parents[2] / "config"
JOBS = sorted(
    file for file in (CONFIG / "jobs").rglob("*.yaml") if file.name not in {"programs.yaml", "stress-ng-common.yaml"}
)
SEED = ("rootfs: debian-11.1-x86_64-20220510.cgz", "kconfig: x86_64-rhel-8.3")


def units(name: str, *overrides: str, host: str = "") -> list[UnitJob]:
    file = CONFIG / "jobs" / name
    library = Library.around(file)
    return list(read_job(file, library, host=library.host(host) if host else None, overrides=overrides).units())


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.stem)
@pytest.mark.parametrize("host", ["lkp-icl-2sp2-1", "lkp-ivb-2ep1-1"])
def test_every_example_expands_into_distinct_jobs_that_fit(file: Path, host: str) -> None:
    found = units(str(file), host=host)
    assert len({unit.name for unit in found}) == len(found)
    for unit in found:
        assert not any(str(value).endswith("%") for value in unit.params.values())
        assert {"vmstat", "perf-profile", "turbostat"} <= set(unit.job)
        assert unit.unfit is None


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("will-it-scale/will-it-scale-part2.yaml", "will-it-scale-part2-process-100%-open1.yaml"),
        ("aim9.yaml", "aim9-add_double-300s.yaml"),
        ("hackbench/hackbench.yaml", "hackbench-pipe-8-process-100%.yaml"),
        ("unixbench/unixbench.yaml", "unixbench-100%-300s-pipe.yaml"),
        ("netperf.yaml", "netperf-cs-localhost-ipv4-50%-300s-TCP_RR.yaml"),
        (
            "fsmark/fsmark.yaml",
            "fsmark-1HDD-9B-btrfs-nfsv4-4-16d-256fpd-10%-fsyncBeforeClose-256M.yaml",
        ),
    ],
)
def test_unit_jobs_are_named_as_lkp_names_them(file: str, name: str) -> None:
    assert name in {unit.name for unit in units(file)}


def test_will_it_scale_has_all_parts_and_both_modes() -> None:
    found = [unit for part in (1, 2, 3, 4) for unit in units(f"will-it-scale/will-it-scale-part{part}.yaml")]
    tests = {unit.parameters["test"] for unit in found}
    assert len(tests) == 67
    assert len(found) == 67 * 2 * 3
    assert {"open1", "page_fault2", "futex4", "writeseek3"} <= tests


def test_the_modes_of_unixbench_and_vm_scalability_that_need_something_else() -> None:
    (execl,) = [
        unit for unit in units("unixbench/unixbench.yaml", "nr_task: 100%") if unit.parameters["test"] == "execl"
    ]
    assert execl.job["perf-profile"] == {"duration": 2}
    sizes = {unit.params.get("size") for unit in units("vm-scalability/vm-scalability.yaml")}
    assert sizes == {None, 8 << 40}


def test_the_first_seed_report() -> None:
    unit = next(
        unit
        for unit in units(
            "will-it-scale/will-it-scale-part2.yaml",
            "nr_task: 50%",
            "commit: 8bdbdd7f43cd74c7faca6add8a62d541503ae21d",
            "compiler: gcc-11",
            *SEED,
            host="lkp-icl-2sp2-1",
        )
        if unit.parameters["test"] == "open1" and unit.parameters["mode"] == "process"
    )
    assert unit.params["nr_task"] == 64
    assert unit.result_root(0) == (
        "/lkp/result/will-it-scale/process-50%-open1/lkp-icl-2sp2/debian-11.1-x86_64-20220510.cgz/x86_64-rhel-8.3/"
        "gcc-11/8bdbdd7f43cd74c7faca6add8a62d541503ae21d/0"
    )
    assert unit.host is not None
    assert unit.host.machine == (
        "128 threads 2 sockets Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz (Ice Lake) with 256G memory"
    )


def test_the_lab_s_own_defaults_fix_the_clock_and_head_the_reports_of_both_seeds() -> None:
    lab = ("site: bisectbot", *SEED)
    first = next(
        unit
        for unit in units(
            "will-it-scale/will-it-scale-part2.yaml", "nr_task: 50%", "compiler: gcc-11", *lab, host="lkp-icl-2sp2-1"
        )
        if unit.parameters["test"] == "open1"
    )
    assert first.axes_line() == (
        "compiler/cpufreq_governor/kconfig/mode/nr_task/rootfs/tbox_group/test/testcase",
        "gcc-11/performance/x86_64-rhel-8.3/process/50%/debian-11.1-x86_64-20220510.cgz/lkp-icl-2sp2/open1/will-it-scale",
    )
    assert list(first.parameters.items()) == [
        ("nr_task", "50%"),
        ("mode", "process"),
        ("test", "open1"),
        ("cpufreq_governor", "performance"),
    ]
    second = next(
        unit
        for unit in units("aim9.yaml", "compiler: gcc-12", *lab, host="lkp-ivb-2ep1-1")
        if unit.parameters["test"] == "exec_test"
    )
    assert second.axes_line() == (
        "compiler/cpufreq_governor/kconfig/rootfs/tbox_group/test/testcase/testtime",
        "gcc-12/performance/x86_64-rhel-8.3/debian-11.1-x86_64-20220510.cgz/lkp-ivb-2ep1/exec_test/aim9/300s",
    )


def test_a_result_root_of_the_farm_with_its_microcode() -> None:
    text = ("ucode: '0xd000331'", "cpufreq_governor: performance", "fs: btrfs", "aim7: {test: sync_disk_rw, load: 10}")
    commit = "638ab1768a6a" + "0" * 28
    unit = units(
        "aim7/aim7-fs-1brd.yaml", *text, *SEED, f"commit: {commit}", "compiler: gcc-11", host="lkp-icl-2sp2-1"
    )[0]
    assert unit.result_root(0, "/result") == (
        "/result/aim7/performance-1BRD_48G-btrfs-10-sync_disk_rw-ucode=0xd000331/lkp-icl-2sp2/"
        f"debian-11.1-x86_64-20220510.cgz/x86_64-rhel-8.3/gcc-11/{commit}/0"
    )


def test_a_second_file_system_heads_the_table_before_the_first() -> None:
    keys, values = axes_line({"fs": "xfs", "fs2": "nfsv4", "commit": "x", "rootfs": "a/b", "empty": ""})
    assert (keys, values) == ("fs2/fs/rootfs", "nfsv4/xfs/a_b")


def test_real_reports_sort_their_axes_by_the_same_rule() -> None:
    reports = Path(__file__).parents[2].parent / "shared" / "lkp" / "reports"
    for file in sorted(reports.glob("*.txt")):
        for keys, values in re.findall(r"^={89}\n(\S+):\n  (\S+)$", file.read_text(), re.MULTILINE):
            named = dict(zip(keys.split("/"), values.split("/"), strict=True))
            assert axes_line(dict(sorted(named.items(), reverse=True))) == (keys, values)
