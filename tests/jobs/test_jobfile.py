"""Job files from text to unit jobs, on small libraries made for the purpose."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.jobs.document import read_lines
from bisectbot.jobs.hosts import Host, host_group
from bisectbot.jobs.jobfile import JobFile, UnitJob, read_job
from bisectbot.jobs.library import Library

PROGRAMS = """
bench: {role: test, options: [runtime, nr_task, test, size, load], assigned: [mode]}
fs: {role: setup, options: [fs2]}
disk: {role: setup}
md: {role: setup}
served: {role: daemon}
watch: {role: monitor, options: [delay]}
also: {role: [test, monitor]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place(tmp_path, "jobs/programs.yaml", PROGRAMS)
    return tmp_path


def place(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def read(root: Path, text: str, *overrides: str, host: str = "", compatible: bool = False) -> JobFile:
    file = place(root, "jobs/j.yaml", text)
    library = Library.around(file)
    target = library.host(host) if host else None
    return read_job(file, library, overrides=overrides, host=target, compatible=compatible)


def units(root: Path, text: str, *overrides: str, host: str = "") -> list[UnitJob]:
    return list(read(root, text, *overrides, host=host).units())


def names(root: Path, text: str, *overrides: str) -> list[str]:
    return [unit.name for unit in units(root, text, *overrides)]


def test_the_first_list_varies_slowest_and_nil_means_without(root: Path) -> None:
    text = "fs: xfs\nfs2: [nfsv4, ]\nbench:\n  test: [a, b]\n  load: 10\n"
    assert names(root, text) == [
        "j-xfs-nfsv4-10-a.yaml",
        "j-xfs-nfsv4-10-b.yaml",
        "j-xfs-10-a.yaml",
        "j-xfs-10-b.yaml",
    ]


def test_later_documents_each_revise_the_first(root: Path) -> None:
    text = "bench: {test: a}\nload: 1\n---\nload: 2\n---\nbench.test: b\n"
    assert names(root, text) == ["j-1-a.yaml", "j-2-a.yaml", "j-1-b.yaml"]


def test_an_empty_first_document_is_no_job(root: Path) -> None:
    assert names(root, "# nothing yet\n---\nbench: {test: a}\n") == ["j-a.yaml"]


def test_only_options_of_named_programs_distinguish(root: Path) -> None:
    text = "bench: {test: a}\nwatch: {delay: [1, 2], test: [x, y]}\nsize: 4K\nruntime: 5m\nunknown: [1, 2]\n"
    text += "mode: 0x1\nserved:\n"
    (unit,) = units(root, text)
    assert unit.path_params == "mode=0x1-5m-4K-a"
    assert unit.job["unknown"] == [1, 2]
    assert dict(unit.params) == {"test": "a", "size": 4096, "runtime": 300, "mode": "0x1"}


def test_sources_name_the_unit_and_stay_out_of_the_parameters(root: Path) -> None:
    text = "bench: {test: a}\ncommit: [v6.1, v6.2]\nqemu_commit: q\nrootfs: debian/x.cgz\nkconfig: k\n"
    assert names(root, text) == ["j-a-v6.1-q-x.cgz.yaml", "j-a-v6.2-q-x.cgz.yaml"]


def test_values_are_cut_and_cleaned_in_paths(root: Path) -> None:
    assert names(root, f"bench:\n  test: ['a b/c', '{'x' * 40}', nil]\n") == [
        "j-a_b_c.yaml",
        f"j-{'x' * 31}.yaml",
        "j-defaults.yaml",
    ]


def test_role_blocks_are_looked_into(root: Path) -> None:
    assert names(root, "if role server:\n  served:\nif role client:\n  bench:\n    test: [a, b]\n") == [
        "j-a.yaml",
        "j-b.yaml",
    ]


def test_a_test_that_nobody_described_is_taken_as_its_job_gives_it(root: Path) -> None:
    assert names(root, "testcase: mine\nruntime: [1, 2]\nmine: {way: [x, y]}\n") == [
        "j-1-x.yaml",
        "j-1-y.yaml",
        "j-2-x.yaml",
        "j-2-y.yaml",
    ]


def test_templates_see_the_chosen_values_siblings_and_the_host(root: Path) -> None:
    place(root, "hosts/big", "nr_cpu: 128\nmemory: 256G\n")
    text = """
fs: [ext4, xfs]
bench:
  test: [a]
  load: {{ nr_cpu / 2 }}
  size: "{{ case fs
            when 'ext4' then 4
            else 8 end }}K"
  runtime: {{ load + 1 }}s
"""
    found = units(root, text, host="big-3")
    assert [(unit.job["bench"]["load"], unit.job["bench"]["size"]) for unit in found] == [(64, "4K"), (64, "8K")]
    assert found[0].params["runtime"] == 65
    with pytest.raises(UserError, match=r"jobs/j.yaml:5: `nr_cpu` is no key of the job"):
        units(root, text)


def test_a_template_may_make_the_list(root: Path) -> None:
    assert names(root, "bench: {test: a}\nload: {{ [1, 2].reverse }}\n") == ["j-2-a.yaml", "j-1-a.yaml"]


def test_a_template_that_asks_for_itself(root: Path) -> None:
    with pytest.raises(UserError, match=r"j.yaml:3: `load` is no key"):
        units(root, "bench: {test: a}\nload: {{ size }}\nsize: {{ load }}\n")


# includes


def test_includes_merge_text_at_their_indentation(root: Path) -> None:
    place(root, "jobs/deep/tests", "test:\n- a\n- b\n")
    place(root, "common", "load: 3\n")
    assert names(root, "<<: common\nbench:\n  <<: tests\n  size: 1K\n") == ["j-3-1K-a.yaml", "j-3-1K-b.yaml"]


def test_an_include_may_replace_append_and_drop_keys_of_each_document(root: Path) -> None:
    place(root, "jobs/base.yaml", "---\nbench:\n  test: a\nload: 1\nmode: m\n---\nload: 2\nsize: 9B\n")
    # the second document of base: size is appended to the first, dropped keys are dropped from both
    assert names(root, "<<: {file: base.yaml, ignore: [mode]}\n") == ["j-1-a.yaml", "j-2-9B-a.yaml"]
    assert names(root, "<<: {file: base.yaml, load: 7,\n     mode: x}\n") == [
        "j-7-mode=x-a.yaml",
        "j-7-mode=x-9B-a.yaml",
    ]
    assert names(root, "<<:\n  file: base.yaml\n  ignore: bench\nbench: {test: b}\n") == ["j-2-mode=m-9B-b.yaml"]


def test_a_file_of_documents_has_no_place_inside_a_mapping(root: Path) -> None:
    place(root, "jobs/base.yaml", "a: 1\n---\nb: 2\n")
    with pytest.raises(UserError, match=r"j.yaml:2: .*base.yaml has several documents"):
        read(root, "bench:\n  <<: base.yaml\n")


def test_errors_name_the_file_they_are_in(root: Path) -> None:
    place(root, "jobs/base.yaml", "load: 1\nsize: {{ 1 + }}\n")
    with pytest.raises(UserError, match=r"jobs/base.yaml:2: expected a value"):
        read(root, "bench: {test: a}\n<<: base.yaml\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<: none.yaml\n", r"j.yaml:1: include 'none.yaml' is not below"),
        ("<<: /etc/passwd\n", r"j.yaml:1: include '/etc/passwd': expected a relative path"),
        ("a: 1\n<<: ../../outside\n", r"j.yaml:2: include .*outside: it lies outside"),
        ("<<: j.yaml\n", r"j.yaml:1: .*j.yaml includes itself"),
        ("<<: 5\n", r"j.yaml:1: `<<: 5`: expected a file name"),
        ("<<: {file: [a]}\n", r"j.yaml:1: `file:` expects a file name"),
        ("<<: {file: programs.yaml, ignore: {a: 1}}\n", r"j.yaml:1: `ignore:` expects a list"),
        ("", r"j.yaml:1: no job here"),
        ("a: 1\n", r"j.yaml:1: no test in this job: none of its keys \(a\)"),
        ("bench: {test: []}\n", r"j.yaml:1: test: an empty list makes no job"),
        (
            "bench:\n  test: a\n  tset: [a, b]\n",
            r"j.yaml:3: bench has no option 'tset' to choose values for, only runtime",
        ),
        ("bench:\n  test: [[a]]\n", r"j.yaml:2: test: expected a list of plain values"),
        ("bench: {test: a}\nload: [" + "1," * 200 + "]\nsize: [" + "1," * 200 + "]\n", "more than 20000 unit jobs"),
        (
            "bench: {test: a}\n" + "".join(f"x{i}: {{load: [1, 2]}}\n" for i in range(101)),
            "more than 100 keys hold lists",
        ),
    ],
)
def test_malformed_jobs_say_what_was_expected(root: Path, text: str, message: str) -> None:
    place(root.parent, "outside", "a: 1\n")
    with pytest.raises(UserError, match=message):
        units(root, text)


# defaults, overrides, hosts


def test_defaults_come_with_a_key_and_lose_against_the_job(root: Path) -> None:
    place(
        root, "include/category/benchmark", "watch:\nload: 5\nmail_cc: x@y\n% if job['arch'] == 'x86'\nserved:\n% end\n"
    )
    place(root, "include/category/ALL", "load: 6\nsize: 1K\n")
    place(root, "hosts/big.yaml", "arch: x86\nload: 9\n")
    text = "category: benchmark\nmail_cc: me@y\nbench: {test: a}\n"
    (unit,) = units(root, text)
    assert (unit.job["load"], unit.job["size"], "served" in unit.job) == (5, "1K", False)
    assert unit.job["mail_cc"] == ["me@y", "x@y"]
    (unit,) = units(root, text + "size: 2K\n", "watch-:", host="big-1")
    assert (unit.job["size"], "served" in unit.job, "watch" in unit.job) == ("2K", True, False)


def test_the_most_special_defaults_win_and_others_is_for_the_rest(root: Path) -> None:
    for name, load in (("vm", 1), ("vm-lkp", 2), ("OTHERS", 3)):
        place(root, f"include/testbox/{name}", f"load: {load}\n")
    loads = [
        units(root, f"testbox: {box}\nbench: {{test: a}}\n")[0].job["load"] for box in ("vm-lkp-4G", "vm-x", "ivb")
    ]
    assert loads == [2, 1, 3]


def test_programs_may_bring_defaults_that_bring_others(root: Path) -> None:
    place(root, "programs/bench/include/ALL", "disk: 1SSD\n")
    place(root, "include/disk/1SSD", "size: 3K\n")
    assert names(root, "bench: {test: a}\n") == ["j-1SSD-3K-a.yaml"]


def test_overrides_win_over_everything(root: Path) -> None:
    text = "bench: {test: [a, b]}\nload: 1\n---\nload: 2\n"
    assert names(root, text, "load: [3, 4]", "bench.test: c") == ["j-3-c.yaml", "j-4-c.yaml"] * 2
    with pytest.raises(UserError, match=r"-s 'load': expected `key: value`|-s 'load':1: a job is a mapping"):
        read(root, text, "load")


def test_programs_are_read_from_the_scripts_of_an_lkp_checkout(root: Path) -> None:
    place(root, "jobs/programs.yaml", "")
    place(root, "programs/old/run", "#!/bin/sh\n# - nr_task\n# = ucode\n# words\n\n# - late\n")
    place(root, "programs/gov/setup", "#!/bin/sh\n")
    place(root, "programs/seen/monitor", "#!/bin/sh\n# - nr_task\n")
    text = "gov: fast\nold:\nucode: '0x42e'\nnr_task: [1, 2]\nlate: [1, 2]\nseen: {nr_task: [3, 4]}\n"
    assert names(root, text) == ["j-fast-1-ucode=0x42e.yaml", "j-fast-2-ucode=0x42e.yaml"]


def test_an_expanded_job_is_taken_back_to_what_it_came_from(root: Path) -> None:
    text = (
        "\n#! jobs/x.yaml\nbench: {test: a}\nload: 3\n\n#! hosts/y\nnr_cpu: 8\ndisk: 1HDD\n\n"
        "#! include/category/benchmark\nfs: xfs\n"
    )
    assert [unit.name for unit in read(root, text, compatible=True).units()] == ["j-3-a.yaml"]
    dirty = ":#! jobs/x.yaml:\nbench: {test: a}\nload: 3\n:#! hosts/y:\ndisk: 1HDD\n"
    assert [unit.name for unit in read(root, dirty, compatible=True).units()] == ["j-3-a.yaml"]


def test_a_unit_job_is_a_job_file_again(root: Path) -> None:
    text = "# what it is\nbench:\n  test: [a, 'yes']\n  load: '007'\n\n#! hosts/x\nmode: 0x1\n"
    for unit in units(root, text):
        (again,) = units(root, unit.to_yaml())
        assert (again.path_params, dict(again.job)) == (unit.path_params, dict(unit.job))


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("lkp-icl-2sp2-1", "lkp-icl-2sp2"),
        ("lkp-icl-2sp2", "lkp-icl-2sp2"),
        ("vm-lkp-wsx01-4G-12", "vm-lkp-wsx01-4G"),
        ("wsm-3-4G-1", "wsm-4G"),
        ("one", "one"),
    ],
)
def test_host_groups(host: str, group: str) -> None:
    assert host_group(host) == group


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nr_cpu: many\n", r"hosts/h:1: nr_cpu: expected a whole number"),
        ("a: 1\nmemory: lots\n", r"hosts/h:2: memory: expected a size"),
        ("a: {{ 1 }}\n", r"hosts/h:1: .* is for jobs"),
        ("a: 1\n---\nb: 2\n", r"hosts/h:\d: expected one document"),
    ],
)
def test_malformed_hosts(root: Path, text: str, message: str) -> None:
    place(root, "hosts/h", text)
    with pytest.raises(UserError, match=message):
        Library((root,)).host("h")


def test_how_a_host_is_reached_is_no_fact_of_its_group(root: Path) -> None:
    place(root, "hosts/h.yaml", "nr_cpu: 4\n")
    place(root, "hosts/h-1.yaml", "group: h\ndriver: local\n")
    assert Library((root,)).host("h-1").nr_cpu == 4


def test_an_unknown_host_is_told_the_known_ones(root: Path) -> None:
    place(root, "hosts/h.yaml", "nr_cpu: 1\n")
    with pytest.raises(UserError, match=r"host 'g-1': no file hosts/g.yaml .* known: h$"):
        Library((root,)).host("g-1")
    with pytest.raises(UserError, match="expected a name"):
        Library((root,)).host("../h")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: 1\n", r"programs.yaml:1: expected `\{role"),
        ("x: {role: boss}\n", r"programs.yaml:1: role 'boss': expected one"),
        ("x: {role: test, options: [1]}\n", r"programs.yaml:1: options and assigned are lists of names"),
    ],
)
def test_malformed_programs(root: Path, text: str, message: str) -> None:
    place(root, "jobs/programs.yaml", text)
    with pytest.raises(UserError, match=message):
        units(root, "bench: {test: a}\n")


# parameters


@pytest.mark.parametrize(
    ("given_", "params"),
    [
        ("nr_task: 50%", {"nr_task": 64}),
        ("nr_task: 33%", {"nr_task": 42}),
        ("nr_task: 16t", {"nr_task": 16}),
        ("runtime: 1h", {"runtime": 3600}),
        ("runtime: 300", {"runtime": 300}),
        ("size: 1G", {"size": 1 << 30}),
        ("size: 16MB", {"size": 16 << 20}),
        ("size: 50%", {"size": 128 << 30}),
        ("disk: 1HDD", {"nr_hdd": 1}),
        ("disk: 1BRD_48G", {"nr_brd": 1, "ramdisk_size": "48G"}),
        ("md: RAID5", {"raid_level": "raid5"}),
        ("fs: xfs", {"fs": "xfs"}),
        ("load: 9000", {"load": 9000}),
    ],
)
def test_parameters_on_a_host(root: Path, given_: str, params: dict[str, object]) -> None:
    place(root, "hosts/big", "nr_cpu: 128\nmemory: 256G\n")
    (unit,) = units(root, f"bench: {{}}\n{given_}\n", host="big")
    assert dict(unit.params) == params


def test_percentages_wait_for_a_host(root: Path) -> None:
    assert dict(units(root, "bench: {}\nnr_task: 50%\nsize: 10%\n")[0].params) == {"nr_task": "50%", "size": "10%"}
    place(root, "hosts/dull", "model: x\n")
    with pytest.raises(UserError, match=r"j.yaml:2: nr_task: 50% is a part of `nr_cpu`"):
        _ = units(root, "bench: {}\nnr_task: 50%\n", host="dull")[0].params


@pytest.mark.parametrize(
    ("text", "message"),
    [("runtime: soon", "a time like"), ("nr_task: some", "a count like"), ("size: big", "a size like")],
)
def test_parameters_without_meaning(root: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=f"j.yaml:2: .*: expected {message}"):
        _ = units(root, f"bench: {{}}\n{text}\n")[0].params


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nr_task: 1%", "nr_task is 0 on small"),
        ("need_memory: 8G", "need_memory is 8G, small has 4G"),
        ("need_cpu: 64", "need_cpu is 64, small has 8"),
        ("need_node: 2", "need_node is 2, small has 1"),
        ("need_cpu: 8", None),
    ],
)
def test_jobs_that_a_host_cannot_run(root: Path, text: str, reason: str | None) -> None:
    place(root, "hosts/small", "nr_cpu: 8\nmemory: 4G\nnr_node: 1\n")
    assert units(root, f"bench: {{}}\n{text}\n", host="small")[0].unfit == reason


def test_the_machine_of_a_report() -> None:
    host = Host.named("lkp-x-1", nr_cpu=48, nr_socket=2, nr_node=4, brand="CPU @ 2GHz", model="Ivy", memory="112G")
    assert host.machine == "48 threads 2 sockets CPU @ 2GHz (Ivy) with 112G memory"
    assert Host.named("x", nr_cpu=48, nr_node=4).machine == "48 threads"


# whatever the file is

PIECES = st.sampled_from(
    """bench:
  test: [a, b]
- x
<<: j.yaml
<<: {file: base.yaml, load: 1}
  <<: base.yaml
---
a.b+: 1
fs-:
load: {{ nr_task }}
nr_task: [1, 50%, ]
% if job['x']
% end
<%= 1 %>
x: <% 1
# note
&a: *a
size: {{
}}
category: benchmark
testcase: bench
commit: [1, 2]
'
"
|
{
]
? x
!!x y
""".splitlines()
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(st.one_of(st.lists(PIECES, max_size=12).map("\n".join).map(str.encode), st.binary(max_size=200)))
def test_any_file_is_unit_jobs_or_an_error_with_its_place(root: Path, data: bytes) -> None:
    place(root, "jobs/base.yaml", "load: 1\n---\nload: 2\n")
    file = root / "jobs" / "j.yaml"
    file.write_bytes(data)
    try:
        for unit in read_job(file, Library.around(file)).units():
            unit.to_yaml()
            unit.axes_line()
            _ = unit.params
    except UserError as error:
        assert ".yaml:" in str(error)  # noqa: PT017


def test_standard_input_is_read_as_a_file_in_the_working_directory(root: Path) -> None:
    lines = read_lines(b"bench: {test: a}\nload: {{ 1 + }}\n", "stdin")
    with pytest.raises(UserError, match=r"^stdin:2: "):
        read_job(Path("stdin"), Library((root,)), lines=lines)
