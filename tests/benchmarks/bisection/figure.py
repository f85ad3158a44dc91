"""Stated probability against how often it was right, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

BINS: Final = (
    (0.5, 0.6),
    (0.6, 0.7),
    (0.7, 0.8),
    (0.8, 0.9),
    (0.9, 0.95),
    (0.95, 0.98),
    (0.98, 1.0),
)
SIZE: Final = 360
EDGE: Final = 44


def calibration(stated: Sequence[tuple[float, bool]]) -> str:
    """Dots with 95 % intervals (Wilson) per bin, the diagonal, and the counts."""

    def x(p: float) -> float:
        return EDGE + (p - 0.5) * 2 * (SIZE - 2 * EDGE)

    def y(p: float) -> float:
        return SIZE - EDGE - (p - 0.5) * 2 * (SIZE - 2 * EDGE)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" font-family="sans-serif" font-size="11">',
        "<title>Calibration: stated probability against frequency</title>",
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIZE - 2 * EDGE}" height="{SIZE - 2 * EDGE}" fill="none" stroke="#888"/>',
        f'<line x1="{x(0.5)}" y1="{y(0.5)}" x2="{x(1)}" y2="{y(1)}" stroke="#888" stroke-dasharray="4"/>',
    ]
    for low, high in BINS:
        some = [(p, hit) for p, hit in stated if low <= p < high or (p == high == 1.0)]
        if not some:
            continue
        n = len(some)
        mean, rate = (float(np.mean(c)) for c in zip(*some, strict=True))
        middle = (rate + 1.92 / n) / (1 + 3.84 / n)
        half = 1.96 / (1 + 3.84 / n) * np.sqrt(rate * (1 - rate) / n + 0.96 / n**2)
        bottom, top = max(middle - half, 0.5), min(middle + half, 1.0)
        parts.append(
            f'<line x1="{x(mean):.1f}" y1="{y(bottom):.1f}" x2="{x(mean):.1f}" y2="{y(top):.1f}" '
            f'stroke="#3b5b92" stroke-width="2"/><circle cx="{x(mean):.1f}" cy="{y(max(rate, 0.5)):.1f}" r="4" '
            f'fill="#3b5b92"><title>stated {mean:.3f}, right {rate:.3f}, {n} times</title></circle>'
        )
    for p in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts.append(f'<text x="{x(p):.1f}" y="{SIZE - EDGE + 16}" text-anchor="middle">{p:.1f}</text>')
        parts.append(f'<text x="{EDGE - 6}" y="{y(p) + 4:.1f}" text-anchor="end">{p:.1f}</text>')
    parts.append(f'<text x="{SIZE / 2}" y="{SIZE - 8}" text-anchor="middle">stated ({len(stated)} times)</text>')
    parts.append(f'<text x="12" y="{SIZE / 2}" transform="rotate(-90 12 {SIZE / 2})" text-anchor="middle">right</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
