"""hackbench: groups of twenty senders and twenty receivers, as many as make ``nr_threads`` tasks; the whole again
``iterations`` times."""

from __future__ import annotations

from workers.benchmarks.base import Known

_LINE = r"""
groups=$((nr_threads / 40)); [ $groups -gt 0 ] || groups=1
set -- -g $groups -s 4096 -l "$loops"
[ "$mode" = process ] && set -- "$@" --process || set -- "$@" --threads
[ "$ipc" = pipe ] && set -- "$@" --pipe
i=0; while [ $i -lt "$iterations" ]; do hackbench "$@" || exit; i=$((i + 1)); done
"""

HACKBENCH = Known("hackbench", _LINE, {"iterations": "8", "loops": "1000", "mode": "process", "ipc": "socket"})
