"""Steps of the service that can be killed at any of their lines: started by test_exactly_once_real.py.

Reads lines ``<step> <database> <folder> <port> <line> <bytes>``; for each it forks a child that does the step once. The
child kills itself with SIGKILL before the ``line``-th line of the step's modules that it comes to (0: it lives), and
may write files of at most ``bytes`` (0: of any size). Answers with the child's wait status.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, cast

from bisectbot.clock import Clock
from bisectbot.config import Config
from bisectbot.config.mail import InboxSpec, Mail, MailPolicy, Smtp
from bisectbot.errors import InfraError
from bisectbot.mail import outbox, smtp
from bisectbot.service import send as sender
from bisectbot.service.context import Context
from bisectbot.service.post import inbox, optouts, sequels, weekly
from bisectbot.store.database import Database

SCALE = 6000.0  # the lease of 15 minutes lasts 0.15 s, the first back-off 0.05 s
Step = Callable[[Context], int]
STEPS: dict[str, tuple[Step, tuple[ModuleType, ...]]] = {
    "send": (sender.send, (sender, smtp, outbox)),
    "sequels": (sequels.sequels, (sequels,)),
    "weekly": (weekly.weekly, (weekly,)),
    "receive": (inbox.receive, (inbox, optouts)),
}
_DEFERRED_BY_INFRASTRUCTURE = 3


def main() -> None:
    for line in sys.stdin:
        step, database, folder, port, at, most = line.split()
        if (child := os.fork()) == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # its log is no answer
            os._exit(_do(step, database, Path(folder), int(port), int(at), int(most)))
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


def _do(name: str, database: str, folder: Path, port: int, at: int, most: int) -> int:
    step, modules = STEPS[name]
    drop = InboxSpec(maildir=folder / "drop")
    operators, policy = ("ops@bisectbot.example.org",), MailPolicy.AUTHOR
    sender_ = "bisectbot <bot@bisectbot.example.org>"
    mail = Mail(sender=sender_, operators=operators, policy=policy, smtp=Smtp(port=port), inbox=drop)
    config = Config.model_construct(state=folder, mail=mail, trees={}, builds={}, jobs={})
    unused = cast("Any", None)
    context = Context(config, Database(database), unused, unused, unused, Clock(SCALE))
    if most:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if at:
        sys.settrace(_killer(at, {module.__file__ for module in modules}))
    try:
        step(context)
    except InfraError:
        return _DEFERRED_BY_INFRASTRUCTURE
    return 0


def _killer(at: int, files: set[str | None]) -> Callable[[FrameType, str, object], Any]:
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            if len(seen) == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


if __name__ == "__main__":
    main()
