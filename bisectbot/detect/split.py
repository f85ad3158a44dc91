"""Where a level may have changed: a generous first segmentation, to be judged boundary by boundary."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d

from bisectbot.detect.heads import Floats, Ints
from bisectbot.detect.noise import Signal

WINDOWS = (2, 3, 4, 6, 9, 14, 22, 35, 55, 90, 140, 220)
NOTICED = 2.3  # standard deviations that make a candidate
MOST = 150  # candidates
PENALTY = 8.0  # of one boundary, in units of variance


def split(signal: Signal, fixed: Ints) -> Ints:
    """Boundaries of the best piecewise constant fit to the calmed values; those in ``fixed`` are always among them.

    Least squares with a low penalty, exact over candidates: local maxima of the difference of two windows'
    means at a dozen widths. Returns ascending indexes, each the first head of a level, without 0 and n.
    """
    n = len(signal)
    weight = np.concatenate([[0.0], np.cumsum(1 / signal.variance)])
    centred = (signal.calm - np.median(signal.calm)) / signal.scale
    total = np.concatenate([[0.0], np.cumsum(centred / signal.variance)])
    nodes = _candidates(weight, total, n)
    nodes = np.unique(np.concatenate([[0], nodes, fixed, [n]])).astype(np.int64)
    return _cheapest(nodes, weight[nodes], total[nodes], np.isin(nodes, fixed))


def _candidates(weight: Floats, total: Floats, n: int) -> Ints:
    index = np.arange(2, n - 1)
    best = np.zeros(n + 1)
    if not len(index):
        return index
    for window in WINDOWS:
        if window > 2 and 2 * window > n:
            break
        left, right = np.maximum(index - window, 0), np.minimum(index + window, n)
        before, after = weight[index] - weight[left], weight[right] - weight[index]
        jump = (total[right] - total[index]) / after - (total[index] - total[left]) / before
        z = np.abs(jump) / np.sqrt(1 / before + 1 / after)
        peak = z >= maximum_filter1d(z, 2 * max(1, window // 3) + 1)
        chosen = peak & (z > NOTICED)
        at = index[chosen]
        best[at] = np.maximum(best[at], z[chosen])
    found = np.flatnonzero(best)
    if len(found) > MOST:
        found = np.sort(found[np.argsort(-best[found], kind="stable")[:MOST]])
    return found


def _cheapest(nodes: Ints, weight: Floats, total: Floats, fixed: np.typing.NDArray[np.bool_]) -> Ints:
    """Exact dynamic programme over the nodes; a segment has at least two heads unless a fixed node cuts it."""
    k = len(nodes)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = (total[None, :] - total[:, None]) ** 2 / (weight[None, :] - weight[:, None])
    cost = PENALTY - gain
    short = (nodes[None, :] - nodes[:, None] < 2) & ~(fixed[None, :] | fixed[:, None])
    cost[short] = np.inf
    best = np.zeros(k)
    come = np.zeros(k, np.int64)
    first = 0  # no segment may jump over a fixed node
    for node in range(1, k):
        ways = best[first:node] + cost[first:node, node]
        way = int(np.argmin(ways))
        best[node], come[node] = ways[way], first + way
        if fixed[node]:
            first = node
    path = []
    node = int(come[k - 1])
    while node > 0:
        path.append(int(nodes[node]))
        node = int(come[node])
    return np.array(path[::-1], np.int64)
