"""A run of the demo is short enough to be noisy, on whatever machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisectbot.demo.calibrate import MOST_SIGMAS, calibrate
from bisectbot.demo.history import EFFECT, make


@pytest.mark.parametrize("effect", EFFECT)
def test_what_is_planted_is_less_than_six_sigma_of_one_run(tmp_path: Path, effect: float) -> None:
    upstream = tmp_path / "upstream.git"
    made = make(upstream, seed=3)
    noise = calibrate(upstream, made.heads[0], effect, [min(os.sched_getaffinity(0))])
    assert 100 * effect / noise.robust <= MOST_SIGMAS < 6
    assert noise.level > 0
