"""The installation: units that systemd accepts, a compose file without holes, a README whose commands exist."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from bisectbot.config import load
from bisectbot.serve import Tree
from tests.support.commandline import parse, printed

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TARGET = DEPLOY / "systemd" / "bisectbot.target"
INSTALLED = "/opt/bisectbot/bin/bisectbot"
MEASURED = {"bisectbot.service", "bisectbot-worker@.service"}  # benchmarks run below them


def settings(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units as they are installed, but with a program that is here."""
    folder = tmp_path_factory.mktemp("units")
    shutil.copy(TARGET, folder)
    for unit in UNITS:
        text = unit.read_text()
        assert f"ExecStart={INSTALLED} " in text
        for name in (
            [unit.name.replace("@", f"@{i}") for i in ("build", "lkp-icl-2sp2-1")] if "@" in unit.name else [unit.name]
        ):
            (folder / name).write_text(text.replace(INSTALLED, "/bin/true"))
        if "@" in unit.name:
            (folder / unit.name).write_text(text.replace(INSTALLED, "/bin/true"))
    return folder


def test_systemd_finds_nothing_to_complain_of(units: Path) -> None:
    files = sorted(str(file) for file in units.iterdir() if not file.stem.endswith("@"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(files) == len(UNITS) + 2


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.name not in MEASURED], ids=lambda unit: unit.stem)
def test_what_is_reached_from_outside_is_hardened(unit: Path, units: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", str(units / unit.name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1] + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_no_unit_may_gain_rights_or_write_outside_its_state(unit: Path) -> None:
    found = settings(unit)
    assert found["User"] == ["bisectbot"]
    assert found["NoNewPrivileges"] == ["yes"]
    assert found["CapabilityBoundingSet"] == [""]
    assert found["ProtectSystem"] == ["strict"]
    assert found["StateDirectory"] == ["bisectbot"]
    assert found["LoadCredential"]
    assert found["PartOf"] == found["WantedBy"] == [TARGET.name]


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_nothing_that_slows_system_calls_is_measured(name: str) -> None:
    """Options that make systemd install a filter on system calls."""
    filters = "SystemCall|Restrict|LockPersonality|MemoryDeny|ProtectClock|ProtectHostname|ProtectKernelLogs"
    filters += "|ProtectKernelModules|PrivateDevices"
    assert [key for key in settings(DEPLOY / "systemd" / name) if re.match(filters, key)] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_commands_that_exist(unit: Path) -> None:
    (start,) = settings(unit)["ExecStart"]
    parse(shlex.split(start.replace("%i", "build"))[1:])


def test_every_process_that_serve_starts_has_a_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bisectbot.yaml"
    path.write_text(yaml.safe_dump(CONFIG | {"mail": {"inbox": {"maildir": "drop"}}}))
    started: list[str] = []
    tree = Tree(load(path), path)
    monkeypatch.setattr(tree, "_start", lambda child: started.append(child.name.partition("-")[0]))
    monkeypatch.setattr(tree, "_wait", lambda *_: None)
    tree.start()
    units = {unit.stem.removeprefix("bisectbot-").rstrip("@") for unit in UNITS} - {"bisectbot"}
    assert set(started) - {"broker"} == units == {"web", "scheduler", "chat", "worker"}


def test_the_readme_s_commands_exist() -> None:
    commands = printed(DEPLOY / "README.md")
    assert len(commands) > 10
    for command in commands:
        parse(shlex.split(command)[1:])


def test_the_readme_names_every_file_here() -> None:
    text = (DEPLOY / "README.md").read_text()
    for file in DEPLOY.iterdir():
        assert file.name == "README.md" or f"`{file.name}" in text
    for unit in UNITS:
        assert unit.stem.rstrip("@") in text


def test_containers_want_passwords_keep_their_data_and_are_not_open_to_the_world() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"postgres", "redis"}
    for name, service in services.items():
        (secret,) = service["secrets"]
        assert compose["secrets"][secret]["file"].startswith("./secrets/")
        assert service["volumes"][0].startswith(f"{name}:/")
        assert name in compose["volumes"]
        assert re.match(r"127\.0\.0\.1:|\$\{BROKER_ADDRESS:-127\.0\.0\.1\}:", service["ports"][0])
        assert "healthcheck" in service
    script = services["redis"]["entrypoint"][2]
    assert "requirepass" in script
    assert "--appendonly yes" in script
    done = subprocess.run(["sh", "-n", "-c", script.replace("$$", "$")], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_command_runs_what_is_installed_with_the_service_s_configuration() -> None:
    script = DEPLOY / "bisectbot"
    assert script.stat().st_mode & 0o111
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
    environment = settings(DEPLOY / "systemd" / "bisectbot.service")["Environment"]
    for pair in environment:
        assert pair.partition("=")[2] in script.read_text()
    assert INSTALLED in script.read_text()


CONFIG = {
    "trees": {"t": {"url": "/repo", "branches": {"main": {"build": "b", "jobs": ["j"]}}}},
    "builds": {"b": {"command": "make"}},
    "jobs": {"j": {"command": "./run", "groups": ["here"], "kpis": {"ops": {}}}},
    "hosts": {"here-1": {"group": "here", "driver": "local"}},
}


def test_the_readme_s_settings_are_understood(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (DEPLOY / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "worker.token").write_text("x")
    for block in blocks:
        (tmp_path / "bisectbot.yaml").write_text(block + yaml.safe_dump(CONFIG))
        load(tmp_path / "bisectbot.yaml")


def test_no_secret_gets_into_a_commit_or_an_image() -> None:
    root = DEPLOY.parent
    assert "/deploy/secrets/" in (root / ".gitignore").read_text().splitlines()
    assert "deploy/secrets" in (root / ".dockerignore").read_text().splitlines()


def test_a_secret_is_the_unit_s_credential_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "etc" / "bisectbot.yaml"
    (config.parent / "secrets").mkdir(parents=True)
    (config.parent / "secrets" / "worker.token").write_text("file")
    config.write_text(yaml.safe_dump({"server": {"token_file": "secrets/worker.token"}, **CONFIG}))
    assert load(config).token_path.read_text() == "file"
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    assert load(config).token_path.read_text() == "file"
    (credentials / "worker.token").write_text("credential")
    assert load(config).token_path.read_text() == "credential"


def test_systemd_analyze_is_here() -> None:
    assert shutil.which("systemd-analyze"), "systemd-analyze is missing: run `make system`, or apt-get install systemd"
