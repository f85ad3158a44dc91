"""The configurations that come along are good, their reference is complete, and a wheel holds them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from bisectbot import config
from bisectbot.config import chat as chatconfig
from bisectbot.config import mail as mailconfig
from workers.hosts.machine import Machine

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "config"
EXAMPLES = [CONFIG / "bisectbot.yaml", *sorted((CONFIG / "examples").glob("*/bisectbot.yaml"))]


def check(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bisectbot", "config", "check", "--config", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_good(path: Path) -> None:
    done = check(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "good" in done.stdout


def test_linux_next_runs_the_jobs_of_both_published_reports() -> None:
    loaded = config.load(CONFIG / "bisectbot.yaml")
    assert {(tree, ref) for tree, spec in loaded.trees.items() for ref in spec.branches} == {
        ("linux-next", "master"),
        ("linux-next", "pending-fixes"),
        ("linus", "master"),
    }
    [branch, *_] = loaded.trees["linux-next"].branches.values()
    assert branch.kind is config.BranchKind.REBUILT
    [first, second] = loaded.jobs_of(branch)
    assert (first.name, first.group) == ("will-it-scale-part2-performance-process-50%-open1", "lkp-icl-2sp2")
    assert dict(first.parameters) == {
        "nr_task": "50%",
        "mode": "process",
        "test": "open1",
        "cpufreq_governor": "performance",
    }
    assert dict(first.params)["nr_task"] == "64"
    assert (second.name, second.group) == ("aim9-performance-exec_test-300s", "lkp-ivb-2ep1")
    assert [kpi.name for job in (first, second) for kpi in job.kpis] == [
        "will-it-scale.per_process_ops",
        "aim9.exec_test.ops_per_sec",
    ]
    assert loaded.mail.policy is mailconfig.MailPolicy.FILES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_what_the_examples_keep_in_comments_is_understood_too(path: Path, tmp_path: Path) -> None:
    """A commented setting that stands alone at its place is uncommented, one at a time."""
    text = path.read_text()
    settings = list(re.finditer(r"^( *)# ([a-z_]+: \S.*?)(   .*)?$", text, re.MULTILINE))
    assert settings or path.parent != CONFIG
    (tmp_path / "secrets").mkdir()
    for secret in ("worker.token", "smtp.password"):
        (tmp_path / "secrets" / secret).write_text("secret")
    for name in ("hosts", "jobs", "models"):
        if (path.parent / name).is_dir():
            (tmp_path / name).symlink_to(path.parent / name)
    for match in settings:
        changed = tmp_path / "bisectbot.yaml"
        changed.write_text(text[: match.start()] + match[1] + match[2] + text[match.end() :])
        config.load(changed)


def test_the_drivers_that_a_host_file_keeps_in_comments_are_understood(tmp_path: Path) -> None:
    text = (CONFIG / "hosts/lkp-icl-2sp2-1.yaml").read_text()
    blocks = re.findall(r"(?:^#   .*\n)+", text, re.MULTILINE)
    found = [yaml.safe_load(re.sub(r"^#   ", "", block, flags=re.MULTILINE)) for block in blocks]
    assert [settings["driver"] for settings in found] == ["ssh", "local"]
    for settings in found:
        settings.get("ssh", {}).pop("key_file", None)  # a file that must be there
        host = config.Host.model_validate({"group": "lkp-icl-2sp2", **settings})
        if host.ssh is not None:
            Machine("example", host.ssh.labgrid).check()


# The reference: each table is held against the model of its section.

SECTIONS: dict[str, type[BaseModel]] = {
    "bisectbot.yaml": config.Config,
    "server": config.Server,
    "mail": mailconfig.Mail,
    "mail.rungs": mailconfig.RungSpec,
    "mail.approval": mailconfig.Approval,
    "mail.bar": mailconfig.Bar,
    "mail.also, mail.trees.NAME": mailconfig.Extra,
    "mail.smtp": mailconfig.Smtp,
    "mail.smtp.dkim": mailconfig.DkimSpec,
    "mail.inbox": mailconfig.InboxSpec,
    "mail.inbox.imap": mailconfig.ImapSpec,
    "chat": chatconfig.Chat,
    "chat.slack": chatconfig.Slack,
    "chat.mattermost": chatconfig.Mattermost,
    "chat.zulip": chatconfig.Zulip,
    "chat.matrix": chatconfig.Matrix,
    "chat.irc": chatconfig.Irc,
    "trees.NAME": config.Tree,
    "trees.NAME.branches.BRANCH": config.Branch,
    "builds.NAME": config.Build,
    "jobs.NAME": config.JobSpec,
    "jobs.NAME.source": config.SourceSpec,
    "jobs.NAME.kpis.STAT": config.KpiSpec,
    "bisection": config.BisectionPolicy,
    "bisection.verify": config.VerifyPolicy,
    "canary": config.CanarySpec,
    "costs": config.CostsSpec,
    "worker": config.WorkerSpec,
    "hosts/HOST.yaml": config.Host,
    "local": config.LocalDriver,
    "ready": config.ReadySpec,
    "qemu": config.QemuDriver,
    "ssh": config.SshDriver,
    "simulated": config.SimulatedDriver,
}
ROW = re.compile(r"^\| (\*\*)?`(\w+)`(?:\*\*)? \| (?:`(.*?)` )?\| .*\|$", re.MULTILINE)


def reference() -> dict[str, dict[str, tuple[bool, str | None]]]:
    """Heading → key → (must be given, default)."""
    parts = re.split(r"^##+ (.*)$", (CONFIG / "README.md").read_text(), flags=re.MULTILINE)
    return {
        heading: {key: (bool(bold), default or None) for bold, key, default in ROW.findall(body)}
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def holds_sections(kind: Any) -> bool:
    inner = get_args(kind)
    return any(map(holds_sections, inner)) if inner else isinstance(kind, type) and issubclass(kind, BaseModel)


def valid(field: FieldInfo, text: str) -> Any:
    """What a default that the reference prints comes to."""
    kind: Any = field.annotation
    for more in field.metadata:
        kind = Annotated[kind, more]
    return TypeAdapter(kind).validate_python(yaml.safe_load(text))


def test_every_section_has_its_table() -> None:
    def models(model: type[BaseModel]) -> set[type[BaseModel]]:
        found = {model}
        todo = [field.annotation for field in model.model_fields.values()]
        while todo:
            kind = todo.pop()
            todo += get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= models(kind)
        return found

    assert models(config.Config) == set(SECTIONS.values())
    assert {heading for heading, rows in reference().items() if rows} == set(SECTIONS)


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_reference_has_every_key_with_its_default(heading: str) -> None:
    rows, fields = reference()[heading], SECTIONS[heading].model_fields
    assert list(rows) == list(fields)
    for key, (required, default) in rows.items():
        field = fields[key]
        assert required == field.is_required(), key
        if field.is_required() or (holds_sections(field.annotation) and default is None):
            assert default is None
        else:
            assert default is not None, f"{heading}: {key} has a default that the reference does not tell"
            assert valid(field, default) == field.get_default(), key


def test_the_reference_names_the_drivers_and_rungs_that_there_are() -> None:
    text = (CONFIG / "README.md").read_text()
    for driver in get_args(config.Host.model_fields["driver"].annotation):
        assert f"`{driver}`" in text
    for rung in mailconfig.MailPolicy:
        assert f"`{rung.value}`" in text


def test_the_example_for_any_repository_is_short() -> None:
    lines = (CONFIG / "examples" / "any-repository" / "bisectbot.yaml").read_text().splitlines()
    assert len(lines) <= 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, built here and now without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    program = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


def test_a_wheel_holds_all_that_an_installation_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for room in ("bisectbot", "workers"):
        assert f"{room}/py.typed" in names
    ours = [path for path in CONFIG.rglob("*") if path.is_file()]
    assert {f"bisectbot/example_config/{path.relative_to(CONFIG)}" for path in ours} <= names
    migrations = ROOT / "bisectbot" / "store" / "migrations"
    versions = sorted(path.name for path in (migrations / "versions").glob("[0-9]*.py"))
    assert versions
    assert {f"bisectbot/store/migrations/versions/{name}" for name in versions} <= names
    assert {"bisectbot/store/migrations/env.py", "bisectbot/store/migrations/script.py.mako"} <= names
    assert not [name for name in names if name.startswith(("tests/", "deploy/")) or "__pycache__" in name]


def test_an_installed_example_works_outside_of_a_clone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    example = tmp_path / "site" / "bisectbot" / "example_config" / "bisectbot.yaml"
    done = subprocess.run(
        [sys.executable, "-m", "bisectbot", "config", "check", "--config", str(example)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert (done.returncode, done.stderr) == (0, "")
