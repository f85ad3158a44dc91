"""Pictures of series for ``bisectbot steps --plot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bisectbot.detect import Step
from bisectbot.detect.table import Series

COLOURS = {"regression": "#c0392b", "improvement": "#1e8449", "unknown": "#34495e"}


def draw(found: Sequence[tuple[Series, Sequence[Step]]], path: Path) -> None:
    """One panel per series: runs as dots, levels as lines, each step with its interval and effect."""
    figure = Figure(figsize=(12, 0.6 + 3.4 * len(found)), layout="constrained")
    for place, (series, steps) in enumerate(found, 1):
        axes = figure.add_subplot(len(found), 1, place)
        heads = [head for head, runs in enumerate(series.runs) for _ in runs]
        axes.plot(heads, [run for runs in series.runs for run in runs], ".", color="#7f8c8d", markersize=4)
        edges = [0, *(step.index for step in steps), len(series.runs)]
        levels = [steps[0].before, *(step.after for step in steps)] if steps else []
        for left, right, level in zip(edges, edges[1:], levels, strict=False):
            axes.plot([left - 0.5, right - 0.5], [level, level], color="#2e86c1", linewidth=1.6)
        for step in steps:
            colour = COLOURS[step.direction.value]
            axes.axvspan(step.interval[0] - 0.75, step.interval[1] - 0.25, color=colour, alpha=0.18, linewidth=0)
            label = f"{step.percent:+.2f} %" if step.percent is not None else f"{step.effect:+.4g}"
            axes.annotate(
                f"{series.labels[step.index][:12]}\n{label}",
                (step.index - 0.5, 1.0),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="top",
                fontsize=8,
                color=colour,
            )
        axes.set_title(series.name, loc="left", fontsize=10)
        axes.margins(x=0.01)
        axes.set_xlabel("head")
    figure.savefig(path, format="png")
