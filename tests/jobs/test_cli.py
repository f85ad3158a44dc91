"""``bisectbot jobs expand``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bisectbot.cli import group, main
from bisectbot.errors import UserError

AIM9 = str(Path(__file__).parents[2] / "config" / "jobs" / "aim9.yaml")


def run(*args: str, stdin: str = "") -> Result:
    result = CliRunner().invoke(group, ["jobs", "expand", *args], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit | UserError):
        raise result.exception
    return result


def test_a_line_for_each_unit_job() -> None:
    lines = run(AIM9, "-s", "aim9.test: [exec_test, fork_test]").output.splitlines()
    assert lines == [
        "aim9-exec_test-300s.yaml  testtime=300s test=exec_test",
        "aim9-fork_test-300s.yaml  testtime=300s test=fork_test",
    ]


def test_what_parameters_come_to_on_the_host_and_what_cannot_run() -> None:
    text = "nr_threads: [50%, 1%]\nhackbench: {mode: process}\nneed_cpu: 64\n"
    assert run("-", "--host", "lkp-ivb-2ep1-1", stdin=text).output == (
        "stdin-process-50%.yaml  nr_threads=50%→24 mode=process  (cannot run: need_cpu is 64, lkp-ivb-2ep1 has 48)\n"
        "stdin-process-1%.yaml   nr_threads=1%→0 mode=process  (cannot run: nr_threads is 0 on lkp-ivb-2ep1)\n"
    )


def test_json_tells_programs_everything() -> None:
    sources = ("rootfs: r.cgz", "kconfig: k", "compiler: gcc-14", f"commit: {'a' * 40}")
    args = [arg for text in ("aim9.test: exec_test", *sources) for arg in ("-s", text)]
    (unit,) = json.loads(run(AIM9, "--host", "lkp-ivb-2ep1", "--json", *args).output)
    assert unit["name"] == f"aim9-exec_test-300s-{'a' * 40}-r.cgz.yaml"
    assert unit["params"] == {"testtime": 300, "test": "exec_test"}
    assert unit["parameters"] == {"testtime": "300s", "test": "exec_test"}
    assert unit["result_root"] == f"/lkp/result/aim9/exec_test-300s/lkp-ivb-2ep1/r.cgz/k/gcc-14/{'a' * 40}"
    assert unit["axes"]["keys"] == "compiler/kconfig/rootfs/tbox_group/test/testcase/testtime"
    assert unit["job"]["aim9"] == {"testtime": "300s", "test": "exec_test"}
    assert unit["from"].endswith("aim9.yaml:1")
    (unit,) = json.loads(run(AIM9, "--json", "-s", "aim9.test: exec_test").output)
    assert unit["result_root"] is None


def test_unit_jobs_as_files(tmp_path: Path) -> None:
    run(AIM9, "-o", str(tmp_path / "out"))
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 60
    assert "  test: add_double\n" in (tmp_path / "out" / "aim9-add_double-300s.yaml").read_text()
    again = run(str(tmp_path / "out" / "aim9-add_double-300s.yaml"))
    assert again.output == "aim9-add_double-300s-add_double-300s.yaml  testtime=300s test=add_double\n"


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["none.yaml"], "", "bisectbot: none.yaml: No such file or directory"),
        (["-"], "a: [", "bisectbot: stdin:1: not YAML: "),
        ([AIM9, "--host", "toaster"], "", "bisectbot: host 'toaster': no file hosts/toaster.yaml"),
        ([AIM9, "-s", "x"], "", "bisectbot: -s 'x':1: a job is a mapping"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    args: list[str], stdin: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    with pytest.raises(SystemExit) as ended:
        main(["jobs", "expand", *args])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1
