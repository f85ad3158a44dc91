"""The configuration: what is wrong is told in one line each, with file:line and a remedy; what is right comes out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bisectbot.config import Config, load
from bisectbot.yamlfile import ConfigError

GOOD = """\
state: state
trees:
  mine:
    url: /srv/git/mine
    branches:
      main: {build: b, jobs: [bench]}
builds:
  b: {command: make, outputs: [bench]}
jobs:
  bench:
    command: ./bench
    groups: [here]
    kpis: {bench.ops: {unit: ops/s, better: more}}
"""
HOST = "group: here\ndriver: local\n"
FACTS = "nr_cpu: 128\nmemory: 256G\n"
PROGRAMS = "sieve: {role: test, options: [size, mode, nr_task]}\n"
JOB_FILE = """\
testcase: sieve
nr_task: [16, 50%]
sieve:
  mode: [process, thread]
  size: [4K, 1M]
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"bisectbot.yaml": GOOD, "hosts/here-1.yaml": HOST, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "bisectbot.yaml"


def problems(folder: Path, files: dict[str, str]) -> list[str]:
    """What `load` says, with paths relative to ``folder``."""
    with pytest.raises(ConfigError) as caught:
        load(write(folder, files))
    told = [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]
    assert all("\n" not in line and len(line) < 300 for line in told)
    return told


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # unknown keys
        (
            "    url:",
            "    intervall: 1m\n    url:",
            "bisectbot.yaml:4: unknown key trees.mine.intervall; did you mean int",
        ),
        ("state: state", "stat: state", "bisectbot.yaml:1: unknown key stat; did you mean state?"),
        ("better: more", "bettter: more", "unknown key jobs.bench.kpis.bench.ops.bettter; did you mean better?"),
        (
            "build: b,",
            "build: b, colour: red,",
            "colour; known keys here: backfill, build, every, jobs, kind, per_day, quiet",
        ),
        ("outputs: [bench]}", "outputs: [bench], builds: 1}", "unknown key builds.b.builds; did you mean builder?"),
        # wrong types and values
        ("[bench]}\njobs", "bench}\njobs", "bisectbot.yaml:8: builds.b.outputs: Input should be a valid tuple, found"),
        ("better: more", "better: up", "jobs.bench.kpis.bench.ops.better: Input should be 'more', 'less' or 'none'"),
        ("state: state", "state: state\ntick: soon", "tick: expected a duration such as 90s, 10m, 2h or 1d, found 's"),
        ("state: state", "state: state\ntick: -1", "bisectbot.yaml:2: tick: expected a duration such as 90s, 10m,"),
        ("state: state", "state: state\ntick: 2026-13-01", "bisectbot.yaml:2: '2026-13-01': month must be in 1..12;"),
        ("groups: [here]", "groups: []", "bisectbot.yaml:12: jobs.bench.groups: Tuple should have at least 1 item"),
        (
            "state: state",
            "state: state\nserver: {listen: here}",
            "bisectbot.yaml:2: server.listen: String should match",
        ),
        ("state: state", "state: state\nbisection: {confidence: 1.5}", "confidence: Input should be less than 1, foun"),
        # what is missing
        ("    url: /srv/git/mine\n", "", "bisectbot.yaml:3: trees.mine.url is missing; add it"),
        ("command: make, ", "", "bisectbot.yaml:8: builds.b.command is missing; add it"),
        ("    command: ./bench\n", "", "bisectbot.yaml:10: jobs.bench.command is missing; add it"),
        ("kpis: {bench.ops: {unit: ops/s, better: more}}", "kpis: {}", "bisectbot.yaml:13: jobs.bench.kpis is empty:"),
        # files
        (
            "state: state",
            "state: state\nserver: {token_file: secret}",
            "bisectbot.yaml:2: server.token_file: no such file: secret",
        ),
        (
            "state: state",
            "state: state\nmail: {smtp: {password_file: pw}}",
            "bisectbot.yaml:2: mail.smtp.password_file: no such file: pw",
        ),
        # mail
        *(
            ("state: state", f"state: state\nmail: {{{keys}}}", f"bisectbot.yaml:2: {told}")
            for keys, told in [
                ("sender: nobody", "mail.sender: 'nobody' is no mail address; write local@domain or Name <local@do"),
                ("operators: [a@b, 'x <y>']", "mail.operators.1: 'x <y>' is no mail address; write local@domain"),
                ("policy: list", "mail.policy: Input should be 'files', 'operators', 'author' or 'lists', found 'list"),
                ("rungs: [{tree: 'x:*', policy: files}]", "mail.rungs: 'x:*' matches no TREE:BRANCH; there are: mine"),
                ("rungs: [{tree: '*'}]", "mail.rungs.0.policy is missing; add it"),
                ("approval: {precision: 90}", "mail.approval.precision: Input should be less than or equal to 1, fo"),
                ("hourly_cap: -1", "mail.hourly_cap: Input should be greater than or equal to 0, found -1"),
                ("daily_cap: many", "mail.daily_cap: Input should be a valid integer"),
                ("quiet_days: [caturday]", "mail.quiet_days.0: 'caturday' is no day; write mon … sun, or a date"),
                ("quiet_days: [7]", "mail.quiet_days.0: 7 is no day; write mon … sun, or a date as 2026-12-25"),
                ("bar: {confidence: 2}", "mail.bar.confidence: Input should be less than or equal to 1, found 2"),
                ("also: {most: 13}", "mail.also.most: Input should be less than or equal to 12, found 13"),
                ("trees: {their: {}}", "mail.trees: tree 'their' is not defined; there are: mine"),
                ("trees: {mine: {list: [a@b]}}", "unknown key mail.trees.mine.list; did you mean lists?"),
                ("opted_out: ['Ada <a@b>']", "mail.opted_out.0: 'Ada <a@b>' is no bare mail address; write local"),
                ("unsubscribe_url: http://x/u", "mail.unsubscribe_url: 'http://x/u': mail programs follow https://"),
                ("smtp: {security: ssl}", "mail.smtp.security: Input should be 'none', 'starttls' or 'tls', found "),
                ("smtp: {user: bot}", "mail.smtp.user has no password; add mail.smtp.password_file"),
                (
                    "smtp: {user: bot, host: mx.example.org, password_file: bisectbot.yaml}",
                    "mail.smtp.user: its password would travel in the clear; set mail.smtp.security to starttls or",
                ),
                ("smtp: {ca_file: ca}", "mail.smtp.ca_file: no such file: ca; create it or correct the path"),
                ("smtp: {dkim: {domain: d, selector: s}}", "mail.smtp.dkim.key_file is missing; add it"),
                ("smtp: {dkim: {domain: d, selector: s, key_file: k}}", "mail.smtp.dkim.key_file: no such file: k;"),
                ("inbox: {lmtp: here}", "mail.inbox.lmtp: String should match pattern"),
                ("inbox: {imap: {host: h, user: u}}", "mail.inbox.imap.password_file is missing; add it"),
                (
                    "inbox: {lmtp: 'a:1', imap: {host: h, user: u, password_file: bisectbot.yaml}}",
                    "mail.inbox: mail comes in one way only; keep maildir, imap or lmtp",
                ),
            ]
        ),
        ("    command: ./bench", "    file: jobs/none.yaml", "jobs.bench.file: no such file: jobs/none.yaml"),
        # names that point nowhere
        ("build: b,", "build: c,", "bisectbot.yaml:6: build 'c' is not defined; there are: b"),
        ("jobs: [bench]}", "jobs: [bnch]}", "bisectbot.yaml:6: job 'bnch' is not defined; there are: bench"),
        ("groups: [here]", "groups: [there]", "bisectbot.yaml:12: host group 'there' is not defined; there are: here"),
        ("    command: ./bench", "    command: x\n    select: {test: a}", "jobs.bench.select is for a job file; add"),
        # what git must not be given
        ("      main:", "      -main:", "bisectbot.yaml:6: trees.mine.branches.-main: '-main' is no name of a branch"),
        ("      main:", "      a..b:", "bisectbot.yaml:6: trees.mine.branches.a..b: 'a..b' is no name of a branch"),
        ("/srv/git/mine", "--upload-pack=x", "trees.mine.url: '--upload-pack=x' is no address that git may fetch from"),
        ("/srv/git/mine", '"ext::sh -c x"', "trees.mine.url: 'ext::sh -c x' is no address that git may fetch from"),
        ("  mine:", "  my tree:", "trees.my tree: 'my tree': a name is letters, digits and ._+%=- and starts with a"),
        # YAML
        ("state: state", "state: state\nstate: other", "bisectbot.yaml:2: key 'state' stands here twice"),
        ("state: state", "state: [", "bisectbot.yaml:3: not YAML: "),
        ("state: state", "state: state\n[a]: b", "bisectbot.yaml:2: this key is no text; quote it"),
        ("state: state", "state: state\non: b", "bisectbot.yaml:2: this key is no text; quote it"),
    ],
)
def test_each_mistake_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    (line,) = problems(tmp_path, {"bisectbot.yaml": changed(old, new)})
    assert told in line
    assert line.startswith("bisectbot.yaml:")


def test_all_mistakes_are_told_at_once_also_those_of_host_files(tmp_path: Path) -> None:
    files = {
        "bisectbot.yaml": changed("url:", "ulr:").replace("groups: [here]", "groups: []"),
        "hosts/here-1.yaml": "group: here\ndrivr: local\n",
        "hosts/here-2.yaml": HOST + "local: {cpus: [zero]}\n",
        "hosts/here-3.yaml": "driver: [\n",
        "hosts/-x.yaml": HOST,
    }
    told = problems(tmp_path, files)
    assert len(told) == 6
    for start in ("bisectbot.yaml:4:", "bisectbot.yaml:12:", "hosts/here-2.yaml:3:", "hosts/here-3.yaml:2:"):
        assert sum(line.startswith(start) for line in told) >= 1
    assert any(line.startswith("hosts/-x.yaml: '-x': a name is letters") for line in told)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("group: here\ndriver: quartz\n", "hosts/here-1.yaml:2: driver: Input should be 'local', 'qemu'"),
        ("driver: local\n", "hosts/here-1.yaml:1: group is missing; add it"),
        ("group: here\ndriver: simulated\n", "hosts/here-1.yaml: driver is simulated, but the section `simulated` is"),
        (
            "group: here\ndriver: simulated\nsimulated: {model: m.yaml}\n",
            "hosts/here-1.yaml: simulated.model: no such file: hosts/m.yaml",
        ),
        (
            "group: here\ndriver: qemu\nready: {thp: never}\n",
            "hosts/here-1.yaml:3: ready: a guest has no governor and no turbo",
        ),
        *(
            (
                f"group: here\ndriver: ssh\nssh:\n  address: root@box\n  labgrid: {{cmd_on: '{command}'}}\n",
                "hosts/here-1.yaml:5: ssh.labgrid: a password stands in it; keep it in a file that the command reads",
            )
            for command in ("ipmitool -P hunter2 power on", "redfish --password=hunter2", "curl https://a:hunter2@bmc")
        ),
        ("- local\n- driver\n", "hosts/here-1.yaml:1: expected keys and values, found"),
    ],
)
def test_host_files_are_checked(tmp_path: Path, host: str, told: str) -> None:
    (line,) = problems(tmp_path, {"hosts/here-1.yaml": host})
    assert told in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: no such file; create it or correct the path"):
        load(tmp_path / "none.yaml")


def test_lists_of_parameters_make_unit_jobs(tmp_path: Path) -> None:
    text = changed("    command: ./bench", "    command: ./bench\n    parameters: {threads: [1, 4], mode: fast}")
    config = load(write(tmp_path, {"bisectbot.yaml": text}))
    jobs = config.units("bench")
    assert [job.name for job in jobs] == ["bench-fast-1", "bench-fast-4"]
    assert jobs[1].parameters == (("threads", "4"), ("mode", "fast"))
    assert {(job.benchmark, job.testcase, job.group) for job in jobs} == {("command", "bench", "here")}
    (branch,) = config.trees["mine"].branches.values()
    assert config.jobs_of(branch) == list(jobs)


def with_job_file(tmp_path: Path, job: dict[str, Any], files: dict[str, str] | None = None) -> Path:
    """``jobs.bench`` names the job file ``jobs/sieve.yaml``; ``job`` is added to it."""
    config = yaml.safe_load(GOOD)
    config["jobs"]["bench"] = {"file": "jobs/sieve.yaml", "groups": ["here"], "kpis": {"sieve.ops": {}}, **job}
    more = {"hosts/here.yaml": FACTS, "jobs/programs.yaml": PROGRAMS, "jobs/sieve.yaml": JOB_FILE, **(files or {})}
    return write(tmp_path, {"bisectbot.yaml": yaml.safe_dump(config, sort_keys=False), **more})


def test_a_job_file_becomes_unit_jobs_named_as_lkp_names_them(tmp_path: Path) -> None:
    config = load(with_job_file(tmp_path, {"runs": 7, "timeout": "20m"}))
    jobs = config.units("bench")
    assert len(jobs) == 8
    job = next(job for job in jobs if job.name == "sieve-thread-50%-1M")
    assert (job.testcase, job.benchmark, job.group, job.timeout_s) == ("sieve", "sieve", "here", 1200)
    assert job.parameters == (("nr_task", "50%"), ("mode", "thread"), ("size", "1M"))
    assert dict(job.params) == {"nr_task": "64", "mode": "thread", "size": str(2**20)}


def test_select_keeps_the_axes_that_it_names(tmp_path: Path) -> None:
    select = {"select": {"mode": "thread", "nr_task": [16, "50%"], "size": "4K"}}
    jobs = load(with_job_file(tmp_path, select)).units("bench")
    assert [job.name for job in jobs] == ["sieve-thread-16-4K", "sieve-thread-50%-4K"]


def test_parameters_are_stronger_than_the_job_file(tmp_path: Path) -> None:
    stronger = {"parameters": {"nr_task": 4, "sieve.size": ["2K", "8K"]}, "select": {"mode": "process"}}
    jobs = load(with_job_file(tmp_path, {**stronger, "benchmark": "command", "command": "./sieve"})).units("bench")
    assert [job.name for job in jobs] == ["sieve-process-4-2K", "sieve-process-4-8K"]
    assert {job.benchmark for job in jobs} == {"command"}


def told(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("job", "files", "pattern"),
    [
        (
            {"select": {"tset": "a"}},
            {},
            r"bisectbot.yaml:\d+: jobs.bench.select.tset: no such axis; there are: mode, nr_task, size",
        ),
        ({"select": {"mod": "a"}}, {}, r"select.mod: no such axis; did you mean mode\?"),
        ({"select": {"mode": "proces"}}, {}, r"select.mode: no unit job has mode proces; did you mean process\?"),
        ({"select": {"nr_task": 5}}, {}, r"select.nr_task: no unit job has nr_task 5; there are: 16, 50%"),
        (
            {},
            {"jobs/sieve.yaml": JOB_FILE + "  colour: [red]\n"},
            r"^bisectbot.yaml:\d+: jobs.bench.file on here: jobs/sieve.yaml:6: sieve has no option 'colour'",
        ),
        ({}, {"jobs/sieve.yaml": JOB_FILE + "need_memory: 512G\n"}, r"cannot run there: need_memory is 512G, here has"),
        ({}, {"jobs/sieve.yaml": "a: ["}, r"^bisectbot.yaml:\d+: jobs.bench.file on here: jobs/sieve.yaml:1: "),
        ({}, {"hosts/here.yaml": "nr_cpu: many\n"}, r"its group's facts: hosts/here.yaml:1: nr_cpu: expected"),
        ({"benchmark": "command"}, {}, r"jobs.bench.command is missing; add it"),
    ],
)
def test_mistakes_around_job_files_are_one_line(
    tmp_path: Path, job: dict[str, Any], files: dict[str, str], pattern: str
) -> None:
    (line,) = told(with_job_file(tmp_path, job, files))
    assert re.search(pattern, line), line


def test_a_group_without_facts_cannot_run_a_job_file(tmp_path: Path) -> None:
    path = with_job_file(tmp_path, {})
    (tmp_path / "hosts" / "here.yaml").unlink()
    (line,) = told(path)
    assert "jobs.bench.file on here: host 'here': no file hosts/here.yaml" in line


def test_what_is_loaded_does_not_change(tmp_path: Path) -> None:
    path = with_job_file(tmp_path, {})
    config = load(path)
    before = config.units("bench")
    (tmp_path / "jobs" / "sieve.yaml").unlink()
    assert config.units("bench") == before
    with pytest.raises(ValueError, match="frozen"):
        Config.__setattr__(config, "tick", 1.0)
