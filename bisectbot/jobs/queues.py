"""Names on the broker: one queue per host, one for builds; bodies carry ids only."""

from __future__ import annotations

BUILD_QUEUE = "build"
LOOK_RUN = "bisectbot.look_run"
"""Task on a host's queue, arguments (host, run id): look, perhaps that run; the server decides."""
LOOK_BUILD = "bisectbot.look_build"
"""Task on the build queue, argument (build id)."""


def host_queue(host: str) -> str:
    """The queue of one host, e.g. ``host.lkp-icl-2sp2-1``."""
    return f"host.{host}"
