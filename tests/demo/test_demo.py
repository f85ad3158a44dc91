"""The demo as a person starts it: real builds, real runs, a real mail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.real
@pytest.mark.timeout(400)
def test_the_demo_names_the_planted_commit_or_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bisectbot", "demo", "--seed", "7", "--json", "--dir", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=350, check=False)
    assert done.returncode in {0, 1}, done.stderr
    [sigmas] = re.findall(r"([\d.]+) sigma of one run", done.stderr)
    assert float(sigmas) < 6
    ending = json.loads(done.stdout.splitlines()[-1])
    assert set(ending) == {"planted", "found", "state", "probability", "runs", "mail"}
    assert ending["found"] in {ending["planted"], ""}, "the wrong commit was named"
    assert (ending["state"] == "culprit") == bool(ending["found"]), "a verdict that names somebody is told"
    assert done.returncode == (0 if ending["found"] else 1)
    if ending["found"]:
        assert ending["planted"] in Path(ending["mail"]).read_text()
