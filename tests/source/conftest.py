from __future__ import annotations

from pathlib import Path

import pytest

from tests.source.fastimport import FastImport


@pytest.fixture
def upstream(tmp_path: Path) -> FastImport:
    """An empty repository to fill."""
    return FastImport(tmp_path / "upstream.git")
