"""What others find: each in an environment of its own, since their pins conflict with ours and with each other's.

``python rivals.py NAME < series.json > steps.json`` is how it calls itself with another interpreter; that part needs
the standard library and the rival only. Rivals get one value per head, the median of its runs: fed single runs they
mistake a head's own level for a step.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

REQUIREMENTS = {"otava": "apache-otava==0.8.0", "asv": "asv==0.6.6", "pelt": "ruptures==1.1.10"}


def otava(values: list[float]) -> list[int]:
    """Apache Otava with its defaults."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]

    points, _ = compute_change_points(values)
    return [int(point.index) for point in points]


def asv(values: list[float]) -> list[int]:
    """asv's step detection; its regressions are those of more than 5 %, here all of its steps count."""
    from asv.step_detect import detect_steps  # type: ignore[import-not-found]

    return [int(start) for start, *_ in detect_steps(values)[1:]]


def pelt(values: list[float]) -> list[int]:
    """PELT as ruptures has it in C: every index allowed, penalty 2 ln n of the noise variance."""
    import numpy as np
    import ruptures  # type: ignore[import-not-found]

    signal = np.array(values)
    scale = np.median(np.abs(np.diff(signal))) / 0.6745 / np.sqrt(2)
    if not scale > 0:
        scale = np.std(np.diff(signal)) or 1.0
    fitted = ruptures.KernelCPD(kernel="linear", min_size=2).fit(signal / scale)
    return [int(index) for index in fitted.predict(pen=2 * np.log(len(values)))[:-1]]


def window(values: list[float], back: int = 12, fore: int = 12) -> list[int]:
    """A t-test window in the manner of Perfherder: t above 7, at its local maximum, both windows full, 2 % at least."""
    import math

    found: list[int] = []
    scores = [0.0] * len(values)
    weights = [(back - at) / back for at in range(back)]
    for at in range(back, len(values) - fore + 1):
        old, new = values[at - back : at][::-1], values[at : at + fore]
        means, spreads = [], []
        for side in (old, new):
            mean = sum(w * v for w, v in zip(weights, side, strict=False)) / sum(weights)
            spread = sum(w * (v - mean) ** 2 for w, v in zip(weights, side, strict=False)) / sum(weights)
            means.append(mean)
            spreads.append(spread * len(side) / (len(side) - 1))
        noise = math.sqrt(spreads[0] / back + spreads[1] / fore)
        effect = means[1] - means[0]
        scores[at] = abs(effect) / noise if noise else (math.inf if effect else 0.0)
        if abs(effect) < 0.02 * abs(means[0]):
            scores[at] = 0.0
    for at, score in enumerate(scores):
        peak = score > 7 and score == max(scores[max(0, at - 5) : at + 6])
        if peak and (not found or at - found[-1] > 5):
            found.append(at)
    return found


RIVALS: dict[str, Callable[[list[float]], list[int]]] = {"otava": otava, "asv": asv, "pelt": pelt, "t window": window}


def ask(name: str, series: Sequence[Sequence[float]]) -> tuple[list[list[int]], float]:
    """The steps a rival finds in each series of one value per head, and its CPU seconds."""
    result = subprocess.run(
        [_interpreter(name), __file__, name],
        input=json.dumps(series),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(result.stdout)
    return answer["steps"], answer["seconds"]


def _interpreter(name: str) -> str:
    """A Python with the rival installed, kept in the temporary folder for the next time."""
    if name not in REQUIREMENTS:
        return sys.executable
    folder = Path(tempfile.gettempdir()) / f"bisectbot-rival-{REQUIREMENTS[name]}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", REQUIREMENTS[name]], check=True)
        (folder / "ready").touch()
    return str(python)


def main(name: str) -> None:
    """Answer for the interpreter that called."""
    series = json.load(sys.stdin)
    RIVALS[name](series[0][:60])  # imports and compilers are not what is timed
    start = time.process_time()
    steps = [RIVALS[name](values) for values in series]
    json.dump({"steps": steps, "seconds": time.process_time() - start}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
