"""The demo on real kernels, cut short: built with tuxmake, booted in QEMU, searched, mailed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from bisectbot.config import load
from bisectbot.demo.kernel.run import CUT, play
from bisectbot.store.database import Database
from bisectbot.store.tables import Artifact


@pytest.mark.real
@pytest.mark.timeout(2400)
def test_kernels_are_built_booted_and_measured_and_the_slow_commit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # from nothing, and nothing stays
    ending = play(tmp_path / "demo", 7, CUT, serve=False, as_json=True)
    told = capfd.readouterr().err
    assert ending.right, told
    mail = Path(ending.mail).read_text()
    assert ending.planted in mail
    assert "paths.open_close" in mail
    assert "confirmed: parent and culprit measured again" in mail
    assert "confirmed: taken back on top of the bad end" in mail
    database = Database(load(tmp_path / "demo/bisectbot.yaml").database_url)
    with database.read() as session:
        kept = set(session.execute(select(Artifact.name).where(Artifact.run_id == 1)).scalars())
    database.dispose()
    assert {"meminfo", "proc-vmstat", "dmesg", "console", "job.json", "reproduce.sh"} <= kept
